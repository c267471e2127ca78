"""Who does step 1: anything with one method."""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.latent import Latent

Array = np.ndarray


@runtime_checkable
class LatentLearner(Protocol):
    """Learns one task on its own: exactly, sparsely, or by another library.

    `emgpr.latents.check_learner` tells whether one of yours can be used.
    """

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Kernel and noise of standardised readings y at sites x.

        `kernel` is of the form that is asked for; its hyper-parameters say nothing unless they
        were set.
        """
        ...
