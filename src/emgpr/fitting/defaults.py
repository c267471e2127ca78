"""Parameters of the estimators, their validation, and the values that "auto" and None stand for."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias

from emgpr.arrays import check_device
from emgpr.ensemble import PARTITIONS, RULES
from emgpr.geo import coordinate_system
from emgpr.kernels import NAMED_KERNELS
from emgpr.latents import LEARNERS, ExternalLearners, LatentLearner, check_settings, is_external
from emgpr.observations import Observations
from emgpr.parameter_checks import (
    Kernels,
    Transforms,
    check_choice,
    check_count,
    check_kernel,
    check_options,
    check_transform,
    is_auto,
)
from emgpr.transforms import TRANSFORM_NAMES, check_compositions, check_output_bounds
from emgpr.weights import automatic_neighbours

# If there are fewer sites for each weight vector of an output, noise and weights cannot be
# estimated together.
MIN_SITES_PER_WEIGHT_VECTOR = 5
# If there are fewer readings for each parameter, a smaller model is used. Rank 2 requires twice as
# many readings.
MIN_READINGS_PER_PARAMETER = 5
MAX_INTRINSIC_OUTPUTS = 20  # for which few readings mean one matrix B of full rank, with D² weights
MAX_SITES_AT_ONCE = 1500  # in step 2 of a single output, with batch_size="auto"
# Settings without transfer: only step 1, with a latent process for each output.
INDEPENDENT: Mapping[str, Any] = {
    "couples_outputs": False,
    "refine": 0,
    "n_latents": None,
    "rank": 1,
    "noise": "independent",
    "batch_size": None,
    "n_members": None,
}

Learner: TypeAlias = str | LatentLearner | ExternalLearners


@dataclass(frozen=True)
class FitSettings:
    """All parameters of a fit, as set by the user."""

    kernel: Kernels = None
    n_latents: int | Literal["auto"] | None = None
    rank: int | None = 1
    noise: Literal["auto", "independent", "correlated"] = "independent"
    prior: Literal["weak"] | None = None
    batch_size: int | Literal["auto"] | None = None
    n_members: int | None = None
    partition: Literal["stratified", "random", "strided"] = "stratified"
    combine: str | Callable[..., Any] = "mean"
    conditioning: Literal["auto", "all", "batch"] | int = "auto"
    n_neighbours: int | Literal["auto"] | None = "auto"
    refine: int | Literal["auto", "joint"] = "joint"
    transfer: Literal["auto", "full", "none"] = "full"
    parameter_uncertainty: bool = True
    latent_learner: Learner = "auto"
    output_transform: Transforms = None
    output_bounds: Any = "auto"
    compositions: Sequence[Sequence[str]] | None = None
    normalize_y: bool = True
    crs: str | None = None
    max_iter: int = 120
    n_restarts: int = 5
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: Any = None
    checkpoint: Any = None
    verbose: int = 0
    couples_outputs: bool = True  # False: independent outputs, without step 2
    output_variances: bool = False  # B_q = W_q W_qᵀ + diag(κ_q)
    # Residual processes and coefficients of the regressions on known outputs.
    residual_kernel: str = "matern12"
    varying_coefficients: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> "FitSettings":
        """Create validated settings from the parameters of an estimator."""
        if params.get("transfer") == "safe":  # the name of "auto" in earlier versions
            params = {**params, "transfer": "auto"}
        settings = cls(**params)
        settings.validate()
        return replace(settings, **INDEPENDENT) if settings.transfer == "none" else settings

    @property
    def chooses_kernel(self) -> bool:
        """Whether step 1 chooses the kernel of each output."""
        return is_auto(self.kernel)

    @property
    def lists_kernels(self) -> bool:
        """Whether the user passed a list of kernels, one for each latent process."""
        return isinstance(self.kernel, list | tuple)

    def validate(self) -> None:
        """Raise ValueError for an invalid parameter, with a message that says what is expected."""
        check_device(self.device)
        check_options(
            normalize_y=self.normalize_y, n_jobs=self.n_jobs, random_state=self.random_state,
            verbose=self.verbose,
        )  # fmt: skip
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ValueError(
                f"checkpoint={self.checkpoint!r}; expected the path of a file, or None."
            )
        for name in ("max_iter", "n_restarts"):
            check_count(name, getattr(self, name))
        for name in ("rank", "n_members"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        for name in ("n_latents", "batch_size", "n_neighbours"):
            value = getattr(self, name)
            if value is not None and not is_auto(value):
                check_count(name, value, ' or "auto" or None')
        if self.conditioning not in ("auto", "all", "batch"):
            check_count(
                "conditioning", self.conditioning,
                ' (neighbouring sites) or "auto", "all" or "batch"',
            )  # fmt: skip
        check_choice("partition", self.partition, PARTITIONS)
        check_transform(self.output_transform, (*TRANSFORM_NAMES, "auto"))
        check_output_bounds(self.output_bounds)
        check_compositions(self.compositions)
        check_choice("transfer", self.transfer, ("auto", "full", "none"))
        check_choice("residual_kernel", self.residual_kernel, tuple(NAMED_KERNELS))
        for name in ("parameter_uncertainty", "varying_coefficients"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name}={getattr(self, name)!r}; expected True or False.")
        check_combine(self.combine)
        check_choice("noise", self.noise, ("auto", "independent", "correlated"))
        check_choice("prior", self.prior, ("weak", None))
        refines = self.refine in ("auto", "joint") or self.refine == 0
        if not refines or self.refine is False:
            check_count("refine", self.refine, ', 0, "joint" or "auto"')
        if self.noise == "correlated" and self.refine == 0:
            raise ValueError(
                'noise="correlated" is estimated only by the optimisation that follows the two '
                'steps, which refine=0 omits; set refine="joint", or noise="independent".'
            )
        if self.crs is not None:
            coordinate_system(self.crs)
        check_kernel(self.kernel, ("auto", *NAMED_KERNELS))
        self._check_learner()

    def _check_learner(self) -> None:
        learner = self.latent_learner
        if isinstance(learner, str) and learner in ("auto", *LEARNERS):
            return
        is_learner = isinstance(learner, LatentLearner) and not isinstance(learner, type)
        if not (is_learner or is_external(learner)):
            names = ", ".join(f'"{name}"' for name in ("auto", *LEARNERS))
            raise ValueError(
                f"latent_learner={learner!r}; expected {names}, an object with a method learn(x, "
                "y, kernel), a scikit-learn GaussianProcessRegressor, or a list with one "
                "regressor for each output."
            )
        check_settings(learner)


def check_combine(combine: Any) -> None:
    """Raise ValueError unless this is the name of a combination rule or a function."""
    if not callable(combine):
        check_choice("combine", combine, tuple(RULES))


@dataclass(frozen=True)
class ResolvedParams:
    """Parameters of a fit, with values derived from the data instead of "auto" and None."""

    n_latents: int
    rank: int
    refine: int | Literal["joint"]
    correlated: bool  # whether the noise terms of different outputs can be correlated
    batch_size: int | None  # number of sites; None: all
    n_members: int | None  # maximum number of members; None: as many as there are batches
    n_neighbours: int | None = None  # in Vecchia's likelihood; None: the exact likelihood

    @property
    def n_weights(self) -> int:
        """Number of weights of each output."""
        return self.n_latents * self.rank


def resolve_params(settings: FitSettings, observations: Observations) -> ResolvedParams:
    """Replace "auto" and None with values derived from the data.

    By default, the joint optimisation uses Vecchia's likelihood of all sites. If the user sets
    batches, it uses the exact likelihood of each batch. If these batches are too small for this
    optimisation, only the two steps of the paper are run. Correlated noise requires the joint
    optimisation. If there are few readings for each parameter, the rank is 1. If there are fewer,
    the noise terms of different outputs are independent. If there are fewer still, all latent
    processes have the same kernel: one coregionalisation matrix has full rank (an intrinsic model).
    If the user set the rank, or with many outputs, the number of latent processes is reduced.
    """
    N, D, n = observations.n_sites, observations.n_outputs, observations.n_readings
    Q = D if settings.n_latents is None or is_auto(settings.n_latents) else int(settings.n_latents)
    n_vectors = Q * min(int(settings.rank or 1), D)
    size, refine, n_members = map(
        _as_int, (settings.batch_size, settings.refine, settings.n_members)
    )
    if is_auto(refine):
        small = isinstance(size, int) and size < MIN_SITES_PER_WEIGHT_VECTOR * n_vectors
        refine = 0 if small and settings.noise != "correlated" else "joint"
    if is_auto(size) and refine:
        size = None if n_members in (None, 1) else max(1, N // n_members)
    elif is_auto(size) and D == 1:
        size = None if N <= MAX_SITES_AT_ONCE else MAX_SITES_AT_ONCE
    elif is_auto(size):
        size = max(D**2, 3 * n_vectors)  # the readings in a batch must determine Q·D·k weights
    automatic = is_auto(settings.refine) and refine != 0
    n_correlations = D * (D - 1) // 2
    intrinsic = False
    too_few = n < MIN_READINGS_PER_PARAMETER * (Q * D + D + Q + n_correlations)
    if settings.n_latents is None and automatic and not settings.lists_kernels:
        # The largest Q for which there are enough readings for Q·D + D + Q parameters.
        Q = max(1, min(D, int((n / MIN_READINGS_PER_PARAMETER - D) // (D + 1))))
        intrinsic = Q < D <= MAX_INTRINSIC_OUTPUTS and settings.rank is None
        Q = 1 if intrinsic else Q
    correlated = settings.noise == "correlated" or (
        settings.noise == "auto" and bool(refine) and not (automatic and too_few)
    )
    sites = N if size is None else min(size, N)
    n_parameters = 2 * Q * D + D + Q + n_correlations
    allows_rank_2 = (
        sites >= 2 * MIN_SITES_PER_WEIGHT_VECTOR * Q
        and n >= 2 * MIN_READINGS_PER_PARAMETER * n_parameters
    )
    rank = int(settings.rank or (D if intrinsic else 2 if refine and allows_rank_2 else 1))
    whole = refine == "joint" and (size is None or size >= N)
    n_neighbours = _n_neighbours(settings.n_neighbours, N, D) if whole else None
    return ResolvedParams(
        Q, min(rank, D), refine, correlated and D > 1, size, n_members, n_neighbours
    )


def _as_int(value: Any) -> Any:
    return int(value) if isinstance(value, Integral) else value


def _n_neighbours(given: int | Literal["auto"] | None, N: int, D: int) -> int | None:
    if given is None:
        return None
    return automatic_neighbours(N, D) if given == "auto" else min(int(given), max(N - 1, 0))
