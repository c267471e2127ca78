"""Two criteria for the parameters of a regression, and their derivatives.

The likelihood of dense readings is decided by their fine detail: by how well a reading is predicted
from its neighbours. A gap asks another question: how well readings are predicted from distant ones
and from the known outputs. Its criterion leaves out blocks of neighbouring readings.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from emgpr.arrays import CholeskyFactor, inv

Array = np.ndarray

N_BLOCKS = 8
# Readings in a block depend on each other, so that they count as fewer readings in the density.
BLOCK_WEIGHT = 0.3
# Exponent of the density of a left-out reading in the weights of a mixture.
MIXTURE_EXPONENT = 2.0


def log_likelihood(
    factor: CholeskyFactor, y: Float[Array, " n"]
) -> tuple[float, Float[Array, "n n"]]:
    """Return the log-likelihood of y ~ N(0, K), and its derivative with respect to K."""
    a = factor.solve(y[:, None])
    value = -0.5 * float(y @ a[:, 0] + factor.logdet() + len(y) * np.log(2 * np.pi))
    return value, 0.5 * (a * a.T - factor.inverse())


def left_out_density(
    blocks: list[Int[Array, " _"]], factor: CholeskyFactor, y: Float[Array, " n"]
) -> tuple[float, Float[Array, "n n"]]:
    """Return 0.3 Σ_b Σ_{i in b} log p(y_i | readings not in b), and its derivative by K.

    With P = K⁻¹ and α = Py, the errors in block b are e = S α_b, and their variances are the
    diagonal of S = P_b⁻¹. With R = P[:, b] S, their changes are dS = Rᵀ dK R and
    de = Rᵀ dK (P[:, b] e − α).
    """
    P = factor.inverse()
    a = P @ y
    value, G = 0.0, np.zeros_like(P)
    for b in blocks:
        S = inv(P[np.ix_(b, b)])
        e, v, R = S @ a[b], np.diagonal(S), P[:, b] @ S
        value -= 0.5 * float((np.log(2 * np.pi * v) + e**2 / v).sum())
        G += (R * (0.5 * (e**2 / v - 1) / v)) @ R.T
        u, w = R @ (-e / v), P[:, b] @ e - a
        G += 0.5 * (np.outer(u, w) + np.outer(w, u))
    return BLOCK_WEIGHT * value, BLOCK_WEIGHT * G


def mixture_weights(left_out: Sequence[float]) -> Float[Array, " members"]:
    """Return the weights of members with these mean log densities of left-out readings.

    The weights are proportional to the densities to the power of `MIXTURE_EXPONENT`:

    >>> mixture_weights([-1.0, -1.0])
    array([0.5, 0.5])
    >>> mixture_weights([-2.0, -0.5]).round(3)
    array([0.047, 0.953])
    """
    return softmax(MIXTURE_EXPONENT * np.asarray(left_out))


def split_into_blocks(x: Float[Array, "n P"], n_blocks: int = N_BLOCKS) -> list[Int[Array, " _"]]:
    """Divide locations into blocks of neighbours: halve the largest block until there are enough.

    >>> [b.tolist() for b in split_into_blocks(np.array([[0.0], [3.0], [1.0], [9.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    blocks = [np.arange(len(x))]
    while len(blocks) < min(n_blocks, len(x)):
        largest = int(np.argmax([len(block) for block in blocks]))
        block = blocks.pop(largest)
        column = int(np.argmax(np.ptp(x[block], axis=0)))
        order = block[np.argsort(x[block, column], kind="stable")]
        half = (len(order) + 1) // 2
        blocks[largest:largest] = [np.sort(order[:half]), np.sort(order[half:])]
    return blocks
