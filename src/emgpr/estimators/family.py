"""The family: models that are the same machine with other settings."""

from typing import Any

import numpy as np
from jaxtyping import Int

from emgpr.checkpoint import Ledger
from emgpr.estimators.base import Conditioning, MultiOutputGP
from emgpr.estimators.learning import Kernels, Learner
from emgpr.execution import RandomState
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.persistence import PathLike
from emgpr.weights import FittedWeights, Mixture, with_own_parts, without_transfer

Array = np.ndarray


class IndependentGP(MultiOutputGP):
    """No transfer: every output its own Gaussian process (step 1 alone, weights δ).

    The baseline that every multi-output model must beat. Parameters as in `EMGPR`.

    >>> from emgpr import IndependentGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)]) + 0.1 * np.random.default_rng(0).normal(size=(30, 2))
    >>> IndependentGP(random_state=0).fit(X, Y).predict([[1.57]]).round()
    array([[1., 0.]])
    """

    refine = 0
    transfers = False

    def _learn_weights(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        tasks: list[Latent],
        ledger: Ledger,
    ) -> tuple[list[Int[Array, " _"]], Mixture, FittedWeights]:
        start = self._arrange(tasks, seen)
        self.n_members_failed_ = 0
        return parts, start, without_transfer(start, sum(task.log_likelihood for task in tasks))


class LMC(MultiOutputGP):
    """Linear model of coregionalisation: Q latents, each heard through a matrix of rank k.

    Kernels, noise and weights are learned jointly from all readings, starting from the
    two steps. Parameters as in `EMGPR`.

    >>> from emgpr import LMC
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.sin(X) + 0.5 * np.cos(3 * X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> LMC(n_latents=2, rank=1, random_state=0).fit(X, Y).coregionalization_.shape
    (2, 2, 2)
    """

    def __init__(
        self,
        kernel: Kernels = None,
        *,
        n_latents: int | None = None,
        rank: int = 1,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "auto",
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
        super().__init__(
            kernel,
            conditioning=conditioning,
            latent_learner=latent_learner,
            transform=transform,
            normalize_y=normalize_y,
            crs=crs,
            max_iter=max_iter,
            n_restarts=n_restarts,
            n_jobs=n_jobs,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        self.n_latents = n_latents
        self.rank = rank


class ICM(MultiOutputGP):
    """Intrinsic coregionalisation: one kernel, B = WWᵀ + diag(κ) with W of this rank.

    The last D columns of `weights_` are diag(√κ). Learned jointly, as `LMC`; on a complete table
    each step costs O(N³ + D³), not O(N³D³).

    >>> from emgpr import ICM
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), 2 - np.sin(X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> model = ICM(rank=1, random_state=0).fit(X, Y)
    >>> np.sign(model.coregionalization_[0])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    n_latents = 1

    def __init__(
        self,
        kernel: Kernels = None,
        *,
        rank: int = 1,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "auto",
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
        super().__init__(
            kernel,
            conditioning=conditioning,
            latent_learner=latent_learner,
            transform=transform,
            normalize_y=normalize_y,
            crs=crs,
            max_iter=max_iter,
            n_restarts=n_restarts,
            n_jobs=n_jobs,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        self.rank = rank

    def _arrange(self, tasks: list[Latent], seen: Observations) -> Mixture:
        return with_own_parts(super()._arrange(tasks, seen))


class SLFM(MultiOutputGP):
    """Semiparametric latent factor model: Q latents of rank one, fewer than outputs as a rule.

    Learned jointly, as `LMC`.

    >>> from emgpr import SLFM
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(3 * X), np.sin(X) - np.cos(3 * X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> SLFM(n_latents=2, random_state=0).fit(X, Y).weights_.shape
    (1, 2, 3, 1)
    """

    def __init__(
        self,
        kernel: Kernels = None,
        *,
        n_latents: int = 2,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "auto",
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
        super().__init__(
            kernel,
            conditioning=conditioning,
            latent_learner=latent_learner,
            transform=transform,
            normalize_y=normalize_y,
            crs=crs,
            max_iter=max_iter,
            n_restarts=n_restarts,
            n_jobs=n_jobs,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        self.n_latents = n_latents
