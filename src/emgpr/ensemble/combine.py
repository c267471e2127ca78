"""Beliefs of the members about the D outputs of a site, joined into one."""

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def mixture(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """The mean of the members (the paper's), with the covariance of their mixture.

    cov = mean of the covariances + covariance of the means: members that
    disagree are as uncertain as their spread.

    >>> mixture(np.array([[[-1.0]], [[1.0]]]), np.full((2, 1, 1, 1), 0.5))
    (array([[0.]]), array([[[1.5]]]))
    """
    mean = means.mean(axis=0)
    apart = means - mean
    spread = np.einsum("lmi,lmj->mij", apart, apart) / len(means)
    return mean, covs.mean(axis=0) + spread
