"""Weights of several members, told so that they can be compared.

W_q and W_q R, for any rotation R (for rank 1: a sign), are the same model: only B_q = W_q W_qᵀ is
learned. Members that agree may therefore look unlike. Here each is turned towards the principal
axes of the members' mean B_q, the first of which carries the most variance.
"""

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def aligned(W: Float[Array, "L Q D k"]) -> Float[Array, "L Q D r"]:
    """Every member's weights turned to lie as near to common axes as they can; B_q stays.

    An axis points to where the outputs' weights on it sum to more than zero. There are r of
    them, the rank k or, if that is less, D: outputs cannot hear more processes of one kernel.

    >>> one, other = np.array([[1.0], [2.0]]), np.array([[-1.0], [-2.5]])
    >>> aligned(np.stack([one, other])[:, None])[:, 0, :, 0]
    array([[1. , 2. ],
           [1. , 2.5]])
    """
    k = W.shape[-1]
    B = (W @ np.swapaxes(W, -1, -2)).mean(axis=0)
    values, vectors = np.linalg.eigh(B)  # ascending
    sizes = np.sqrt(np.maximum(values, 0.0))[:, None, :]
    axes = (vectors * sizes)[..., ::-1][..., :k]
    axes = axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    # The nearest rotation (Procrustes): of Wᵀ axes = U S Vᵀ it is U Vᵀ.
    U, _, Vt = np.linalg.svd(np.swapaxes(W, -1, -2) @ axes, full_matrices=False)
    return W @ (U @ Vt)
