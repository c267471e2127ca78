"""What a fitted model believes of new sites, on the standardised scale."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import settle
from emgpr.covariance import prior
from emgpr.covariance.dense import coregionalization
from emgpr.ensemble import join, mixture
from emgpr.estimators.apart import without
from emgpr.estimators.door import enter_known
from emgpr.estimators.doubts import about_known
from emgpr.estimators.mapper import Mapper
from emgpr.estimators.settings import Settled
from emgpr.estimators.switch_off import variance_shares
from emgpr.execution import chunks, each, threads_for
from emgpr.observations import Observations
from emgpr.prediction import (
    Belief,
    condition,
    condition_jointly,
    condition_on_neighbours,
    coupled,
    draw,
    draw_each,
    map_between,
    of_sites,
    sites_near,
    turned_to_readings,
)
from emgpr.weights import FittedWeights, Mixture

Array = np.ndarray
How = Literal["all", "batch"] | int

AFFORDABLE = 3e11  # operations: about ten seconds on one core
NEIGHBOURS = 16
MOST_AT_ONCE = 6000  # values of a joint sample: a minute, and a gigabyte


class Believer(Mapper):
    """Kernels, weights and noise that were learned, and the readings to condition on."""

    conditioning: Literal["auto", "all", "batch"] | int
    combine: str | Callable[..., Any] = "mean"
    n_jobs: int | None
    device: str
    verbose: int
    n_iter_: int
    _rows: Int[Array, " N"]
    _index: pd.Index
    _apart: Mixture
    _lost: dict[str, Int[Array, " _"]]
    _settled: Settled

    def _remember(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        learned: Mixture,
        members: FittedWeights,
    ) -> Self:
        self._hold(seen, parts, learned.kernels, learned.noise, members.W)
        self.log_marginal_likelihood_value_ = float(members.log_likelihood.sum())
        self.n_iter_ = max(self.n_iter_, int(members.n_iter.max()), 1)
        self.conditioning_ = self._affordable(seen)
        self._keep_apart({})
        return self

    def _hold(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        kernels: Sequence[Kernel],
        noise: Float[Array, "D D"],
        W: Float[Array, "L Q D k"],
    ) -> None:
        """What was learned and from what, and all that follows from it."""
        self._seen = seen
        self._parts = parts
        self.batches_ = [self._rows[part] for part in parts]
        self.kernels_ = list(kernels)
        self._noise = noise
        self.noise_ = noise if self._settled.correlated else np.diagonal(noise).copy()
        self.weights_ = W
        self.coregionalization_ = coregionalization(W).mean(axis=0)
        shares = variance_shares(self.kernels_, W, noise, seen.x)
        columns = [*(f"latent {q}" for q in range(len(self.kernels_))), "noise"]
        self.variance_shares_ = pd.DataFrame(shares, index=self.output_names_, columns=columns)

    def _keep_apart(self, lost: dict[str, Int[Array, " _"]]) -> None:
        """Outputs that keep to their own process, by what else is known there."""
        self._lost = lost
        self.alone_ = {by: [self.output_names_[d] for d in own] for by, own in lost.items()}

    @property
    def _device(self) -> str:
        """Where the arrays are worked on."""
        return settle(self.device)

    @property
    def _processes(self) -> int | None:
        """`n_jobs` is for the CPU: a device is used by one process, in batches."""
        return self.n_jobs if self._device == "cpu" else 1

    def _around(self) -> Float[Array, "N P"]:
        return self._seen.x

    @property
    def _n_sites(self) -> int:
        return self._seen.n_sites

    def _affordable(self, known: Observations) -> How:
        """What to condition on, where this is known: as the user said, or what is cheap enough."""
        if self.conditioning == "all" or self.conditioning == "batch":
            return self.conditioning
        if self.conditioning != "auto":
            return int(self.conditioning)
        B = coregionalization(self.weights_)
        sizes = [float(known.seen[tasks].sum()) for tasks, _ in coupled(B, self._noise)]
        if affordable(len(B), sizes):
            return "all"
        warnings.warn(
            f'conditioning="auto": {len(B)} members × {known.n_readings} readings are too many to '
            f"condition on at once; predictions use the {NEIGHBOURS} nearest readings of each "
            f'output. Set conditioning={NEIGHBOURS} to accept this, or "all".',
            UserWarning,
            stacklevel=4,
        )
        return NEIGHBOURS

    def _believe(
        self, x: Float[Array, "M P"], observed: Any, *, with_cov: bool, include_noise: bool
    ) -> Belief:
        """The members' joined belief about the readings at x, or about the signals beneath."""
        extra, sample = self._told(x, observed, link=include_noise)
        how = self._how(extra)
        members = self._signals(
            x, extra, how, self.kernels_, self.weights_, self._noise, with_cov=with_cov
        )
        diagonals = np.stack([kernel.diag(x) for kernel in self.kernels_])
        before = prior(coregionalization(self.weights_), diagonals)
        left = np.zeros(members.cov.shape[1:])
        if include_noise:
            members, before, noise = turned_to_readings(members, before, self._noise, sample)
            left = left + noise
        mean, cov = join(self.combine, members.mean, members.cov, before)
        if self._lost:
            own = self._lost_entries(_others_known(sample, len(x), self.n_outputs_))
            alone = self._alone(x, extra, how, with_cov=with_cov)
            mean, cov = np.where(own, alone.mean, mean), without(cov, own, alone.cov)
            if include_noise:
                left = without(left, own, self._apart.noise)
        return Belief(mean, cov + left)

    def _sample(
        self,
        x: Float[Array, "M P"],
        observed: Any,
        n: int,
        rng: np.random.Generator,
        *,
        include_noise: bool,
    ) -> Float[Array, "n M D"]:
        """Joint draws over sites and outputs, each from a member chosen at random."""
        extra, sample = self._told(x, observed, link=include_noise)
        how = self._how(extra)
        L, M, D = len(self.weights_), len(x), self.n_outputs_
        if M * D > MOST_AT_ONCE:
            raise ValueError(
                f"{M} sites × {D} outputs are {M * D} values to draw jointly; at most "
                f"{MOST_AT_ONCE} can be drawn. Draw them in tiles, or at fewer sites."
            )
        drawn = np.empty((n, M, D))
        whose = rng.integers(L, size=n)
        covs = np.zeros((D * M, D * M))
        one = self.combine == "mean" or self.combine is mixture
        for member in range(L) if not one else np.unique(whose).tolist():
            known = self._conditioned_on(x, extra, how, member)
            W = self.weights_[member]
            mean, cov = condition_jointly(
                known, x, self.kernels_, W, self._noise, device=self._device
            )
            cov = cov.reshape(D * M, D * M)
            if one:
                rows = whose == member
                signals = draw(np.zeros(D * M), cov, int(rows.sum()), rng).reshape(-1, D, M)
                apart = np.swapaxes(signals, 1, 2)
                if isinstance(how, int):  # each site as its own neighbours have it
                    near = self._signals(
                        x, extra, how, self.kernels_, W[None], self._noise, with_cov=True
                    )
                    turned = map_between(of_sites(cov, M), near.cov[0])
                    drawn[rows] = near.mean[0] + np.einsum("mde,nme->nmd", turned, apart)
                else:
                    drawn[rows] = mean.T + apart
            else:
                covs += cov / L
        if not one:  # correlations between sites as the members have them, on average
            signals = draw(np.zeros(D * M), covs, n, rng).reshape(n, D, M)
            drawn = self._recoloured(np.swapaxes(signals, 1, 2), covs, x, observed)
        if include_noise:
            nothing = np.zeros((M, D, D))
            spread = Belief(drawn, np.broadcast_to(nothing, (n, M, D, D)))
            told, _, left = turned_to_readings(spread, nothing, self._noise, sample)
            drawn = told.mean + draw_each(left, n, rng)
        if self._lost:
            own = self._lost_entries(_others_known(sample, M, D))
            known = self._conditioned_on(x, extra, "all" if how == "batch" else how, 0)
            alone = self._apart
            mean, cov = condition_jointly(
                known, x, alone.kernels, alone.W, alone.noise, device=self._device
            )
            signals = draw(mean.ravel(), cov.reshape(D * M, D * M), n, rng).reshape(n, D, M)
            left = np.broadcast_to(alone.noise * include_noise, (M, D, D))
            drawn = np.where(own, np.swapaxes(signals, 1, 2) + draw_each(left, n, rng), drawn)
        return drawn

    def _recoloured(
        self, drawn: Float[Array, "n M D"], covs: Array, x: Array, observed: Any
    ) -> Float[Array, "n M D"]:
        """Draws of mean zero, given the mean and covariance that the rule has at each site."""
        M = drawn.shape[1]
        belief = self._believe(x, observed, with_cov=True, include_noise=False)
        turned = map_between(of_sites(covs, M), belief.cov[0])
        return belief.mean[0] + np.einsum("mde,nme->nmd", turned, drawn)

    def _told(
        self, x: Float[Array, "M P"], observed: Any, *, link: bool
    ) -> tuple[Observations | None, Float[Array, "M D"] | None]:
        """Readings known at x: those that are new, as a table, and all of each sample, as rows.

        With `link`, a row that equals a training site is taken for that sample: what was read
        of it is known too. What `observed` repeats of it is not counted twice; if it says
        anything else, it is of another sample.
        """
        batches = self.conditioning_ == "batch"
        shared = not batches or len(self._parts) == 1  # what one member knows, all know
        linked = link and shared and (self._settled.correlated or bool(self._lost))
        if observed is None and not linked:
            return None, None
        read = np.full((len(x), self.n_outputs_), np.nan)
        if shared:
            read = (self._seen.at(self._parts[0]) if batches else self._seen).readings_at(x)
        if observed is None:
            return None, read
        given = enter_known(observed, len(x), self.output_names_, self._flat)
        learned = np.where(self._seen.seen.T, self._scale.to_user(self._seen.y.T), np.nan)
        for doubt in about_known(given, learned, self.output_names_):
            warnings.warn(doubt, UserWarning, stacklevel=5)
        sample = self._scale.forward(given, self.output_names_)
        again = np.isclose(sample, read, rtol=1e-9, atol=1e-12) | np.isnan(sample)
        same = again.all(axis=1, keepdims=True)
        extra = Observations.from_table(x, np.where(same, np.nan, sample))
        return extra, np.where(same, read, sample) if linked else sample

    def _how(self, extra: Observations | None) -> How:
        if extra is not None and self.conditioning_ == "all":  # what is known may make it dear
            return self._affordable(self._seen.extended(extra))
        return self.conditioning_

    def _conditioned_on(
        self, x: Array, extra: Observations | None, how: How, member: int
    ) -> Observations:
        """The table that a member predicts from; of neighbours, those of any site of x."""
        known = self._seen
        if how == "batch":
            known = known.at(self._batch(member))
        known = known if extra is None else known.extended(extra)
        if isinstance(how, int):
            known = known.at(sites_near(known, x, self.kernels_, how))
        return known

    def _batch(self, member: int) -> Int[Array, " _"]:
        """Sites of a member's batch; those of the first speak to all others under "grbcm"."""
        if self.combine == "grbcm" and member:
            return np.union1d(self._parts[0], self._parts[member])
        return self._parts[member]

    def _signals(
        self,
        x: Float[Array, "M P"],
        extra: Observations | None,
        how: How,
        kernels: Sequence[Kernel],
        W: Float[Array, "L Q D k"],
        noise: Float[Array, "D D"],
        *,
        with_cov: bool,
    ) -> Belief:
        """What every member believes of the signals."""
        everything = self._seen if extra is None else self._seen.extended(extra)
        device, n_jobs = self._device, self._processes

        def believe(members: Sequence[int]) -> Belief:
            own = W[list(members)]
            if isinstance(how, int):
                return condition_on_neighbours(
                    everything, x, kernels, own, noise, how, device=device
                )
            known = everything
            if how == "batch":
                known = self._conditioned_on(x, extra, how, members[0])
            return condition(known, x, kernels, own, noise, with_cov=with_cov, device=device)

        L = len(W)
        apart = how == "batch" or self.verbose > 0
        runs = [range(i, i + 1) for i in range(L)] if apart else chunks(L, 1.0, n_jobs)
        label = "Predicting: members"
        with threads_for(everything.n_readings if isinstance(how, str) else 0):
            beliefs = each(believe, runs, n_jobs=n_jobs, label=label, verbose=self.verbose)
        return Belief(
            np.concatenate([belief.mean for belief in beliefs]),
            np.concatenate([belief.cov for belief in beliefs]),
        )

    def _alone(self, x: Array, extra: Observations | None, how: How, *, with_cov: bool) -> Belief:
        """What every output's own process says of its signal."""
        alone = self._apart
        how = "all" if how == "batch" else how
        W = alone.W[None]
        return self._signals(x, extra, how, alone.kernels, W, alone.noise, with_cov=with_cov)

    def _lost_entries(self, others: Bool[Array, "M D"]) -> Bool[Array, "M D"]:
        """Where an output keeps to its own process: transfer does not help it, or, where `others`
        of the sample were read and it was not, does not help it even then."""
        loses = {by: np.isin(np.arange(self.n_outputs_), lost) for by, lost in self._lost.items()}
        return np.where(others, loses["output"], loses["site"])


def affordable(n_members: int, sizes: Sequence[float]) -> bool:
    """Whether members may condition on all readings, in coupled groups of these sizes."""
    return n_members * sum(n**3 / 3 for n in sizes) <= AFFORDABLE


def _others_known(sample: Float[Array, "M D"] | None, M: int, D: int) -> Bool[Array, "M D"]:
    """Whether an output was not read of a sample of which another was."""
    known = np.zeros((M, D), bool) if sample is None else ~np.isnan(sample)
    return known.any(axis=1, keepdims=True) & ~known
