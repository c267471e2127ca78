"""Base classes for output transforms, with numerical integration of moments and scores."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from emgpr.row_numbers import rows_from_zero
from emgpr.transforms import mixture_marginals, quadrature
from emgpr.transforms.censored_normal import NOT_CENSORED, Censoring
from emgpr.transforms.mixture_marginals import PerComponent, Weights
from emgpr.transforms.quadrature import Expansion, Readings

Array = np.ndarray


class Transform(ABC):
    """A strictly increasing transform u = T(y) that makes an output closer to Gaussian.

    The predictive distributions of u are mixtures of Gaussians. `m`, `s` and `w` are the means, the
    standard deviations and the weights of the C components at M locations (see
    `emgpr.transforms.mixture_marginals`). Moments and scores in original units are integrated
    numerically, unless a subclass overrides them with closed forms.
    """

    linear: ClassVar[bool] = False  # whether y is linear in u
    log_normal: ClassVar[bool] = False  # whether y = exp(u)

    @abstractmethod
    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return T(y), which is −∞ below the domain, ∞ above the domain, and NaN for NaN."""

    @abstractmethod
    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y = T⁻¹(u)."""

    @abstractmethod
    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy, which is −∞ outside the domain, and NaN for NaN."""

    def limit(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the largest u for which T⁻¹(u) ≤ y: T(y), unless y has a positive probability."""
        return self.forward(y)

    def log_density(
        self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None
    ) -> Readings:
        """Return the log density of readings y (−∞ outside the domain)."""
        return mixture_marginals.logpdf(self.forward(y), m, s, w) + self.log_slope(y)

    def cdf(self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None) -> Readings:
        """Return P(Y < y)."""
        return mixture_marginals.cdf(self.forward(y), m, s, w)

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of fitted parameters, not counting location and scale."""

    def kinks(self) -> Float[Array, " J"]:
        """Return the values of u at which the inverse is not smooth."""
        return np.empty(0)

    def domain_error(self, output: str, rows: Array) -> str:
        """Return the error message for readings of an output that are outside the domain."""
        return (
            f"The transform of output {output!r} is undefined for {len(rows)} values, first in "
            f"{rows_from_zero(rows)}. Choose another transform, or replace the values with NaN."
        )

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the Hermite coefficients a_0 (the mean) to a_n of y, and the variance of y."""
        return quadrature.hermite_expansion(self.inverse, m, s, n_terms)

    def expansion_bytes(self) -> float:
        """Return the bytes of memory that `expansion` needs for each component and location."""
        return 64.0 * len(quadrature.NODES)

    def crps(self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None) -> Readings:
        """Return the continuous ranked probability score, E|Y − y| − ½ E|Y − Y'|."""
        return quadrature.crps(self.inverse, y, self.limit(y), self.kinks(), m, s, w)

    def crps_bytes(self, n_components: int) -> float:
        """Return the bytes of memory that `crps` needs for each location."""
        return quadrature.crps_bytes(n_components, len(self.kinks()))


class NamedTransform(Transform):
    """A transform that users can request by its name in `emgpr.transforms.registry`."""

    parameter_free: ClassVar[bool] = False  # whether `fit` accepts readings that are all equal
    on_line: ClassVar[bool] = False  # whether every number can be transformed and inverted

    @classmethod
    @abstractmethod
    def fit(cls, values: Float[Array, " n"], censoring: Censoring = NOT_CENSORED) -> Transform:
        """Fit the transform to the readings of one output.

        The readings must not all be equal, unless the class is `parameter_free`. `censoring`, which
        only classes that are defined `on_line` need, describes further readings that are only known
        to lie beyond a limit.
        """
