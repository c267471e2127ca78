"""Step 1 using a product of experts: the product of the exact likelihoods of several batches.

The number of batches is limited, so the time for an evaluation does not grow with the number of
readings.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.base import Work
from emgpr.latents.maximum_likelihood import (
    LikelihoodLearner,
    search_work,
    typical_evaluations,
)
from emgpr.latents.objective import negative_log_likelihood
from emgpr.observations import Observations
from emgpr.optimize import Objective
from emgpr.sampling import clustered_batches

Array = np.ndarray


@dataclass
class PoE(LikelihoodLearner):
    """Learner that maximises the product of the likelihoods of batches of sites.

    Each batch consists of several clusters of neighbours, so that it contains both close
    and distant pairs of sites.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 60, 400)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> latent = PoE(batch_size=100, n_batches=2).learn(x, y, RBF())
    >>> latent.n_readings, 0.5 < latent.noise**0.5 / 0.1 < 2
    (200, True)
    """

    batch_size: int = 300  # approximate number of sites in a batch
    n_batches: int = 8  # maximum number of batches

    def select_sites(self, table: Observations) -> Observations:
        """Return a table of the sites in all batches, one batch after another."""
        n_parts = self._n_parts(table.n_sites)
        if n_parts == 1:
            return table
        rng = np.random.default_rng(0)
        batches = clustered_batches(table.x, n_parts, rng, wanted=self.n_batches)
        return table.at(np.concatenate(batches))

    def batch_counts(self, n: int) -> tuple[int, int]:
        """Return the number of batches used for n sites, and the approximate size of each."""
        n_parts = self._n_parts(n)
        return min(n_parts, self.n_batches), -(-n // n_parts)

    def _n_parts(self, n: int) -> int:
        return max(1, round(n / self.batch_size))

    def objective(
        self, table: Observations, kernel: Kernel, outputs: Int[Array, " m"], device: str = "cpu"
    ) -> Objective:
        """Return the objective: the sum of the negative log-likelihoods of all batches."""
        batches = np.array_split(np.arange(table.n_sites), self._n_parts(table.n_sites))
        experts = [
            negative_log_likelihood(table.at(batch), kernel, outputs, device) for batch in batches
        ]

        def objective(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
            terms = [expert(params, which) for expert in experts]
            value, gradient = (np.sum(part, axis=0) for part in zip(*terms, strict=True))
            return value, gradient

        return objective

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        L, size = self.batch_counts(n)
        times = typical_evaluations(L * size)
        parts = search_work(n, times, likelihoods=L, n_readings=size)
        return Work("poe, likelihoods of batches", size, L, times, parts, ((size, L),))

    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact.

        >>> PoE().describe_approximation(800_000)
        'the likelihood of 800000 readings is replaced by the likelihoods of 8 batches of 300'
        >>> PoE().describe_approximation(400)
        ''
        """
        L, size = self.batch_counts(n)
        if size >= n:
            return ""
        batches = f"the likelihoods of {L} batches" if L > 1 else "the likelihood of one batch"
        return f"the likelihood of {n} readings is replaced by {batches} of {size}"


def batch_log_likelihood(
    x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel, noise: float
) -> tuple[float, int]:
    """Return the sum of the log-likelihoods of batches, and the number of readings in the batches.

    Learners that do not maximise a likelihood use this sum to compare kernels.
    """
    experts = PoE()
    table = experts.select_sites(Observations.of_one_output(x, y))
    params = np.append(kernel.theta, np.log(noise))[None]
    value, _ = experts.objective(table, kernel, np.zeros(1, int))(params, np.zeros(1, int))
    return -float(value[0]), table.n_sites
