"""Outputs that keep to their own process in the covariances of a belief."""

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


def without(
    cov: Float[Array, "*c M D D"], own: Bool[Array, "M D"], alone: Float[Array, "*a D D"]
) -> Float[Array, "*c M D D"]:
    """The covariance with these outputs apart from all others, as they are alone.

    >>> without(np.full((1, 2, 2), 5.0), np.array([[True, False]]), np.eye(2))
    array([[[1., 0.],
            [0., 5.]]])
    """
    both = own[:, :, None] & own[:, None, :]
    neither = ~own[:, :, None] & ~own[:, None, :]
    return np.where(both, alone, np.where(neither, cov, 0.0))
