"""Predictive distributions, and the interface of the posteriors that compute them.

All code that uses predictions (maps, Dask, cross-validation, reports, the command line) relies only
on this interface, so that different kinds of models are interchangeable.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from emgpr.parallel import DEFAULT_EXECUTION, Execution

Array = np.ndarray


@dataclass(frozen=True)
class GaussianMixture:
    """Mean and covariance of D outputs at each of M locations, for C equally likely components.

    Values are on the standardised scale. There is one component for each
    ensemble member, or a single component.
    """

    mean: Float[Array, "C M D"]
    cov: Float[Array, "C M D D"]


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

        Readings with equal labels in `sets` form a set, and are left out together.
        """
        ...

    def without_transfer(self) -> "Posterior":
        """Return the posterior in which every output is predicted from its own readings only."""
        ...

    def for_worker(self) -> "Posterior":
        """Return the part of the posterior that another process needs for predictions."""
        ...
