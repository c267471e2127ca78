"""Tables with missing readings, and the order of the readings in vectors.

In a vector of readings and in its covariance, the readings are ordered by output, then by site, so
that output d at site i is row d·N + i (the paper's vec(Y)). A missing reading keeps its row, with
the value 0 and, in the covariance, a variance of 1 and no correlation with other readings.
Likelihoods and predictions are the same as without this row. Tables with different missing readings
therefore have the same shape and can be combined in a batch.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree

from emgpr.arrays import Array, diagonal, namespace, to_device, to_device_of
from emgpr.neighbours import MAX_MAXIMIN_SITES, kd_tree, pseudo_random_order, spread_order

Value = TypeVar("Value")
Cache = dict[Hashable, "_Once"]


class _Once:
    """A value that is computed when it is first needed, by only one of several threads."""

    def __init__(self) -> None:
        self._lock = RLock()

    def get(self, compute: Callable[[], Any]) -> Any:
        """Return the value, which `compute` returns."""
        with self._lock:
            if "_value" not in vars(self):
                self._value = compute()
        return self._value


@dataclass(frozen=True)
class Observations:
    """Readings `y[d, i]` of output d at site `x[i]`; 0 if `observed[d, i]` is False.

    The arrays may have leading axes, which index a batch of tables.

    >>> table = Observations.from_table(np.zeros((2, 1)), np.array([[1.0, np.nan], [2.0, 3.0]]))
    >>> table.y
    array([[1., 2.],
           [0., 3.]])
    >>> table.n_readings
    3
    """

    x: Float[Array, "*b N P"]
    y: Float[Array, "*b D N"]
    observed: Bool[Array, "*b D N"]

    @classmethod
    def from_table(cls, X: Float[Array, "N P"], Y: Float[Array, "N D"]) -> "Observations":
        """Create observations from X and Y with one row for each site; NaN in Y means missing."""
        observed = ~np.isnan(Y.T)
        return cls(X, np.where(observed, Y.T, 0.0), observed)

    @classmethod
    def of_one_output(cls, x: Float[Array, "N P"], y: Float[Array, " N"]) -> "Observations":
        """Create observations of a single output without missing readings."""
        return cls(x, y[None], np.ones((1, len(y)), bool))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be pickled: the fields without cached values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def cached(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return `compute()`, cached with this key; callers must not modify the value."""
        cache: Cache = vars(self).setdefault("_cache", {})
        value: Value = cache.setdefault(key, _Once()).get(compute)
        return value

    def cached_for_sites(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return `compute()` like `cached`; tables that `with_readings` returns share the value.

        It must depend on the sites only.
        """
        value: Value = self._site_cache.setdefault(key, _Once()).get(compute)
        return value

    @property
    def _site_cache(self) -> Cache:
        cache: Cache = vars(self).setdefault("_of_sites", {})
        return cache

    def with_readings(self, y: Float[Array, "d N"], observed: Bool[Array, "d N"]) -> "Observations":
        """Return a table of other readings at the same sites."""
        table = Observations(self.x, y, observed)
        vars(table)["_of_sites"] = self._site_cache
        return table

    def with_temporary_trees(self) -> "Observations":
        """Return the same table; what it caches for its sites from now on, this table does not."""
        table = Observations(self.x, self.y, self.observed)
        vars(table)["_cache"] = vars(self).setdefault("_cache", {})
        vars(table)["_of_sites"] = dict(self._site_cache)
        return table

    @property
    def pseudo_random_order(self) -> Int[np.ndarray, " N"]:
        """An order of the sites that looks random, but depends on their locations only."""
        return self.cached_for_sites("order", lambda: pseudo_random_order(self.x))

    def spread_order(self, scale: Float[np.ndarray, " P"] | float) -> Int[np.ndarray, " N"]:
        """Return `spread_order(x / scale)`."""
        if self.n_sites > MAX_MAXIMIN_SITES:  # this order does not depend on the scale
            return self.pseudo_random_order
        key = "spread order", self._units(scale)
        return self.cached_for_sites(key, lambda: spread_order(self.x / scale))

    def tree(
        self,
        scale: Float[np.ndarray, " P"] | float = 1.0,
        measured: Bool[np.ndarray, " N"] | None = None,
    ) -> KDTree:
        """Return the k-d tree of x / scale at the sites in a mask (default: at all sites)."""
        if measured is None:
            measured = np.ones(self.n_sites, bool)
        key = "tree", self._units(scale), measured.tobytes()
        return self.cached_for_sites(key, lambda: kd_tree(self.x[measured] / scale))

    def _units(self, scale: Float[np.ndarray, " P"] | float) -> tuple[float, ...]:
        return tuple(np.broadcast_to(scale, self.x.shape[1]).tolist())

    def to(self, device: str) -> "Observations":
        """Copy the table to a device; if the device is "cpu", return the table itself."""
        if device == "cpu":
            return self
        return Observations(*(to_device(part, device) for part in (self.x, self.y, self.observed)))

    @property
    def n_sites(self) -> int:
        """Number of sites, N."""
        return int(self.x.shape[-2])

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return int(self.y.shape[-2])

    @property
    def n_readings(self) -> int:
        """Number of readings in all tables of the batch."""
        return int(self.observed.sum())

    @cached_property
    def complete(self) -> bool:
        """Whether every output was measured at every site."""
        return bool(self.observed.all())

    @cached_property
    def constant(self) -> Bool[Array, "*b D"]:
        """Mask of the outputs whose readings are all equal (zero after standardisation)."""
        return ~(self.y != 0).any(axis=-1)

    @property
    def table(self) -> Float[Array, "N D"]:
        """Table with a row for each site and a column for each output; NaN for missing readings."""
        return np.where(self.observed, self.y, np.nan).T

    def output(self, d: int) -> "Observations":
        """Return a table of output d at the sites where it was measured."""
        return self.outputs([d])

    def outputs(self, which: Sequence[int]) -> "Observations":
        """Return a table of these outputs at the sites where the first of them was measured."""
        sites = self.observed[which[0]]
        return Observations(self.x[sites], self.y[which][:, sites], self.observed[which][:, sites])

    def select_outputs(self, which: Int[np.ndarray, " d"]) -> "Observations":
        """Return a table of these outputs at all sites."""
        return self.with_readings(self.y[which], self.observed[which])

    def without_empty_sites(self) -> "Observations":
        """Return the table without the sites where nothing was measured."""
        return self.at(np.flatnonzero(self.observed.any(axis=0)))

    def at(self, sites: Int[np.ndarray, "*b n"] | Sequence[int]) -> "Observations":
        """Return a table of these sites, or a batch of b tables for a (b, n) array of sites.

        A site number of −1 means an empty row, in which all readings are missing.
        """
        xp, sites = namespace(self.y), to_device_of(np.asarray(sites), self.y)
        y, observed = (xp.moveaxis(part[:, sites], 0, -2) for part in (self.y, self.observed))
        exists = (sites >= 0)[..., None, :]
        return Observations(self.x[sites], xp.where(exists, y, 0.0), observed & exists)

    def batch_item(self, which: Int[Array, " b"] | int | slice) -> "Observations":
        """Return one or several tables of a batch."""
        return Observations(self.x[which], self.y[which], self.observed[which])

    def subsample(self, n: int) -> Int[np.ndarray, " m"]:
        """Choose n sites: random sites and their nearest neighbours, to include short distances."""
        return self.cached_for_sites(("subsample", n), lambda: self._subsample(n))

    def _subsample(self, n: int) -> Int[np.ndarray, " m"]:
        if n >= self.n_sites:
            return np.arange(self.n_sites)
        chosen = np.random.default_rng(0).permutation(self.n_sites)[:n]
        # If several sites share a location, the two nearest sites may not include the chosen site.
        pairs = np.column_stack([chosen, self.tree().query(self.x[chosen], k=2)[1]])
        return np.sort(list(dict.fromkeys(pairs.ravel().tolist()))[:n])

    def batches(self, sites: Sequence[Int[Array, " _"]]) -> "Observations":
        """Return a batch with a table for each array of sites, padded to equal length."""
        padded = np.full((len(sites), max(map(len, sites))), -1)
        for row, batch in zip(padded, sites, strict=True):
            row[: len(batch)] = batch
        return self.at(padded)

    def extended_by(self, other: "Observations") -> "Observations":
        """Return this table, followed by the sites with readings from another table."""
        new = other.observed.any(axis=0)
        return Observations(
            np.concatenate([self.x, other.x[new]]),
            np.concatenate([self.y, other.y[:, new]], axis=1),
            np.concatenate([self.observed, other.observed[:, new]], axis=1),
        )

    def readings_at(self, x: Float[Array, "M P"]) -> Float[Array, "M D"]:
        """Return the readings at exactly these locations, or NaN if there are none.

        Sites that share their location with another site are ignored.

        >>> table = Observations.from_table(np.array([[0.0], [1.0]]), np.array([[5.0], [6.0]]))
        >>> table.readings_at(np.array([[1.0], [2.0]]))
        array([[ 6.],
               [nan]])
        """
        unique, index = self.cached("unique locations", self._unique_locations)
        if not len(unique):
            return np.full((len(x), self.n_outputs), np.nan)
        site = index.get_indexer(pd.MultiIndex.from_arrays(list(x.T)))
        return np.where((site >= 0)[:, None], self.table[unique][site], np.nan)

    def _unique_locations(self) -> tuple[Int[Array, " n"], pd.MultiIndex]:
        """Return the sites that share their location with no other site, and their locations."""
        locations = pd.MultiIndex.from_arrays(list(self.x.T))
        sites = np.flatnonzero(~locations.duplicated(keep=False))
        return sites, locations[sites]

    @property
    def stacked(self) -> Float[Array, "*b DN"]:
        """The readings as vec(Y): output 0 at every site, then output 1, and so on."""
        return self.y.reshape(*self.y.shape[:-2], -1)

    def decouple_missing(self, cov: Float[Array, "*b D N D N"]) -> Float[Array, "*b DN DN"]:
        """Reshape a covariance to (DN, DN), and make missing readings independent, in place."""
        n = self.n_outputs * self.n_sites
        cov = cov.reshape(*cov.shape[:-4], n, n)
        if not self.complete:
            observed = self.observed.reshape(*self.observed.shape[:-2], n)
            cov *= observed[..., :, None]
            cov *= observed[..., None, :]
            diagonal(cov)[~observed] = 1.0
        return cov


def repeats(observed: Float[Array, "M D"], readings: Float[Array, "M D"]) -> Bool[Array, " M"]:
    """Mark the rows of `observed` in which no value differs from the reading that it stands for.

    >>> repeats(np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([[1.0, 5.0], [2.0, np.nan]]))
    array([ True, False])
    """
    same = np.isclose(observed, readings, rtol=1e-9, atol=1e-12) | np.isnan(observed)
    return same.all(axis=1)


def first_true(condition: Bool[Array, "N C"]) -> tuple[int, int]:
    """Return the row and column of the first True value, searching column by column."""
    column = int(np.flatnonzero(condition.any(axis=0))[0])
    return int(np.flatnonzero(condition[:, column])[0]), column
