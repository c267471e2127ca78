"""The machine: from a table to a fitted mixture of latent processes, as in the paper."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr.ensemble import split_sites
from emgpr.estimators.door import enter_inputs, enter_outputs, refuse_unobserved
from emgpr.estimators.predictor import Predictor
from emgpr.estimators.settings import Unread, check_settings
from emgpr.execution import RandomState, generator, threads_for
from emgpr.latents import Latent, borrow_latents, fit_latents, is_length_scale
from emgpr.observations import Observations
from emgpr.transforms import OutputScale
from emgpr.weights import FittedWeights, Mixture, arrange, fit_weights, refine_jointly

Array = np.ndarray
Conditioning: TypeAlias = Literal["auto", "all", "batch"] | int
Learner: TypeAlias = (
    Literal["exact"] | GaussianProcessRegressor | Sequence[GaussianProcessRegressor]
)


class MultiOutputGP(Predictor):
    """Every estimator of the family; each makes some of these settings its parameters."""

    n_latents: int | None = None
    rank: int = 1
    batch_size: int | Literal["auto"] | None = None
    n_members: int | None = None
    partition: Literal["random", "strided"] = "random"
    refine: Literal[0, "joint"] = "joint"
    transform = Unread()

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel] | None = None,
        *,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "exact",
        transform: Literal["log"] | None = None,
        normalize_y: bool = True,
        max_iter: int = 120,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.conditioning = conditioning
        self.latent_learner = latent_learner
        self.transform = transform
        self.normalize_y = normalize_y
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, also those of the kernel and the like."""
        params = {name: vars(self)[name] for name in self._get_param_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    nested = value.get_params()
                    params.update({f"{name}__{key}": inner for key, inner in nested.items()})
        return params

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs X (N, P) and outputs y (N, D), NaN where not measured."""
        check_settings(self)
        rng = generator(self.random_state)
        seen = self._enter(X, y)
        parts = self._deal(seen, rng)  # the ensemble: sites of each member
        with threads_for(max(seen.n_sites, seen.n_tasks * max(map(len, parts)))):
            tasks = self._learn_latents(seen, rng)  # step 1
            mixture, members = self._learn_weights(seen, parts, tasks)  # step 2
        return self._remember(seen, parts, mixture, members)

    def _enter(self, X: Any, y: Any) -> Observations:
        """Standardised observations; remembers names and scales."""
        inputs = enter_inputs(self, X, fitting=True)
        Y, self.output_names_, self._flat = enter_outputs(y, len(inputs))
        refuse_unobserved(Y, self.output_names_)
        # A site where nothing was measured teaches nothing and is dealt to no member.
        self._rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
        inputs, Y = inputs[self._rows], Y[self._rows]
        self._doubt_single_values(Y)
        self.n_outputs_ = Y.shape[1]
        self._scale = OutputScale.learned(
            Y,
            log=vars(self)["transform"] == "log",
            normalize=self.normalize_y,
            names=self.output_names_,
        )
        return Observations.from_table(inputs, self._scale.forward(Y, self.output_names_))

    def _doubt_single_values(self, Y: Float[Array, "N D"]) -> None:
        for d in np.flatnonzero(np.nanmin(Y, axis=0) == np.nanmax(Y, axis=0)).tolist():
            n = int((~np.isnan(Y[:, d])).sum())
            warnings.warn(
                f"Output {self.output_names_[d]!r} has one value only ({n} readings of "
                f"{np.nanmax(Y[:, d]):g}), which says nothing of how it varies; its uncertainty "
                "means nothing. Leave it out, or give readings that differ.",
                UserWarning,
                stacklevel=4,
            )

    def _n_latents(self, D: int) -> int:
        return D if self.n_latents is None else self.n_latents

    def _kernels(self, seen: Observations) -> list[Kernel]:
        """The kernel of every task; with a list, also those of latents beyond the tasks."""
        D, P = seen.n_tasks, seen.x.shape[1]
        given = RBF() if self.kernel is None else self.kernel
        if isinstance(given, Kernel):
            kernels = [clone(given)] * D
        else:
            Q = self._n_latents(D)
            if len(given) != Q:
                raise ValueError(
                    f"kernel holds {len(given)} kernels for {Q} latent processes; give "
                    "one kernel for all, or a list with one for each."
                )
            kernels = [clone(given[i % Q]) for i in range(max(D, Q))]
        for kernel in kernels:
            for parameter in kernel.hyperparameters:
                n = parameter.n_elements
                if is_length_scale(kernel, parameter.name) and n not in (1, P):
                    raise ValueError(
                        f"kernel {kernel} has {n} length-scales and X has {P} columns; give one "
                        "length-scale for all columns, or one for each."
                    )
        return kernels

    def _learn_latents(self, seen: Observations, rng: np.random.Generator) -> list[Latent]:
        kernels = self._kernels(seen)
        if isinstance(self.latent_learner, str):
            tasks = fit_latents(
                seen,
                kernels,
                n_restarts=self.n_restarts,
                max_iter=self.max_iter,
                rng=rng,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
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
            )
        self.n_iter_ = max(task.n_iter for task in tasks)
        self.converged_ = not any(task.trouble for task in tasks)
        for i, task in enumerate(tasks):
            if task.trouble:
                name = self.output_names_[i % len(self.output_names_)]
                self._warn(f"Step 1 of output {name!r}: {task.trouble}.")
        return tasks

    def _arrange(self, tasks: list[Latent], seen: Observations) -> Mixture:
        Q = self._n_latents(seen.n_tasks)
        listed = isinstance(self.kernel, list | tuple)
        return arrange(tasks, seen, Q, self.rank, own_kernels=listed)

    def _deal(self, seen: Observations, rng: np.random.Generator) -> list[Int[Array, " _"]]:
        D = seen.n_tasks
        size = self.batch_size
        if size == "auto":
            # N₀·D readings must tell Q·D·k weights; a single output has nothing to mix, and
            # noise that is learned beside each small batch's own weights would be explained away.
            size = None if D == 1 or self.refine else max(D**2, 3 * self._n_latents(D) * self.rank)
        parts = split_sites(seen.n_sites, size, self.partition, rng)
        return parts[: self.n_members]

    def _learn_weights(
        self, seen: Observations, parts: list[Int[Array, " _"]], tasks: list[Latent]
    ) -> tuple[Mixture, FittedWeights]:
        start = self._arrange(tasks, seen)  # w_d = δ_d
        members = fit_weights(
            seen, parts, start, max_iter=self.max_iter, n_jobs=self.n_jobs, verbose=self.verbose
        )
        lost = int((~members.converged).sum())
        if lost and not self.refine:
            self.converged_ = False
            self._warn(
                f"Step 2: {lost} of {len(parts)} members did not converge within "
                f"max_iter={self.max_iter}; try more."
            )
        if not self.refine:
            return start, members
        start, members, trouble = refine_jointly(
            seen, parts, start, members, max_iter=self.max_iter, names=self.output_names_
        )
        if trouble:
            self.converged_ = False
            self._warn(f"Joint refinement: {trouble}.")
        return start, members

    def _warn(self, what: str) -> None:
        warnings.warn(
            what,
            ConvergenceWarning,
            stacklevel=4,
        )
