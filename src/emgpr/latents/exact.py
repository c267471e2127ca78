"""Step 1 by maximum likelihood (eq. 5) of all readings: O(n³) a step for n readings of a task."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.climb import Climb
from emgpr.latents.objective import loss_of
from emgpr.observations import Observations
from emgpr.optimize import Objective

Array = np.ndarray


@dataclass(frozen=True)
class Exact(Climb):
    """The likelihood of all readings of a task.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> latent = Exact().learn(x, y, RBF())
    >>> 0.1 < latent.noise**0.5 / 0.1 < 2
    True
    """

    def loss(
        self,
        table: Observations,
        kernel: Kernel,
        whose: Int[Array, " m"],
        *,
        weak_prior: bool = False,
        device: str = "cpu",
    ) -> Objective:
        """Negative log-likelihood, less the logarithm of the prior."""
        return loss_of(table, kernel, whose, weak_prior=weak_prior, device=device)
