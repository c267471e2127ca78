"""A variogram model, and the linear model of coregionalisation for ordinary co-kriging."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from emgpr.covariance import coregionalization
from emgpr.prediction import LMCModel

Array = np.ndarray

# Largest prior variance of the means, relative to the variance of the readings. With a larger one,
# rounding errors of predictions would be noticeable.
MAX_MEAN_VARIANCE = 1e6


@dataclass(frozen=True)
class VariogramModel:
    """Structures with weights W_q, whose sill matrices are W_q W_qᵀ, and the nugget."""

    kernels: tuple[Kernel, ...]
    weights: Float[Array, "Q D D"]
    nugget: Float[Array, "D D"]

    @property
    def sills(self) -> Float[Array, "Q D D"]:
        """Sill matrices of the structures."""
        return coregionalization(self.weights)

    def direct(self) -> "VariogramModel":
        """Return the model of each output alone: its direct variogram, without cross-variograms."""
        identity = np.eye(len(self.nugget))
        return VariogramModel(self.kernels, np.sqrt(self.sills * identity), self.nugget * identity)

    def with_unknown_means(self, variances: Float[Array, " D"]) -> LMCModel:
        """Return a model in which the mean of each output is unknown, with these prior variances.

        The means are latent processes with a constant kernel. As the variances increase,
        predictions approach those of ordinary co-kriging. If they are zero, predictions are those
        of simple co-kriging.
        """
        if not variances.any():
            return LMCModel(self.kernels, self.weights[None], self.nugget)
        means = np.diag(np.sqrt(variances))[None]
        constant = ConstantKernel(1.0, "fixed")
        weights = np.concatenate([self.weights, means])
        return LMCModel((*self.kernels, constant), weights[None], self.nugget)
