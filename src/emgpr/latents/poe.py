"""Step 1 from batches: a product of experts, exact on their sites, of one kernel and one noise.

What a step costs does not depend on how many readings there are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.climb import Climb
from emgpr.latents.objective import loss_of
from emgpr.latents.prior import noise_prior, variances
from emgpr.observations import Observations
from emgpr.optimize import Objective
from emgpr.sampling import in_clusters

Array = np.ndarray


@dataclass(frozen=True)
class PoE(Climb):
    """The likelihoods of batches of sites, multiplied; the batches see short and long distances.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 60, 400)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> latent = PoE(batch_size=100, n_batches=2).learn(x, y, RBF())
    >>> latent.n_readings, 0.5 < latent.noise**0.5 / 0.1 < 2
    (200, True)
    """

    batch_size: int = 300
    n_batches: int = 8  # at most

    def taken(self, table: Observations) -> Observations:
        """The sites of the batches, one batch after another."""
        L = self._experts(table.n_sites)
        if L == 1:
            return table
        parts = in_clusters(table.x, L, np.random.default_rng(0), wanted=self.n_batches)
        return table.at(np.concatenate(parts))

    def dealt(self, n: int) -> tuple[int, int]:
        """How many batches are taken of n sites, and how many sites are in each, about."""
        L = self._experts(n)
        return min(L, self.n_batches), -(-n // L)

    def _experts(self, n: int) -> int:
        return max(1, round(n / self.batch_size))

    def loss(
        self,
        table: Observations,
        kernel: Kernel,
        whose: Int[Array, " m"],
        *,
        weak_prior: bool = False,
        device: str = "cpu",
    ) -> Objective:
        """Negative log-likelihood of all batches, less the logarithm of the prior."""
        power = variances(table)[:, None]
        parts = np.array_split(np.arange(table.n_sites), self._experts(table.n_sites))
        experts = [loss_of(table.at(part), kernel, whose, device=device) for part in parts]

        def loss(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
            answers = [expert(params, which) for expert in experts]
            value, slope = (np.sum(part, axis=0) for part in zip(*answers, strict=True))
            noise = np.exp(params[:, -1])[:, None, None]
            believed, of_noise = noise_prior(power[whose[which]], weak_prior)(noise)
            slope[:, -1] -= (of_noise * noise)[:, 0, 0]
            return value - believed, slope

        return loss


def likelihood_of_batches(
    x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel, noise: float
) -> tuple[float, int]:
    """Of what was found without one: the log-likelihood of batches, and of how many readings.

    So kernels can be compared by it, whatever the learner went by.
    """
    experts = PoE()
    table = experts.taken(Observations(x, y[None], np.ones((1, len(y)), bool)))
    row = np.append(kernel.theta, np.log(noise))[None]
    loss, _ = experts.loss(table, kernel, np.zeros(1, int))(row, np.zeros(1, int))
    return -float(loss[0]), table.n_sites
