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
    by_output: bool = False,
) -> tuple[Float[Array, "S D D"], float, bool]:
    """Minimise Σ_jde w_jde (γ_jde − Σ_s B_s[d, e] φ_sjde)² over positive semidefinite B_s.

    The algorithm is that of Goulard & Voltz (1992): one matrix after the other is replaced by the
    least-squares solution for it, projected on the positive semidefinite matrices. If the weights
    of the pairs of outputs differ, the projection follows a gradient step, whose length is that of
    the pair with the largest weights. With `by_output`, which is faster if the weights of outputs
    differ by orders of magnitude, each output has its own length, and the projection is that of the
    scaled matrix. The sum of squares never increases, and since the problem is convex, it
    approaches its minimum.

    Returns the matrices, the sum of squares, and whether it converged.

    >>> lag = np.linspace(0.1, 2.0, 9)[:, None, None]
    >>> basis = np.stack([np.ones_like(lag), 1 - np.exp(-lag)])
    >>> B, misfit, _ = fit_sills(0.2 + 0.7 * (1 - np.exp(-lag)), basis, np.ones_like(lag))
    >>> B.ravel().round(2)
    array([0.2, 0.7])
    """
    B = np.zeros((len(basis), *basis.shape[2:])) if start is None else start.copy()
    curvature = _bounds_of_curvature((weights * basis**2).sum(axis=1), by_output=by_output)
    residual = values - np.einsum("sde,sjde->jde", B, basis)
    misfit, converged = float((weights * residual**2).sum()), False
    for _ in range(max_sweeps):
        before = misfit
        for s in np.flatnonzero(curvature.any(axis=(1, 2))):
            gradient = (weights * basis[s] * residual).sum(axis=0)
            scale = np.sqrt(curvature[s] / curvature[s].max())
            new = nearest_semidefinite(scale * (B[s] + gradient / curvature[s])) / scale
            residual -= basis[s] * (new - B[s])
            B[s] = new
        misfit = float((weights * residual**2).sum())
        converged = before - misfit <= tolerance * misfit
        if converged:
            break
    return B, misfit, converged


def _bounds_of_curvature(
    curvature: Float[Array, "S D D"], *, by_output: bool
) -> Float[Array, "S D D"]:
    """Return upper bounds of the curvatures of pairs of outputs, of the form v_d v_e.

    Without `by_output`, v is the same for all outputs.
    """
    largest = curvature.max(axis=(1, 2), initial=0.0, keepdims=True)
    if not by_output:
        return np.broadcast_to(largest, curvature.shape)
    own = np.diagonal(curvature, axis1=1, axis2=2)
    v = np.sqrt(np.where(own > 0, own, largest[:, 0]))
    bounds = v[:, :, None] * v[:, None, :]
    ratio = np.divide(curvature, bounds, out=np.zeros_like(bounds), where=bounds > 0)
    return bounds * ratio.max(axis=(1, 2), initial=0.0, keepdims=True)


def nearest_semidefinite(A: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """Return the positive semidefinite matrix that is nearest to a symmetric matrix."""
    values, vectors = eigh(A)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
