"""How far the signals of two outputs go together at one place, and by which latent."""

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def correlation_parts(
    B: Float[Array, "Q D D"], variances: Float[Array, " Q"]
) -> Float[Array, "Q D D"]:
    """The part of every signal correlation that each latent, with k_q(x, x) as given, brings.

    Over the latents they sum to the correlations; those of an output without a signal are NaN.

    >>> w = np.array([[1.0, 1.0], [0.0, 1.0]])[:, :, None]
    >>> correlation_parts(w @ w.swapaxes(1, 2), np.ones(2)).sum(axis=0).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    parts = B * variances[:, None, None]
    spread = np.sqrt(np.einsum("qdd->d", parts))
    spread = np.where(spread > 0, spread, np.nan)
    return parts / spread / spread[:, None]
