"""Interface of the learners for step 1, and descriptions of their work for cost estimates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

Array = np.ndarray

NOISE_BOUNDS = (1e-8, 1e2)  # relative to the variance of a standardised output


@dataclass(frozen=True)
class Latent:
    """The kernel and the noise variance fitted to one output, and how the search ended."""

    kernel: Kernel
    noise: float
    log_likelihood: float
    noise_bounds: tuple[float, float] = NOISE_BOUNDS
    n_iter: int = 0
    message: str = ""  # empty if the search converged inside its bounds
    n_readings: int | None = None  # number of readings in the likelihood; None means all


@runtime_checkable
class LatentLearner(Protocol):
    """Any object that fits a kernel and a noise variance to one output.

    `emgpr.latents.check_learner` tests whether an object can be used as a learner. If the object
    also has the methods `describe_approximation(n)` and `work(n)` of `BaseLearner`, the plans of
    `emgpr.planning` include its approximation and its cost.
    """

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to standardised readings y at sites x.

        `kernel` determines the form of the fitted kernel. A learner can ignore the hyper-parameters
        of `kernel` unless the user set them.
        """
        ...


@dataclass(frozen=True)
class Evaluations:
    """Number of evaluations of an objective, and the work needed for each evaluation."""

    times: int
    likelihoods: int = 0  # number of dense likelihoods
    n_readings: int = 0  # number of readings in each likelihood
    blocks: float = 0.0  # number of other matrices that are factorised
    block_size: int = 0  # number of rows of each of these other matrices
    kernel_values: float = 0.0  # number of other kernel values, computed with derivatives
    operations: float = 0.0  # other floating-point operations, in matrix products
    calls: float = 1.0  # Python overhead, relative to that of a dense likelihood


@dataclass(frozen=True)
class Work:
    """The work of fitting one kernel to one output, from which `emgpr.planning` estimates costs.

    `side` is the number of rows of the largest matrix that is factorised, and `n_matrices` is the
    number of matrices of that size in each evaluation. A fit takes about `evaluations` evaluations.
    """

    method: str
    side: int
    n_matrices: int
    evaluations: int
    parts: tuple[Evaluations, ...] | None  # None if the time is unknown
    kernel_matrices: tuple[tuple[int, int], ...] = ()  # in memory: (number of rows, count)
    array_entries: float = 0.0  # number of elements of other arrays in memory
    n_parts: int = 1  # number of parts of an evaluation that workers can compute


class BaseLearner(BaseEstimator, ABC):
    """Base class of learners, which are dataclasses with scikit-learn parameters as fields.

    The constructor only stores the settings; they are validated when the learner is used.
    """

    min_settings: ClassVar[Mapping[str, int]] = {}  # smallest values allowed, if not 1

    @abstractmethod
    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to standardised readings y at sites x."""

    @abstractmethod
    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""

    @abstractmethod
    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact."""

    def check_settings(self) -> None:
        """Raise ValueError unless every setting is a sufficiently large whole number."""
        for name, value in self.get_params(deep=False).items():
            minimum = self.min_settings.get(name, 1)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
                raise ValueError(
                    f"{type(self).__name__}: {name}={value!r}; expected a whole number of at least "
                    f"{minimum}."
                )


def check_settings(learner: Any) -> None:
    """Raise ValueError if a setting of a learner, or of any learner in a list, is invalid."""
    for listed in learner if isinstance(learner, list | tuple) else [learner]:
        if isinstance(listed, BaseLearner):
            listed.check_settings()
