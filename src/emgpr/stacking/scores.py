"""Predictions of left-out readings by the own processes and by the joint model.

Both use the parameters fitted to all readings. The joint model has many parameters, so that its
log density of a left-out reading is too high by about the number of parameters divided by the
number of readings (as in Akaike's criterion), which is subtracted. In a gap, its advantage would be
larger and unknown; there, it is refitted without the left-out readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import cholesky
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction import Conditioning, LMCModel, LMCPosterior
from emgpr.stacking.patterns import Pattern

Array = np.ndarray
Moments = tuple[Float[Array, " n"], Float[Array, " n"]]  # means and variances
Table = tuple[Float[Array, "N D"], Float[Array, "N D"]]  # means and variances, NaN if not computed

# All readings are left out if there are at most MAX_READINGS, otherwise some of each output.
MAX_READINGS, MAX_TEST_READINGS = 1000, 100
# They are left out exactly if there are at most MAX_EXACT readings. Otherwise, each is predicted
# from neighbours: at most MAX_NEIGHBOURS readings of each output, with a covariance of about
# MAX_ROWS rows, but at least MIN_NEIGHBOURS.
MAX_EXACT = 500
MAX_NEIGHBOURS, MIN_NEIGHBOURS, MAX_ROWS = 16, 6, 128
N_PARTS = 3  # of a fold, at which the known outputs are left out in turn


@dataclass(frozen=True)
class LeftOutScores:
    """Left-out predictions of the readings at the test sites."""

    posterior: LMCPosterior  # of the joint model
    couples_outputs: bool
    n_parameters: int  # of the joint model
    execution: Execution = DEFAULT_EXECUTION

    @cached_property
    def observations(self) -> Observations:
        """All readings."""
        return self.posterior.observations

    @cached_property
    def sites(self) -> Int[Array, " T"]:
        """Sites whose readings are left out: all of them, or some for each output."""
        return tested_sites(self.observations, self.posterior.model.n_members)

    @property
    def penalty(self) -> float:
        """What is subtracted from the log densities of the joint model."""
        return self.n_parameters / max(self.observations.n_readings, 1)

    @cached_property
    def own_near(self) -> Table:
        """Each reading predicted by its own process from all other readings of the output."""
        return self._left_out(self.own, site_sets(self.observations))

    def own_far(self, folds: Int[Array, "D N"]) -> Table:
        """Each reading predicted by its own process from the readings in other folds."""
        return self._left_out(self.own, folds)

    @cached_property
    def joint_near(self) -> Table:
        """Each reading predicted by the joint model from the readings at other sites."""
        mean, cov = self._joint_by_site
        return self._in_table(self.sites, mean, np.einsum("mdd->md", cov))

    def joint_given(self, pattern: Pattern, sites: Int[Array, " n"]) -> Moments:
        """Readings of an output predicted from other sites, and from known outputs at the same one.

        All known outputs must have been measured at `sites`, which are among the test sites.
        """
        (d, known), table = pattern, self.observations
        e = np.array(known)
        rows = np.searchsorted(self.sites, sites)
        mean, cov = (part[rows] for part in self._joint_by_site)
        residual = table.y[np.ix_(e, sites)].T - mean[:, e]
        half = cholesky(cov[:, e[:, None], e]).half_solve(
            np.stack([cov[:, e, d], residual], axis=-1)
        )
        cross, z = half[..., 0], half[..., 1]
        return mean[:, d] + (cross * z).sum(axis=1), cov[:, d, d] - (cross**2).sum(axis=1)

    def joint_far(
        self,
        models: Sequence[LMCModel],
        folds: Int[Array, " N"],
        unknown: Sequence[int],
        *,
        with_known: bool = True,
    ) -> Table:
        """Readings of the unknown outputs predicted from other folds and from known outputs.

        `models[f]` was fitted without the readings of the unknown outputs in fold f. Unless
        `with_known`, nothing is known at the same site: the known outputs are left out at the
        predicted sites, at one part of the fold at a time.
        """
        table = self.observations
        labels = np.where(_rows(table.y, unknown), folds, -1)  # others are known
        mean, variance = np.full((2, table.n_sites, table.n_outputs), np.nan)
        parts = np.zeros(table.n_sites, int)
        if not with_known:
            parts[table.pseudo_random_order] = np.arange(table.n_sites) % N_PARTS
        for fold, model in enumerate(models):
            joint = replace(self.joint, model=model, directions=None)
            in_fold = self.sites[folds[self.sites] == fold]
            for part in np.unique(parts[in_fold]):
                sites, sets = in_fold[parts[in_fold] == part], labels.copy()
                if not with_known:
                    sets[:, sites] = fold
                found = self._left_out(joint, sets, sites)
                mean[sites], variance[sites] = found[0][sites], found[1][sites]
        return mean, variance

    @cached_property
    def own(self) -> LMCPosterior:
        """The posterior of the own processes."""
        return replace(self.posterior.without_transfer(), conditioning=self._conditioning)

    @cached_property
    def joint(self) -> LMCPosterior:
        """The posterior of the joint model."""
        return replace(self.posterior, conditioning=self._conditioning)

    @cached_property
    def _joint_by_site(self) -> tuple[Float[Array, "T D"], Float[Array, "T D D"]]:
        """Mean and covariance of all outputs at each test site, given the other sites."""
        return self._moments(self.joint, site_sets(self.observations), self.sites)

    @property
    def _exact(self) -> bool:
        return is_exact(self.observations, self.posterior.model.n_members)

    @property
    def _conditioning(self) -> Conditioning:
        """The readings from which others are predicted: neighbours, if there are many readings."""
        given, automatic = self.posterior.conditioning, self.posterior.automatic
        if given == "batch" or self._exact or not (isinstance(given, str) or automatic):
            return given
        return test_neighbours(self.observations.n_outputs)

    def _left_out(
        self,
        posterior: LMCPosterior,
        sets: Int[Array, "D N"],
        sites: Int[Array, " T"] | None = None,
    ) -> Table:
        """Return means and variances at the test sites, in tables with a row for every site."""
        sites = self.sites if sites is None else sites
        mean, cov = self._moments(posterior, sets, sites)
        return self._in_table(sites, mean, np.einsum("mdd->md", cov))

    def _moments(
        self, posterior: LMCPosterior, sets: Int[Array, "D N"], sites: Int[Array, " T"]
    ) -> tuple[Float[Array, "T D"], Float[Array, "T D D"]]:
        """Return mean and covariance of the left-out readings at each site."""
        if not len(sites):
            D = self.observations.n_outputs
            return np.empty((0, D)), np.empty((0, D, D))
        return posterior.leave_out(sets, sites, execution=self.execution).moments()

    def _in_table(
        self, sites: Int[Array, " T"], mean: Float[Array, "T D"], variance: Float[Array, "T D"]
    ) -> Table:
        """Return means and variances in tables with a row for every site."""
        tables = np.full((2, self.observations.n_sites, self.observations.n_outputs), np.nan)
        tables[:, sites] = mean, variance
        return tables[0], tables[1]


def is_exact(observations: Observations, n_members: int) -> bool:
    """Tell whether readings are predicted from all others when they are left out."""
    return _readings(observations, n_members) <= MAX_EXACT


def tested_sites(observations: Observations, n_members: int) -> Int[Array, " T"]:
    """Return the sites whose readings are left out: all of them, or some for each output."""
    if _readings(observations, n_members) <= MAX_READINGS:
        return np.arange(observations.n_sites)
    order = observations.pseudo_random_order
    some = [order[observed[order]][:MAX_TEST_READINGS] for observed in observations.observed]
    return np.unique(np.concatenate(some))


def _readings(observations: Observations, n_members: int) -> float:
    """Return the number of readings with which one member would cost as much as all of them."""
    return n_members ** (1 / 3) * observations.n_readings


def test_neighbours(D: int) -> int:
    """Return the number of readings of each output from which a left-out reading is predicted.

    >>> [test_neighbours(D) for D in (3, 20, 100)]
    [16, 6, 6]
    """
    return max(MIN_NEIGHBOURS, min(MAX_NEIGHBOURS, MAX_ROWS // D))


def site_sets(observations: Observations) -> Int[Array, "D N"]:
    """Return labels with which all readings of a site are left out together."""
    D, N = observations.y.shape
    return np.tile(np.arange(N), (D, 1))


def _rows(like: Array, chosen: Sequence[int]) -> Array:
    """Return a column that marks the chosen rows of an array."""
    return np.isin(np.arange(len(like)), chosen)[:, None]
