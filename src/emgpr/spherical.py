"""The spherical variogram model as a scikit-learn kernel."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)

Array = np.ndarray


class Spherical(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Spherical kernel k(h) = 1 − 3/2 h/a + 1/2 (h/a)³ for h < a, and 0 beyond the range a.

    It is the usual variogram model in geostatistics, and a covariance function for up to three
    inputs. There is one length-scale, the range a, for all inputs.

    >>> Spherical(2.0)(np.array([[0.0], [1.0], [3.0]]))[0]
    array([1.    , 0.3125, 0.    ])
    """

    def __init__(
        self,
        length_scale: float = 1.0,
        length_scale_bounds: tuple[float, float] | str = (1e-5, 1e5),
    ) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """The range, as scikit-learn describes it."""
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y) and, with `eval_gradient`, the gradient with respect to log a."""
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        X = np.atleast_2d(X)
        r = np.minimum(cdist(X, X if Y is None else np.atleast_2d(Y)) / self.length_scale, 1.0)
        K = 1.0 - 1.5 * r + 0.5 * r**3
        if not eval_gradient:
            return K
        gradient = (1.5 * r * (1.0 - r**2))[..., None]
        return K, gradient if not self.hyperparameter_length_scale.fixed else gradient[..., :0]

    def __repr__(self) -> str:
        return f"Spherical(length_scale={self.length_scale:.3g})"
