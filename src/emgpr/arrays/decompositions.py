"""Eigenvalues, singular values and linear systems, with a second method if the first one fails.

LAPACK's divide-and-conquer algorithms are fast, but sometimes do not converge, for instance if a
covariance decays to numbers below 1e-308. In this case, the slower QR algorithms of LAPACK are
used, one matrix at a time and on the CPU. Matrices of linear systems must be positive definite; if
one of them is singular because of rounding errors, jitter is added as in `cholesky`.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace
from jaxtyping import Float
from scipy.linalg import lapack

from emgpr.arrays.devices import Array, to_device_of, to_numpy
from emgpr.arrays.factorisation import JITTERS, NumericalError, cholesky

BLOCK_COLUMNS = 64  # of LAPACK's blocked algorithms, for their work arrays


def eigh(A: Float[Array, "*b n n"]) -> tuple[Float[Array, "*b n"], Float[Array, "*b n n"]]:
    """Return the eigenvalues of symmetric matrices, in ascending order, and the eigenvectors.

    >>> values, vectors = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values, abs(vectors).round(3)
    (array([1., 3.]), array([[0.707, 0.707],
           [0.707, 0.707]]))
    """
    linalg = _linalg(A)
    try:
        values, vectors = linalg.eigh(A)
    except linalg.LinAlgError:
        values, vectors = _one_by_one(_eigh_by_qr, A)
    return values, vectors


def eigvalsh(A: Float[Array, "*b n n"]) -> Float[Array, "*b n"]:
    """Return the eigenvalues of symmetric matrices, in ascending order."""
    linalg = _linalg(A)
    try:
        return linalg.eigvalsh(A)
    except linalg.LinAlgError:
        return eigh(A)[0]


def tridiagonal(
    A: Float[np.ndarray, "n n"], B: Float[np.ndarray, "n m"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " k"], Float[np.ndarray, "n m"]]:
    """Return the diagonal and the subdiagonal of T, and QᵀB, where A = QTQᵀ is symmetric.

    Q is orthogonal and T is tridiagonal, so that systems with A + sI can be solved for many values
    of s. This takes about a quarter of the time of an eigendecomposition.

    >>> d, e, QtB = tridiagonal(np.array([[2.0, 1.0], [1.0, 3.0]]), np.eye(2))
    >>> d, abs(e)
    (array([2., 3.]), array([1.]))
    """
    n = len(A)
    if n < 2:
        return np.diagonal(A).astype(float), np.empty(0), np.array(B, dtype=float)
    reduced, d, e, tau, _ = lapack.dsytrd(A, lower=1, lwork=BLOCK_COLUMNS * n)
    below = reduced[1:, :-1]  # Householder vectors
    lower, *_ = lapack.dormqr("L", "T", below, tau, B[1:], BLOCK_COLUMNS * B.shape[1])
    return d, e, np.vstack([B[:1], lower])


def svd(
    A: Float[Array, "*b n m"],
) -> tuple[Float[Array, "*b n k"], Float[Array, "*b k"], Float[Array, "*b k m"]]:
    """Return U, s and Vᵀ with A = U diag(s) Vᵀ, where k = min(n, m).

    >>> svd(np.array([[3.0, 0.0], [0.0, 2.0]]))[1]
    array([3., 2.])
    """
    linalg = _linalg(A)
    try:
        U, s, Vt = linalg.svd(A, full_matrices=False)
    except linalg.LinAlgError:
        U, s, Vt = _one_by_one(_svd_by_qr, A)
    return U, s, Vt


def solve(A: Float[Array, "*b n n"], b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
    """Return A⁻¹ b for positive definite matrices A.

    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.ones((2, 1)))
    array([[0.5 ],
           [0.25]])
    """
    linalg = _linalg(A)
    try:
        return linalg.solve(A, b)
    except linalg.LinAlgError:
        return cholesky(A).checked("matrix of a linear system").solve(b)


def inv(A: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """Return A⁻¹ for positive definite matrices A."""
    linalg = _linalg(A)
    try:
        return linalg.inv(A)
    except linalg.LinAlgError:
        return cholesky(A).checked("matrix to be inverted").inverse()


def inverse_root(A: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """Return L⁻¹ for positive definite matrices A = LLᵀ, where L is lower triangular."""
    linalg = _linalg(A)
    try:
        return linalg.inv(linalg.cholesky(A))
    except linalg.LinAlgError:
        identity = to_device_of(np.broadcast_to(np.eye(A.shape[-1]), A.shape), A)
        return cholesky(A).checked("matrix to be inverted").half_solve(identity)


def _linalg(A: Array) -> Any:
    return np.linalg if isinstance(A, np.ndarray) else array_namespace(A).linalg


def _one_by_one(
    decompose: Callable[[Float[np.ndarray, "n m"]], tuple[np.ndarray, ...]],
    A: Float[Array, "*b n m"],
) -> list[Array]:
    """Decompose each matrix of a batch on the CPU, and return arrays on the device of A."""
    *batch, n, m = A.shape
    matrices = to_numpy(A).reshape(prod(batch), n, m)
    if not np.isfinite(matrices).all():
        raise NumericalError(
            f"A matrix with {n} rows contains values that are not finite, so that it cannot be "
            "decomposed. Check for very large inputs or outputs, and for a kernel that is not a "
            "covariance function."
        )
    parts = zip(*map(decompose, matrices), strict=True)
    return [to_device_of(np.stack(part).reshape(*batch, *part[0].shape), A) for part in parts]


def _eigh_by_qr(A: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, ...]:
    """Decompose a symmetric matrix by QR iterations or, if these fail, by other algorithms."""
    for jitter in JITTERS:
        # A multiple of the identity changes the eigenvalues by a constant, and no eigenvector.
        shift = jitter * float(np.abs(np.diagonal(A)).mean())
        for driver in ("ev", "evr"):
            try:
                values, vectors = scipy.linalg.eigh(A + shift * np.eye(len(A)), driver=driver)
            except np.linalg.LinAlgError:
                continue
            return values - shift, vectors
    raise NumericalError(f"The eigenvalues of a matrix with {len(A)} rows did not converge.")


def _svd_by_qr(A: Float[np.ndarray, "n m"]) -> tuple[np.ndarray, ...]:
    """Decompose a matrix by QR iterations."""
    try:
        return scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            f"The singular values of a {A.shape[0]} × {A.shape[1]} matrix did not converge."
        ) from error
