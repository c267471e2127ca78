"""Weighted least squares for the sill matrices of a linear model of coregionalisation."""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh

Array = np.ndarray

MAX_SWEEPS = 2000
TOLERANCE = 1e-7  # relative decrease of the sum of squares in a sweep, at which it has converged


def fit_sills(
    values: Float[Array, "J D D"],
    basis: Float[Array, "S J D D"],
    weights: Float[Array, "J D D"],
    start: Float[Array, "S D D"] | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_sweeps: int = MAX_SWEEPS,
) -> tuple[Float[Array, "S D D"], float, bool]:
    """Minimise Σ_jde w_jde (γ_jde − Σ_s B_s[d, e] φ_sjde)² over positive semidefinite B_s.

    The algorithm is that of Goulard & Voltz (1992): one matrix after the other is replaced by the
    least-squares solution for it, projected on the positive semidefinite matrices. If the weights
    of the pairs of outputs differ, the projection follows a gradient step, whose length is that of
    the pair with the largest weights. The sum of squares never increases, and since the problem is
    convex, it approaches its minimum.

    Returns the matrices, the sum of squares, and whether it converged.

    >>> lag = np.linspace(0.1, 2.0, 9)[:, None, None]
    >>> basis = np.stack([np.ones_like(lag), 1 - np.exp(-lag)])
    >>> B, misfit, _ = fit_sills(0.2 + 0.7 * (1 - np.exp(-lag)), basis, np.ones_like(lag))
    >>> B.ravel().round(2)
    array([0.2, 0.7])
    """
    B = np.zeros((len(basis), *basis.shape[2:])) if start is None else start.copy()
    curvature = (weights * basis**2).sum(axis=1).max(axis=(1, 2), initial=0.0)
    residual = values - np.einsum("sde,sjde->jde", B, basis)
    misfit, converged = float((weights * residual**2).sum()), False
    for _ in range(max_sweeps):
        before = misfit
        for s in np.flatnonzero(curvature):
            gradient = (weights * basis[s] * residual).sum(axis=0)
            new = nearest_semidefinite(B[s] + gradient / curvature[s])
            residual -= basis[s] * (new - B[s])
            B[s] = new
        misfit = float((weights * residual**2).sum())
        converged = before - misfit <= tolerance * misfit
        if converged:
            break
    return B, misfit, converged


def nearest_semidefinite(A: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """Return the positive semidefinite matrix that is nearest to a symmetric matrix."""
    values, vectors = eigh(A)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
