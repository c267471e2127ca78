"""Likelihoods of several outputs for one kernel matrix and many noise variances.

K is reduced to a tridiagonal matrix T = QᵀKQ once. Then log |K + sI| and yᵀ(K + sI)⁻¹y take a time
proportional to the number of readings for every noise variance s and every output.
"""

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack

from emgpr.arrays import tridiagonal

Array = np.ndarray


def log_likelihoods(
    K: Float[Array, "n n"], y: Float[Array, "D n"], noises: Float[Array, " S"]
) -> Float[Array, "S D"]:
    """Return log N(y_d; 0, K + sI) for every noise variance s and output d; −inf if not defined.

    >>> log_likelihoods(np.eye(2), np.array([[1.0, 1.0]]), np.array([0.0, 1.0])).round(3)
    array([[-2.838],
           [-3.031]])
    """
    d, e, Qy = tridiagonal(K, y.T)
    values = np.full((len(noises), len(y)), -np.inf)
    for i, noise in enumerate(noises):
        # LAPACK rejects an empty subdiagonal.
        pivots, multipliers, failed = lapack.dpttrf(d + noise, e) if len(e) else (d + noise, e, 0)
        if not failed:
            solved = lapack.dpttrs(pivots, multipliers, Qy)[0] if len(e) else Qy / pivots[:, None]
            squares = np.einsum("nd,nd->d", Qy, solved)
            values[i] = -0.5 * (squares + np.log(2 * np.pi * pivots).sum())
    return np.where(np.isfinite(values), values, -np.inf)
