"""Alignment of the weights of ensemble members, so that they can be compared.

The data determine only B_q = W_q W_qᵀ: W_q and W_q R define the same model for any rotation R (for
rank 1, a change of sign). Members with the same model can therefore have different weights. The
weights of each member are rotated towards the principal axes of the mean of B_q over all members.
The axes are in order of decreasing variance.
"""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh, svd

Array = np.ndarray


def aligned(W: Float[Array, "L Q D k"]) -> Float[Array, "L Q D r"]:
    """Rotate the weights of every member as close as possible to common axes; B_q is unchanged.

    The sign of each axis is chosen so that its entries have a positive sum. The number of axes is
    r = min(k, D), because D columns of weights can represent any B_q.

    >>> first, second = np.array([[1.0], [2.0]]), np.array([[-1.0], [-2.5]])
    >>> aligned(np.stack([first, second])[:, None])[:, 0, :, 0]
    array([[1. , 2. ],
           [1. , 2.5]])
    """
    k = W.shape[-1]
    B = (W @ np.swapaxes(W, -1, -2)).mean(axis=0)
    values, vectors = eigh(B)  # ascending
    lengths = np.sqrt(np.maximum(values, 0.0))[:, None, :]
    axes = (vectors * lengths)[..., ::-1][..., :k]
    axes = axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    # The nearest rotation (Procrustes) is U Vᵀ, where Wᵀ axes = U S Vᵀ.
    U, _, Vt = svd(np.swapaxes(W, -1, -2) @ axes)
    return W @ (U @ Vt)
