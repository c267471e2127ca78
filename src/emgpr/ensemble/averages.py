"""Averages of the members' predictions: their mixture, and a Gaussian with the same moments."""

import numpy as np

from emgpr.ensemble.base import Combined, Covariances, Means, Prior


def mixture(means: Means, covs: Covariances, prior: Prior | None = None) -> Combined:
    """Return the mean and covariance of the mixture of the members' predictions, as in the paper.

    The covariance is the mean of the covariances plus the covariance of the means, so that
    differences between members add to the uncertainty. The prior is not used.

    >>> mixture(np.array([[[-1.0]], [[1.0]]]), np.full((2, 1, 1, 1), 0.5))
    (array([[0.]]), array([[[1.5]]]))
    """
    mean = means.mean(axis=0)
    deviation = means - mean
    spread = np.einsum("lmi,lmj->mij", deviation, deviation) / len(means)
    return mean, covs.mean(axis=0) + spread


def average(means: Means, covs: Covariances, prior: Prior | None = None) -> Combined:
    """Return one Gaussian with the mean and covariance of the mixture, as in the paper."""
    return mixture(means, covs, prior)
