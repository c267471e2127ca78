"""What was measured, and in which order it is stacked.

This is the only module that knows about missing values and about the order of
readings in a covariance: tasks first, then sites, so that reading (d, i) is
row d·N + i (the paper's vec(Y)). A reading that was not made keeps its place,
with a unit diagonal in the covariance and a target of zero, which leaves every
likelihood and every prediction as if it were absent and lets batches of
unequal tables have equal shapes.
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

from emgpr.arrays import Array, diagonal, like, namespace, put

Found = TypeVar("Found")

_REMEMBERING = RLock()


@dataclass(frozen=True)
class Observations:
    """Outputs `y[d, i]` of task d at site `x[i]`, known where `seen[d, i]`; 0 elsewhere.

    Leading axes, if any, are a batch of tables. `on` brings a table to a device.

    >>> table = Observations.from_table(np.zeros((2, 1)), np.array([[1.0, np.nan], [2.0, 3.0]]))
    >>> table.y
    array([[1., 2.],
           [0., 3.]])
    >>> table.n_readings
    3
    """

    x: Float[Array, "*b N P"]
    y: Float[Array, "*b D N"]
    seen: Bool[Array, "*b D N"]

    @classmethod
    def from_table(cls, X: Float[Array, "N P"], Y: Float[Array, "N D"]) -> "Observations":
        """One row a site, NaN where an output was not measured."""
        seen = ~np.isnan(Y.T)
        return cls(X, np.where(seen, Y.T, 0.0), seen)

    def __getstate__(self) -> dict[str, Any]:
        """What was measured, not what is remembered of it: that can be worked out again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def remembered(self, name: Hashable, work: Callable[[], Found]) -> Found:
        """What the work gives, which is done once for a table and name; it must not change."""
        kept: dict[Hashable, Any] = vars(self).setdefault("_kept", {})
        if name not in kept:
            with _REMEMBERING:  # or threads that predict side by side would each do it
                if name not in kept:
                    kept[name] = work()
        found: Found = kept[name]
        return found

    def on(self, device: str) -> "Observations":
        """This table in the memory of a device; on the CPU it is this one."""
        if device == "cpu":
            return self
        return Observations(*(put(part, device) for part in (self.x, self.y, self.seen)))

    @property
    def n_sites(self) -> int:
        """N."""
        return int(self.x.shape[-2])

    @property
    def n_tasks(self) -> int:
        """D."""
        return int(self.y.shape[-2])

    @property
    def n_readings(self) -> int:
        """How many outputs were measured, over all tables of the batch."""
        return int(self.seen.sum())

    @cached_property
    def complete(self) -> bool:
        """Whether every output was measured at every site."""
        return bool(self.seen.all())

    @property
    def silent(self) -> Bool[Array, "*b D"]:
        """Tasks of which nothing but zero was read: standardised, those of one value."""
        return ~(self.y != 0).any(axis=-1)

    def task(self, d: int) -> "Observations":
        """Task d alone, at the sites where it was measured."""
        return self.tasks([d])

    def tasks(self, some: Sequence[int]) -> "Observations":
        """These tasks alone, at the sites where the first of them was measured."""
        rows = self.seen[some[0]]
        return Observations(self.x[rows], self.y[some][:, rows], self.seen[some][:, rows])

    def at(self, sites: Int[np.ndarray, "*b n"] | Sequence[int]) -> "Observations":
        """The table of these sites; a (b, n) array of sites gives a batch of b tables.

        A site of −1 is a place kept empty: nothing was measured there.
        """
        xp, sites = namespace(self.y), like(np.asarray(sites), self.y)
        y, seen = (xp.moveaxis(part[:, sites], 0, -2) for part in (self.y, self.seen))
        here = (sites >= 0)[..., None, :]
        return Observations(self.x[sites], xp.where(here, y, 0.0), seen & here)

    def table(self, which: Int[Array, " b"] | int | slice) -> "Observations":
        """One of a batch of tables, or some of them."""
        return Observations(self.x[which], self.y[which], self.seen[which])

    def some(self, n: int) -> Int[np.ndarray, " m"]:
        """n of the sites, or all: at random, each with its nearest, so that short ranges show."""
        if n >= self.n_sites:
            return np.arange(self.n_sites)
        chosen = np.random.default_rng(0).permutation(self.n_sites)[:n]
        # Of sites that repeat, the nearest two need not be the one that was chosen.
        pairs = np.column_stack([chosen, KDTree(self.x).query(self.x[chosen], k=2)[1]])
        return np.sort(list(dict.fromkeys(pairs.ravel().tolist()))[:n])

    def batches(self, parts: Sequence[Int[Array, " _"]]) -> "Observations":
        """One table a part, the shorter ones padded with empty places."""
        sites = np.full((len(parts), max(map(len, parts))), -1)
        for row, part in zip(sites, parts, strict=True):
            row[: len(part)] = part
        return self.at(sites)

    def extended(self, other: "Observations") -> "Observations":
        """These sites, then those of `other` at which anything was measured."""
        new = other.seen.any(axis=0)
        return Observations(
            np.concatenate([self.x, other.x[new]]),
            np.concatenate([self.y, other.y[:, new]], axis=1),
            np.concatenate([self.seen, other.seen[:, new]], axis=1),
        )

    def readings_at(self, x: Float[Array, "M P"]) -> Float[Array, "M D"]:
        """What was read at exactly these sites, NaN where nothing was.

        Where several sites have the same inputs, no one of them is meant.

        >>> table = Observations.from_table(np.array([[0.0], [1.0]]), np.array([[5.0], [6.0]]))
        >>> table.readings_at(np.array([[1.0], [2.0]]))
        array([[ 6.],
               [nan]])
        """
        rows, sites = self.remembered("sites", self._alone)
        at = sites.get_indexer(pd.MultiIndex.from_arrays(list(x.T)))
        read = np.where(self.seen, self.y, np.nan).T[rows]
        return (
            np.where((at >= 0)[:, None], read[at], np.nan)
            if len(read)
            else (np.full((len(x), self.n_tasks), np.nan))
        )

    def _alone(self) -> tuple[Int[Array, " n"], pd.MultiIndex]:
        """Sites that have their inputs alone, and an index of these inputs."""
        sites = pd.MultiIndex.from_arrays(list(self.x.T))
        rows = np.flatnonzero(~sites.duplicated(keep=False))
        return rows, sites[rows]

    @property
    def stacked(self) -> Float[Array, "*b DN"]:
        """vec(Y): task 0 at every site, then task 1, …"""
        return self.y.reshape(*self.y.shape[:-2], -1)

    def only_seen(self, cov: Float[Array, "*b D N D N"]) -> Float[Array, "*b DN DN"]:
        """The covariance of the stacked readings, unseen ones decoupled. Overwrites `cov`."""
        n = self.n_tasks * self.n_sites
        cov = cov.reshape(*cov.shape[:-4], n, n)
        if not self.complete:
            seen = self.seen.reshape(*self.seen.shape[:-2], n)
            cov *= seen[..., :, None]
            cov *= seen[..., None, :]
            diagonal(cov)[~seen] = 1.0
        return cov


def first_bad(bad: Bool[Array, "N C"]) -> tuple[int, int]:
    """Row and column of the first True, columns first: where to send the reader."""
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    return int(np.flatnonzero(bad[:, column])[0]), column
