"""The posterior of a linear model of coregionalisation, for an ensemble of members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import chunks, limit_threads
from emgpr.ensemble import join, keeps_members
from emgpr.observations import Observations, repeats
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.prediction.exact import LMCModel, condition, mean_derivatives, noise_given_sample
from emgpr.prediction.joint_samples import (
    check_joint_size,
    condition_jointly,
    match_marginals,
    sample_each_location,
    sample_gaussian,
)
from emgpr.prediction.leave_out import (
    combine_left_out,
    leave_out,
    leave_out_from_batch,
    leave_out_from_neighbours,
    left_out_parameter_covariance,
)
from emgpr.prediction.neighbours import (
    condition_on_neighbours,
    condition_on_surrounding,
    mean_derivatives_from_neighbours,
    neighbouring_sites,
)
from emgpr.prediction.parameter_uncertainty import ParameterDirections, for_readings
from emgpr.prediction.posterior import GaussianMixture
from emgpr.user_warnings import warn

Array = np.ndarray
Conditioning = Literal["all", "batch"] | int

# Largest number of operations for conditioning on all readings: about ten seconds on one core.
EXACT_OPERATIONS = 3e11
DEFAULT_NEIGHBOURS = 16  # fewest readings of each output, used if there are too many readings


@dataclass(frozen=True)
class LMCPosterior:
    """The posterior of a linear model of coregionalisation.

    `conditioning` determines the readings from which each member predicts: "all" readings, the
    readings in its "batch", or a given number of nearest readings of each output. `combine` is the
    rule that combines the members' predictions. If there are `directions`, which requires a single
    member, predictive distributions include the uncertainty of the parameters.

    If `automatic` is True, a number means at least that many readings, in all directions
    (`condition_on_surrounding`), and replaces "all" if added readings make predictions too slow.
    """

    observations: Observations
    model: LMCModel
    batches: tuple[Int[Array, " _"], ...]
    conditioning: Conditioning
    combine: str | Callable[..., Any] = "mean"
    automatic: bool = False
    independent: LMCModel | None = None  # the model of step 1, without transfer
    directions: ParameterDirections | None = None
    independent_directions: ParameterDirections | None = None  # of the model without transfer

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return self.observations.n_outputs

    @property
    def n_components(self) -> int:
        """Number of ensemble members."""
        return self.model.n_members

    @property
    def n_sites(self) -> int:
        """Number of sites whose readings are used in predictions."""
        return self.observations.n_sites

    @property
    def extent(self) -> Float[Array, "N P"]:
        """Locations of all sites."""
        return self.observations.x

    @property
    def reference_values(self) -> Float[Array, "N D"]:
        """All readings, NaN where missing."""
        return self.observations.table

    @property
    def links_samples(self) -> bool:
        """Whether the readings of a sample are dependent given the signals."""
        return self.model.correlated_noise

    def for_worker(self) -> "LMCPosterior":
        """Return the posterior unchanged, because predictions need all of it."""
        return self

    def with_rule(self, combine: str | Callable[..., Any]) -> "LMCPosterior":
        """Return the same posterior with another combination rule."""
        return replace(self, combine=combine)

    def with_transfer(self) -> "LMCPosterior":
        """Return the posterior with transfer to all outputs."""
        return self

    def without_transfer(self) -> "LMCPosterior":
        """Return the posterior in which every output is predicted from its own readings only."""
        if self.independent is None:
            raise ValueError("This posterior has no independent model of each output.")
        return LMCPosterior(
            self.observations,
            self.independent,
            (np.arange(self.n_sites),),
            "all" if self.conditioning == "batch" else self.conditioning,
            automatic=self.automatic,
            independent=self.independent,
            directions=self.independent_directions,
        )

    def predict(
        self,
        x: Float[Array, "M P"],
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Return the combined predictive distribution of the members at each location."""
        given, sample = self.condition_on(x, observed, include_noise=include_noise)
        return given.predict_given(x, sample, include_noise, with_cov, execution)

    def predict_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        include_noise: bool,
        with_cov: bool,
        execution: Execution,
    ) -> GaussianMixture:
        """Predict the outputs of one sample at each location.

        `sample` holds the known readings of these samples; it is None if nothing was measured.
        """
        # Combination rules need the covariances.
        with_cov |= self.model.n_members > 1 and not keeps_members(self.combine)
        given = replace(self, directions=for_readings(self.directions, include_noise))
        members, prior = given._signals(x, with_cov, execution), self.model.prior_covariance(x)
        noise: Array | float = 0.0
        if include_noise:
            members, prior, noise = noise_given_sample(members, prior, self.model.noise, sample)
        mean, cov = join(self.combine, members.mean, members.cov, prior)
        return GaussianMixture(mean, cov + noise)

    def condition_on(
        self, x: Float[Array, "M P"], observed: Float[Array, "M D"] | None, *, include_noise: bool
    ) -> tuple["LMCPosterior", Float[Array, "M D"] | None]:
        """Return the posterior given additional readings at x, and the known readings of samples.

        A sample is the specimen on which the outputs are measured at a site. If the noise of its
        outputs is correlated, a location that equals a training site refers to the same sample, and
        the training readings at this site are known readings of the sample. If they are repeated in
        `observed`, they are not counted twice. A row of `observed` with values that differ from
        them refers to another sample.
        """
        by_batch = self.conditioning == "batch"
        shared = not by_batch or len(self.batches) == 1  # all members use the same readings
        linked = include_noise and self.links_samples and shared
        if observed is None and not linked:
            return self, None
        readings = np.full((len(x), self.n_outputs), np.nan)
        if shared:
            table = self.observations.at(self.batches[0]) if by_batch else self.observations
            readings = table.readings_at(x)
        if observed is None:
            return self, readings
        same = repeats(observed, readings)[:, None]
        new = Observations.from_table(x, np.where(same, np.nan, observed))
        return self._extended_by(new), np.where(same, readings, observed) if linked else observed

    def _extended_by(self, new: Observations) -> "LMCPosterior":
        """Return the posterior of all members given additional readings."""
        table = self.observations.extended_by(new)
        added = np.arange(self.n_sites, table.n_sites)
        conditioning = self.conditioning
        if self.automatic and conditioning == "all":
            conditioning = affordable_conditioning(table, self.model)
        return replace(
            self,
            observations=table,
            batches=tuple(np.concatenate([batch, added]) for batch in self.batches),
            conditioning=conditioning,
        )

    def sample(
        self,
        x: Float[Array, "M P"],
        n: int,
        rng: np.random.Generator,
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples. If members form a mixture, each sample is from a random member."""
        check_joint_size(len(x), self.n_outputs)
        given, sample = self.condition_on(x, observed, include_noise=include_noise)
        return given.sample_given(x, sample, n, rng, include_noise, execution)

    def sample_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        n: int,
        rng: np.random.Generator,
        include_noise: bool,
        execution: Execution,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples from the distribution that `predict_given` predicts."""
        given = replace(self, directions=for_readings(self.directions, include_noise))
        drawn = given._sample_signals(x, n, rng, execution)
        if not include_noise:
            return drawn
        zero = np.zeros((len(x), self.n_outputs, self.n_outputs))
        exact = GaussianMixture(drawn, np.broadcast_to(zero, (n, *zero.shape)))
        known, _, noise = noise_given_sample(exact, zero, self.model.noise, sample)
        return known.mean + sample_each_location(noise, n, rng)

    def _sample_signals(
        self, x: Float[Array, "M P"], n: int, rng: np.random.Generator, execution: Execution
    ) -> Float[Array, "n M D"]:
        """Draw joint samples of the signals, with the predicted distribution at each location."""
        if self.directions is not None:
            fixed = replace(self, directions=None)
            drawn = fixed._sample_signals(x, n, rng, execution)
            slopes = self._mean_derivatives(x, self.directions, execution.device)
            known = fixed._signals(x, True, execution)
            groups = [group.outputs for group in self.model.coupled_outputs()]
            return self.directions.perturb(drawn, known, slopes, self.model.noise, groups, rng)
        L, M, D = self.model.n_members, len(x), self.n_outputs
        chosen = rng.integers(L, size=n)
        if not keeps_members(self.combine):
            # Correlations between locations come from the members' average covariance.
            cov = sum((self._joint(x, i, execution)[1] / L for i in range(L)), np.array(0.0))
            signals = sample_gaussian(cov, n, rng).reshape(n, D, M)
            combined = self.predict_given(x, None, False, True, execution)
            return match_marginals(signals, cov, combined)
        drawn = np.empty((n, M, D))
        for member in np.unique(chosen).tolist():
            rows = chosen == member
            mean, cov = self._joint(x, member, execution)
            signals = sample_gaussian(cov, int(rows.sum()), rng).reshape(-1, D, M)
            if isinstance(self.conditioning, int):  # each location has its own neighbours
                single = replace(self, model=self.model.members([member]))
                drawn[rows] = match_marginals(signals, cov, single._signals(x, True, execution))
            else:
                drawn[rows] = mean.T + np.swapaxes(signals, 1, 2)
        return drawn

    def _mean_derivatives(
        self, x: Float[Array, "M P"], directions: ParameterDirections, device: str
    ) -> Float[Array, "M D r"]:
        """Return the derivatives of the posterior mean of the signals along the directions."""
        table, n = self.observations, self.conditioning
        if isinstance(n, int):
            return mean_derivatives_from_neighbours(
                table, x, self.model, n, directions, device=device
            )
        table = table.at(self.batch_sites(0)) if n == "batch" else table
        return mean_derivatives(table, x, self.model, directions, device=device)

    def _joint(
        self, x: Float[Array, "M P"], member: int, execution: Execution
    ) -> tuple[Float[Array, "D M"], Float[Array, "DM DM"]]:
        """Return the joint distribution of a member's signals at all locations."""
        table, conditioning = self.observations, self.conditioning
        if conditioning == "batch":
            table = table.at(self.batch_sites(member))
        elif isinstance(conditioning, int):
            kernels, surrounding = self.model.kernels, self.automatic
            sites = neighbouring_sites(table, x, kernels, conditioning, surrounding=surrounding)
            table = table.at(sites)
        model = self.model.members([member])
        mean, cov = condition_jointly(table, x, model, device=execution.device)
        return mean, cov.reshape(mean.size, mean.size)

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict every reading from readings outside its set; return N(0, 1) where none exists.

        The uncertainty of the parameters is approximated: it is that of predictions from the
        nearest readings at other sites, whichever readings are left out.
        """
        predict = partial(self._leave_out_members, sets, sites, execution.device)
        members = self._map_members(predict, "Leaving out: members", execution)
        table = self.observations if sites is None else self.observations.at(sites)
        if self.directions is not None:
            n = self.conditioning if isinstance(self.conditioning, int) else DEFAULT_NEIGHBOURS
            added = left_out_parameter_covariance(
                self.observations, table.x, self.model, n, self.directions, device=execution.device
            )
            members = GaussianMixture(members.mean, members.cov + added)
        sets = sets if sites is None else sets[:, sites]
        return combine_left_out(self.combine, members, table, sets, self.model)

    def batch_sites(self, member: int) -> Int[Array, " _"]:
        """Return the sites in a member's batch; "grbcm" adds the first batch to all others."""
        if self.combine == "grbcm" and member:
            return np.union1d(self.batches[0], self.batches[member])
        return self.batches[member]

    def _signals(
        self, x: Float[Array, "M P"], with_cov: bool, execution: Execution
    ) -> GaussianMixture:
        """Return the distribution of the signals for every member."""
        predict = partial(self._predict_members, x, with_cov, execution.device)
        return self._map_members(predict, "Predicting: members", execution)

    def _predict_members(
        self, x: Float[Array, "M P"], with_cov: bool, device: str, members: Sequence[int]
    ) -> GaussianMixture:
        """Predict the signals with the given members; only one if members use their own batches."""
        table, model, n = self.observations, self.model.members(members), self.conditioning
        directions = self.directions if with_cov else None
        if isinstance(n, int):
            condition_on = condition_on_surrounding if self.automatic else condition_on_neighbours
            return condition_on(table, x, model, n, directions=directions, device=device)
        table = table.at(self.batch_sites(members[0])) if n == "batch" else table
        return condition(table, x, model, with_cov=with_cov, directions=directions, device=device)

    def _leave_out_members(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None,
        device: str,
        members: Sequence[int],
    ) -> GaussianMixture:
        """Predict every reading from the readings outside its set, for several members."""
        table, model = self.observations, self.model.members(members)
        if isinstance(n := self.conditioning, int):
            return leave_out_from_neighbours(table, sets, model, n, sites, device=device)
        if self.conditioning == "batch":
            batch = self.batch_sites(members[0])
            found = leave_out_from_batch(table, batch, sets, model, device=device)
        else:
            found = leave_out(table, sets, model, device=device)
        return (
            found if sites is None else GaussianMixture(found.mean[:, sites], found.cov[:, sites])
        )

    def _map_members(
        self,
        predict: Callable[[Sequence[int]], GaussianMixture],
        label: str,
        execution: Execution,
    ) -> GaussianMixture:
        """Compute predictions for groups of members in parallel; return those of all members."""
        L, conditioning = self.model.n_members, self.conditioning
        one_by_one = conditioning == "batch" or execution.verbose > 0
        runs = [range(i, i + 1) for i in range(L)]
        runs = runs if one_by_one else chunks(L, 1.0, execution.processes)
        exact = isinstance(conditioning, str)
        with limit_threads(max(self.model.group_sizes(self.observations)) if exact else 0):
            parts = parallel_map(predict, runs, execution, label=label)
        means, covs = zip(*((part.mean, part.cov) for part in parts), strict=True)
        return GaussianMixture(np.concatenate(means), np.concatenate(covs))


def affordable_conditioning(observations: Observations, model: LMCModel) -> Conditioning:
    """Return "all", or warn and return a number of neighbours if "all" would take too long."""
    if exact_is_affordable(model.n_members, model.group_sizes(observations)):
        return "all"
    warn(
        f'conditioning="auto": exact predictions from {observations.n_readings} readings for '
        f"{model.n_members} members would take too long; predictions use {DEFAULT_NEIGHBOURS} "
        "readings of each output in all directions, and more where they reduce the variance. Set "
        f"conditioning={DEFAULT_NEIGHBOURS} to use only the {DEFAULT_NEIGHBOURS} nearest readings, "
        'or "all" to use every reading.'
    )
    return DEFAULT_NEIGHBOURS


def exact_is_affordable(n_members: int, sizes: Sequence[int] | Sequence[float]) -> bool:
    """Tell whether exact predictions from groups of readings with these sizes are fast enough."""
    return n_members * sum(n**3 / 3 for n in sizes) <= EXACT_OPERATIONS
