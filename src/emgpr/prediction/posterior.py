"""Predictive distributions, and the interface of the posteriors that compute them.

All code that uses predictions (maps, Dask, cross-validation, reports, the command line) relies only
on this interface, so that different kinds of models are interchangeable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from emgpr.ensemble import mixture, replace_unused_outputs, weighted_mixture
from emgpr.parallel import DEFAULT_EXECUTION, Execution

Array = np.ndarray


@dataclass(frozen=True)
class GaussianMixture:
    """Mean and covariance of D outputs at each of M locations, for C components.

    Values are on the standardised scale. Without weights, the components are equally likely, and
    all outputs have the same component: there is one component for each ensemble member, or a
    single component. With weights, which are nonnegative and sum to one over the components,
    component c of output d has the probability weights[c, :, d], independently of the components
    of other outputs. `names` are those of the models that the components come from.

    >>> mean, cov = np.array([[[0.0, 0.0]], [[4.0, 4.0]]]), np.broadcast_to(np.eye(2), (2, 1, 2, 2))
    >>> GaussianMixture(mean, cov).moments()[1][0]
    array([[5., 4.],
           [4., 5.]])
    >>> weights = np.array([[[0.5, 1.0]], [[0.5, 0.0]]])
    >>> GaussianMixture(mean, cov, weights).moments()[1][0]
    array([[5., 0.],
           [0., 1.]])
    """

    mean: Float[Array, "C M D"]
    cov: Float[Array, "C M D D"]
    weights: Float[Array, "C M D"] | None = None
    names: tuple[str, ...] | None = None

    def moments(self) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
        """Return the mean and covariance of the outputs at each location."""
        if self.weights is None:
            return mixture(self.mean, self.cov)
        used = replace_unused_outputs(self.mean, self.cov, self.weights)
        return weighted_mixture(*used, self.weights)


def stack_components(
    parts: Sequence[GaussianMixture],
    weights: Float[Array, "C M D"],
    names: tuple[str, ...] | None = None,
) -> GaussianMixture:
    """Return the mixture of C predictive distributions, with weights by location and output.

    Each distribution is one component. If it is a mixture itself, it is replaced by a Gaussian with
    the same mean and covariance.

    >>> parts = [GaussianMixture(np.full((1, 1, 1), m), np.ones((1, 1, 1, 1))) for m in (0.0, 4.0)]
    >>> mean, cov = stack_components(parts, np.array([[[0.75]], [[0.25]]])).moments()
    >>> mean.item(), cov.item()
    (1.0, 4.0)
    """
    expected = (len(parts), *parts[0].mean.shape[1:])
    if weights.shape != expected:
        raise ValueError(
            f"weights has the shape {weights.shape}; expected {expected}: one weight for each "
            "distribution, location and output."
        )
    means, covs = zip(*(part.moments() for part in parts), strict=True)
    return GaussianMixture(np.stack(means), np.stack(covs), weights, names)


@runtime_checkable
class Posterior(Protocol):
    """The posterior distribution of the outputs given readings, on the standardised scale.

    Locations are in the coordinates in which kernels are evaluated. `observed` holds readings at
    these locations, NaN where an output was not measured. If `include_noise` is True, new readings
    are predicted, otherwise the signals. If `with_cov` is False, only the means are valid.
    """

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        ...

    @property
    def n_components(self) -> int:
        """Maximum number of components of a predictive distribution."""
        ...

    @property
    def n_sites(self) -> int:
        """Number of sites whose readings are used in predictions."""
        ...

    @property
    def extent(self) -> Float[Array, "n P"]:
        """Locations that span the same range as the sites in every coordinate."""
        ...

    @property
    def reference_values(self) -> Float[Array, "n D"]:
        """Training readings or their extremes, to compare new values with; NaN where missing."""
        ...

    def predict(
        self,
        x: Float[Array, "M P"],
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Return the distribution of the outputs at each location."""
        ...

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
        """Draw joint samples for all locations and outputs."""
        ...

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict the readings at `sites`, by default all, with their own sets left out.

        Readings with equal labels in `sets` form a set, and are left out together. Readings with
        negative labels are used, but not predicted.
        """
        ...

    def without_transfer(self) -> "Posterior":
        """Return the posterior in which every output is predicted from its own readings only."""
        ...

    def for_worker(self) -> "Posterior":
        """Return the part of the posterior that another process needs for predictions."""
        ...
