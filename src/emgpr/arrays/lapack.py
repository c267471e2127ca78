"""NumPy's matrices factored and inverted by LAPACK, one after another, in place where they may be.

LAPACK is column-major: to it, the lower triangle of a row-major matrix is the upper one of its
transpose, which is the same memory. Of many small matrices, calling LAPACK from Python would take
longer than its work: NumPy's functions of stacks do more of that, and are faster.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import blas, lapack, solve_triangular

Array = np.ndarray

SMALL = 48  # rows of a matrix that is over before Python has called for the next
LEAF = 64  # rows of a triangle that is no longer halved
BLOCK = 128  # rows and columns that are transposed within the cache

# An evaluation frees what it needed beside the covariance, and the next asks for as much. glibc
# would hand it back in between, and getting it again, page by page, can take as long as half of the
# factorisation; but it keeps twice the largest block that it saw freed, if below 32 MiB. So:
np.empty(2**25 - 2**13, np.uint8)


def cholesky(
    A: Float[Array, "b n n"], *, overwrite: bool
) -> tuple[Float[Array, "b n n"], Bool[Array, " b"]]:
    """Lower factors and which of them exist; with `overwrite`, of A only the upper part is kept."""
    if _many_and_small(A):
        try:
            return np.linalg.cholesky(A), np.ones(len(A), bool)
        except np.linalg.LinAlgError:
            pass  # one of them has no factor: which?
    lower = np.ascontiguousarray(A) if overwrite else A.copy()
    fine = np.empty(len(A), bool)
    for i, matrix in enumerate(lower):
        _, info = lapack.dpotrf(matrix.T, lower=0, clean=not overwrite, overwrite_a=1)
        fine[i] = info == 0 and np.isfinite(np.diagonal(matrix)).all()
    return lower, fine


def half_solve(lower: Float[Array, "*b n n"], b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
    """L⁻¹ b."""
    if _many_and_small(lower):
        return np.linalg.solve(np.tril(lower), b)
    return _each(_forward, lower, b)


def solve(lower: Float[Array, "*b n n"], b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
    """L⁻ᵀL⁻¹ b."""
    if _many_and_small(lower):
        L = np.tril(lower)
        return np.linalg.solve(np.swapaxes(L, -1, -2), np.linalg.solve(L, b))
    return _each(lambda L, rhs: _back(L, _forward(L, rhs)), lower, b)


def inverse_triangle(lower: Float[Array, "*b n n"], *, overwrite: bool) -> Float[Array, "*b n n"]:
    """(LLᵀ)⁻¹ below the diagonal: a third of the work of solving for the identity."""
    if _many_and_small(lower):
        root = np.linalg.inv(np.tril(lower))
        return np.swapaxes(root, -1, -2) @ root
    # Rows that follow each other: LAPACK would work on copies of others.
    inverse = lower if overwrite and lower.flags.c_contiguous else lower.copy()
    for matrix in _stacked(inverse):
        _invert(matrix)
        lapack.dlauum(matrix.T, lower=0, overwrite_c=1)
    return inverse


def _invert(lower: Float[Array, "n n"]) -> None:
    """L⁻¹ in the place of L, by halves: of middling size, trtri takes up to twice as long."""
    n = len(lower)
    if n <= LEAF:
        lower[...] = lapack.dtrtri(lower.T, lower=0)[0].T
        return
    half = n // 2
    first, below, last = lower[:half, :half], lower[half:, :half], lower[half:, half:]
    _invert(first)
    _invert(last)
    product = blas.dtrmm(-1.0, first.T, below.T)
    below[...] = blas.dtrmm(1.0, last.T, product, side=1, overwrite_b=1).T


def less_square(A: Float[Array, "*b n n"], v: Float[Array, "*b n 1"]) -> Float[Array, "*b n n"]:
    """A − vvᵀ below the diagonal, in the place of A."""
    if _many_and_small(A):
        A -= v * np.swapaxes(v, -1, -2)
        return A
    for matrix, column in zip(_stacked(A), _stacked(v), strict=True):
        blas.dsyr(-1.0, column[:, 0], lower=0, a=matrix.T, overwrite_a=1)
    return A


def mirrored(A: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """A with its lower triangle in the upper one too, in the place of A."""
    n = A.shape[-1]
    for start in range(0, n, BLOCK):
        end = start + BLOCK
        corner = A[..., start:end, start:end]
        corner[...] = np.tril(corner) + np.swapaxes(np.tril(corner, -1), -1, -2)
        A[..., start:end, end:] = np.swapaxes(A[..., end:, start:end], -1, -2)
    return A


def _forward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    return solve_triangular(lower, b, lower=True, check_finite=False)


def _back(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    return solve_triangular(lower, b, lower=True, trans=1, check_finite=False)


def _each(function: Callable[..., Array], *stacks: Float[Array, "..."]) -> Float[Array, "..."]:
    """The function of each matrix of the stacks."""
    batch = stacks[0].shape[:-2]
    if not batch:
        return function(*stacks)
    out = np.stack([function(*each) for each in zip(*map(_stacked, stacks), strict=True)])
    return out.reshape(*batch, *out.shape[-2:])


def _many_and_small(A: Float[Array, "*b n n"]) -> bool:
    n = A.shape[-1]
    return n <= SMALL and A.size > n * n


def _stacked(A: Float[Array, "*b n m"]) -> Float[Array, "B n m"]:
    return A.reshape(-1, *A.shape[-2:])
