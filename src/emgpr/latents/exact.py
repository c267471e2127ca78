"""Step 1 using the exact likelihood of all n readings (eq. 5), at a cost of O(n³)."""

from dataclasses import dataclass

from emgpr.latents.base import Work
from emgpr.latents.maximum_likelihood import (
    LikelihoodLearner,
    search_work,
    typical_evaluations,
)


@dataclass
class Exact(LikelihoodLearner):
    """Learner that maximises the likelihood of all readings of an output.

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> latent = Exact().learn(x, y, RBF())
    >>> 0.1 < latent.noise**0.5 / 0.1 < 2
    True
    """

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        times = typical_evaluations(n)
        parts = search_work(n, times, likelihoods=1, n_readings=n)
        return Work("exact likelihood", n, 1, times, parts, ((n, 1),))

    def describe_approximation(self, n: int) -> str:
        """Return an empty description, because nothing is approximated."""
        return ""
