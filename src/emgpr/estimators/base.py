"""The machine: from a table to a fitted mixture of latent processes, as in the paper."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from emgpr.checkpoint import Ledger
from emgpr.ensemble import split_sites
from emgpr.estimators.believer import Believer
from emgpr.estimators.entering import Entering
from emgpr.estimators.foresight import Foresight
from emgpr.estimators.insight import Insight
from emgpr.estimators.keeping import all_or_nothing, keeping
from emgpr.estimators.settings import (
    FEW_SITES,
    Configured,
    check_settings,
    kernels_for,
    settle,
)
from emgpr.estimators.standing import EnsembleWarning, left_behind, standing
from emgpr.estimators.stored import Stored
from emgpr.estimators.switch_off import switch_off
from emgpr.estimators.validation import Validation, losing_outputs
from emgpr.execution import RandomState, threads_for
from emgpr.latents import (
    Latent,
    borrow_latents,
    choose_kernels,
    fit_latents,
    noise_prior,
    variances,
)
from emgpr.observations import Observations
from emgpr.persistence import PathLike
from emgpr.weights import (
    FittedWeights,
    Mixture,
    Refined,
    Stage,
    apart,
    arrange,
    fit_weights,
    refine,
    silenced,
    thinned,
)

Array = np.ndarray

CLEAR = 1e-4  # noise variance of a standardised output that is as good as none

Conditioning: TypeAlias = Literal["auto", "all", "batch"] | int
Kernels: TypeAlias = Kernel | Sequence[Kernel] | Literal["auto"] | None
Learner: TypeAlias = (
    Literal["exact"] | GaussianProcessRegressor | Sequence[GaussianProcessRegressor]
)


class MultiOutputGP(Foresight, Entering, Configured, Stored, Insight, Validation, Believer):
    """Every estimator of the family; each makes some of these settings its parameters."""

    transfers = True  # whether outputs learn from one another
    n_latents: int | Literal["auto"] | None = None
    rank: int | None = 1
    batch_size: int | Literal["auto"] | None = None
    n_members: int | None = None
    partition: Literal["random", "strided"] = "random"
    noise: Literal["auto", "independent", "correlated"] = "independent"
    refine: int | Literal["auto", "joint"] = "joint"
    prior: Literal["weak"] | None = None
    transfer: Literal["full", "safe"] = "full"

    def __init__(
        self,
        kernel: Kernels = None,
        *,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "exact",
        transform: Any = None,
        normalize_y: bool = True,
        crs: str | None = None,
        max_iter: int = 120,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: RandomState = None,
        checkpoint: PathLike | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.conditioning = conditioning
        self.latent_learner = latent_learner
        self.transform = transform
        self.normalize_y = normalize_y
        self.crs = crs
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs X (N, P) and outputs y (N, D), NaN where not measured.

        Arrays, pandas, polars or Arrow tables; those of Dask, or xarray's, are brought into memory.
        """
        check_settings(self)
        with all_or_nothing(self):
            inputs, Y = self._enter(X, y)
            with keeping(self, inputs, Y) as (ledger, rng):
                seen = self._standardise(inputs, Y, ledger)
                self._settled = settle(self, seen)
                parts = self._deal(seen, rng)  # the ensemble: sites of each member
                with threads_for(max(seen.n_sites, seen.n_tasks * max(map(len, parts)))):
                    tasks = self._learn_latents(seen, rng, ledger)  # step 1
                    # step 2
                    parts, mixture, members = self._learn_weights(seen, parts, tasks, ledger)
                    # What no transfer would have been.
                    self._apart = silenced(apart(tasks, seen.n_tasks), seen.silent)
                    self._remember(seen, parts, mixture, members)
                    if self.transfer == "safe" and seen.n_tasks > 1:
                        self._keep_apart(
                            {by: losing_outputs(self, by) for by in ("site", "output")}
                        )
        return self

    def _learn_latents(
        self, seen: Observations, rng: np.random.Generator, ledger: Ledger
    ) -> list[Latent]:
        kernels = kernels_for(self.kernel, self._settled.n_latents, seen)
        learn = partial(
            fit_latents,
            seen,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            rng=rng,
            weak_prior=self.prior == "weak",
            n_jobs=self._processes,
            device=self._device,
            verbose=self.verbose,
            ledger=ledger,
        )
        if isinstance(self.latent_learner, str):
            automatic = isinstance(self.kernel, str)
            tasks = choose_kernels(seen, learn) if automatic else learn(kernels)
        elif len(kernels) > seen.n_tasks:
            raise ValueError(
                f"latent_learner gives a process for each of {seen.n_tasks} outputs, and kernel "
                f"lists {len(kernels)}; give one kernel, or leave step 1 to 'exact'."
            )
        else:
            tasks = borrow_latents(
                seen,
                self.latent_learner,
                kernels,
                self._scale.scale,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                ledger=ledger,
            )
        self.n_iter_ = max(task.n_iter for task in tasks)
        self.converged_ = not any(task.trouble for task in tasks)
        for i, task in enumerate(tasks):
            if task.trouble:
                name = self.output_names_[i % len(self.output_names_)]
                self._warn(f"Step 1 of output {name!r}: {task.trouble}.")
        return tasks

    def _arrange(self, tasks: list[Latent], seen: Observations) -> Mixture:
        Q, rank = self._settled.n_latents, self._settled.rank
        listed = isinstance(self.kernel, list | tuple)
        return arrange(tasks, seen, Q, rank, own_kernels=listed)

    def _deal(self, seen: Observations, rng: np.random.Generator) -> list[Int[Array, " _"]]:
        plan = self._settled
        parts = split_sites(seen.n_sites, plan.batch_size, self.partition, rng)
        least, n = min(map(len, parts)), plan.n_weights
        if self.n_members is None and len(parts) > len(parts[: plan.n_members]):
            self._advise(
                f'batch_size="auto": {seen.n_readings} readings are too many to learn from at '
                f"once; {plan.n_members} batches of {least} sites are learned from, all are "
                "predicted from. Set n_members or batch_size to learn from more."
            )
        if plan.refine and len(parts) > 1 and least < FEW_SITES * n:
            self._advise(
                f"Batches of {least} sites are small to learn kernels and noise beside {n} weights "
                f"an output of their own, and may leave no noise; set batch_size={FEW_SITES * n} "
                "or more, None for all sites, or refine=0 to stop after the paper's two steps."
            )
        return parts[: plan.n_members]

    def _learn_weights(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        tasks: list[Latent],
        ledger: Ledger,
    ) -> tuple[list[Int[Array, " _"]], Mixture, FittedWeights]:
        start = silenced(self._arrange(tasks, seen), seen.silent)  # w_d = δ_d
        noises = np.diagonal(start.noise)[~seen.silent]
        if self.noise == "auto" and noises.min(initial=np.inf) < CLEAR:
            # Readings free of noise have none that could be correlated.
            self._settled = replace(self._settled, correlated=False)
        # The joint ascent moves on from here in any case: some of the sites show the way.
        joint = self._settled.refine == "joint"
        sites = thinned(seen, parts, start.W.size) if joint else parts
        members = fit_weights(
            seen,
            sites,
            start,
            max_iter=self.max_iter,
            loosely=joint,
            n_jobs=self._processes,
            device=self._device,
            verbose=self.verbose,
            ledger=ledger,
        )
        L, why = len(parts), members.trouble
        parts, members = standing(parts, members, L)
        learned = self._learn_on(seen, parts, start, members, ledger)
        if isinstance(self.n_latents, str):
            relearn = partial(self._relearn, seen, parts, ledger)
            learned = switch_off(seen, learned, relearn, device=self._device)
        parts, members = standing(parts, learned.members, L)
        self.n_members_failed_ = L - len(parts)
        if self.n_members_failed_:
            why = why or members.trouble
            warnings.warn(left_behind(len(parts), L, why), EnsembleWarning, stacklevel=3)
        self.history_ = learned.history
        if learned.trouble:
            self.converged_ = False
            self._warn(learned.trouble)
        return parts, learned.mixture, members

    def _learn_on(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        start: Mixture,
        members: FittedWeights,
        ledger: Ledger,
    ) -> Refined:
        """The ascent continued, if it is to be."""
        if not self._settled.refine:
            lost = int((~members.converged).sum())
            trouble = (
                f"Step 2: {lost} of {len(parts)} members did not converge within "
                f"max_iter={self.max_iter}; try more."
            )
            prior = noise_prior(variances(seen), self.prior == "weak")
            height = float(members.log_likelihood.sum() + prior(start.noise)[0])
            stage = Stage("weights", height)
            return Refined(start, members, [stage], trouble if lost else "")
        refined = refine(
            seen,
            parts,
            start,
            members,
            sweeps=self._settled.refine,
            correlated=self._settled.correlated,
            weak_prior=self.prior == "weak",
            max_iter=self.max_iter,
            n_jobs=self._processes,
            device=self._device,
            names=self.output_names_,
            verbose=self.verbose,
            ledger=ledger,
        )
        trouble = f"Refinement: {refined.trouble}." if refined.trouble else ""
        return replace(refined, trouble=trouble)

    def _relearn(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        ledger: Ledger,
        mixture: Mixture,
        W: Float[Array, "L Q D k"],
    ) -> Refined:
        """Without a latent that was switched off."""
        if self._settled.refine == "joint":
            nothing = np.zeros(len(W))
            members = FittedWeights(W, nothing, nothing > 0, nothing.astype(int))
        else:
            members = fit_weights(
                seen,
                parts,
                mixture,
                W=W,
                max_iter=self.max_iter,
                n_jobs=self._processes,
                device=self._device,
                ledger=ledger,
            )
        return self._learn_on(seen, parts, mixture, members, ledger)

    def _warn(self, what: str) -> None:
        warnings.warn(what, ConvergenceWarning, stacklevel=4)

    def _for_blocks(self) -> Self:
        own = super()._for_blocks()
        own.latent_learner = "exact"  # who learned it, and with how much memory, matters no more
        return own
