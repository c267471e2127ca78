"""Steps 1 and 2 and the ascent after them, as an estimator's settings have it."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from emgpr.checkpoint import Ledger
from emgpr.ensemble import split_sites
from emgpr.estimators.believer import Believer
from emgpr.estimators.entering import Entering
from emgpr.estimators.settings import FEW_SITES, kernels_for
from emgpr.estimators.standing import EnsembleWarning, left_behind, standing
from emgpr.estimators.switch_off import switch_off
from emgpr.latents import (
    LEARNERS,
    Latent,
    LatentLearner,
    Lenders,
    borrow_latents,
    choose_kernels,
    choose_learner,
    fit_latents,
    is_lent,
    noise_prior,
    variances,
)
from emgpr.observations import Observations
from emgpr.weights import (
    FittedWeights,
    Mixture,
    Refined,
    Stage,
    arrange,
    fit_weights,
    refine,
    silenced,
    thinned,
)

Array = np.ndarray
Parts = list[Int[Array, " _"]]

CLEAR = 1e-4  # noise variance of a standardised output that is as good as none

Kernels: TypeAlias = Kernel | Sequence[Kernel] | Literal["auto"] | None
Learner: TypeAlias = (
    Literal["auto", "exact", "poe", "dtc", "fitc", "pitc", "vfe", "variogram"]
    | LatentLearner
    | Lenders
)


class Learning(Entering, Believer):
    """From a standardised table to kernels, noise and weights."""

    kernel: Kernels
    latent_learner: Learner
    n_latents: int | Literal["auto"] | None = None
    n_members: int | None = None
    partition: Literal["stratified", "random", "strided"] = "stratified"
    noise: Literal["auto", "independent", "correlated"] = "independent"
    prior: Literal["weak"] | None = None
    max_iter: int
    n_restarts: int

    def _learn_latents(
        self, seen: Observations, rng: np.random.Generator, ledger: Ledger
    ) -> list[Latent]:
        """Step 1, by whoever does it."""
        kernels = kernels_for(self.kernel, self._settled.n_latents, seen)
        self.latent_learner_, why = choose_learner(self.latent_learner, seen)
        if why:
            self._advise(why)
        if is_lent(self.latent_learner_):
            tasks = self._borrow(seen, kernels, ledger)
        else:
            named = isinstance(self.latent_learner_, str)
            learn = partial(
                fit_latents,
                seen,
                learner=LEARNERS[self.latent_learner_] if named else self.latent_learner_,
                n_restarts=self.n_restarts,
                max_iter=self.max_iter,
                rng=rng,
                weak_prior=self.prior == "weak",
                n_jobs=self._processes,
                device=self._device,
                verbose=self.verbose,
                ledger=ledger,
            )
            automatic = isinstance(self.kernel, str)
            tasks = choose_kernels(seen, learn) if automatic else learn(kernels)
        self.n_iter_ = max(task.n_iter for task in tasks)
        self.converged_ = not any(task.trouble for task in tasks)
        for i, task in enumerate(tasks):
            if task.trouble:
                name = self.output_names_[i % len(self.output_names_)]
                self._warn(f"Step 1 of output {name!r}: {task.trouble}.")
        return tasks

    def _borrow(self, seen: Observations, kernels: list[Kernel], ledger: Ledger) -> list[Latent]:
        if len(kernels) > seen.n_tasks:
            raise ValueError(
                f"latent_learner gives a process for each of {seen.n_tasks} outputs, and kernel "
                f"lists {len(kernels)}; give one kernel, or leave step 1 to 'exact'."
            )
        return borrow_latents(
            seen,
            self.latent_learner_,
            kernels,
            self._scale.scale,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            ledger=ledger,
        )

    def _arrange(self, tasks: list[Latent], seen: Observations) -> Mixture:
        Q, rank = self._settled.n_latents, self._settled.rank
        listed = isinstance(self.kernel, list | tuple)
        return arrange(tasks, seen, Q, rank, own_kernels=listed)

    def _deal(self, seen: Observations, rng: np.random.Generator) -> Parts:
        """The sites of each member."""
        plan = self._settled
        parts = split_sites(seen.x, plan.batch_size, self.partition, rng, plan.n_members)
        least, n = min(map(len, parts)), plan.n_weights
        if self.n_members is None and sum(map(len, parts)) < seen.n_sites:
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
        return parts

    def _learn_weights(
        self,
        seen: Observations,
        parts: Parts,
        tasks: list[Latent],
        ledger: Ledger,
    ) -> tuple[Parts, Mixture, FittedWeights]:
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
        parts: Parts,
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
        parts: Parts,
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
