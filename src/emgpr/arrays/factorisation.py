"""Cholesky factorisation of batches of matrices with LAPACK or torch, with jitter if needed.

The factorisation of a covariance is first tried without jitter. If it fails because of rounding
errors, a jitter is added to the diagonal: 1e-12, 1e-11, … 1e-6 times the mean of the diagonal,
until the factorisation succeeds. `CholeskyFactor.checked` warns if jitter was needed, and raises an
error if the largest jitter was not enough.

NumPy matrices are factorised and inverted one after another, in place if they may be overwritten.
LAPACK expects column-major matrices, so it interprets a row-major matrix as its transpose.
Therefore the upper triangle is requested from LAPACK to obtain the lower triangle in NumPy. Batches
of small matrices are passed to NumPy's batched functions, which need more operations but less time
than one call of LAPACK for each matrix.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import array_api_compat
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Bool, Float
from scipy.linalg import blas, lapack

from emgpr.arrays import torch_linalg
from emgpr.arrays.devices import Array, diagonal, to_numpy
from emgpr.user_warnings import warn

Matrices = Float[Array, "*b n n"]

JITTERS = (0.0, *(10.0**power for power in range(-12, -5)))  # relative to the mean of the diagonal
# LAPACK factorises a matrix with up to this many rows in less time than Python needs to call it.
MAX_BATCHED_ROWS = 48
MAX_BATCHED_SOLVE_ROWS = 8  # the same for solving a triangular system; NumPy factorises again
# Triangular matrices with up to this many rows are inverted by LAPACK. Larger ones are halved
# recursively, because LAPACK takes up to twice as long for matrices of medium size.
MAX_TRTRI_ROWS = 64
MIRROR_BLOCK = 128  # rows and columns of a block that fits into the cache for transposition

# Every evaluation of the likelihood allocates and frees the same temporary arrays. By default,
# glibc returns freed memory to the system, and obtaining it again can take half as long as the
# factorisation. After a block of less than 32 MiB has been freed, glibc retains up to twice its
# size. Therefore a block of slightly less than 32 MiB is allocated and freed here.
np.empty(2**25 - 2**13, np.uint8)


class NumericalError(ValueError):
    """Raised if a covariance is not positive definite even with the largest jitter."""


class JitterWarning(UserWarning):
    """Issued if jitter was added to a covariance to factorise it; the message gives the amount."""


@dataclass(frozen=True)
class CholeskyFactor:
    """Lower Cholesky factors of a batch of matrices, and the jitter that each matrix needed.

    The jitter is NaN for matrices that cannot be factorised even with the largest jitter. The
    entries of `lower` above the diagonals are undefined.
    """

    lower: Float[Array, "*b n n"]
    jitter: Float[Array, "*b"]

    def checked(self, what: str) -> "CholeskyFactor":
        """Return this factor; warn if jitter was needed, raise an error if no jitter was enough."""
        jitter = to_numpy(self.jitter)
        if np.isnan(jitter).any():
            raise NumericalError(
                f"The {what} is not positive definite, even with {JITTERS[-1]:g} times its mean "
                "diagonal added to the diagonal. Check for duplicated sites with zero noise, for "
                "inputs or outputs that are not finite, and for a kernel that is not a covariance "
                "function."
            )
        if (jitter > 0).any():
            warn(
                f"The {what} was not positive definite because of rounding errors; "
                f"{jitter.max():g} times its mean diagonal was added to the diagonal. The usual "
                "cause is almost no noise, combined with sites that are very close to each other "
                "or with a length-scale far larger than the region.",
                JitterWarning,
            )
        return self

    def half_solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """Return L⁻¹ b."""
        if not isinstance(b, np.ndarray):
            return torch_linalg.half_solve(self.lower, b)
        return _substitute(self.lower, b)

    def back_solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """Return L⁻ᵀ b."""
        if not isinstance(b, np.ndarray):
            return torch_linalg.back_solve(self.lower, b)
        return _substitute(self.lower, b, transposed=True)

    def solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """Return A⁻¹ b = L⁻ᵀL⁻¹ b."""
        if not isinstance(b, np.ndarray):
            return torch_linalg.solve(self.lower, b)
        return self.back_solve(self.half_solve(b))

    def inverse(self) -> Float[Array, "*b n n"]:
        """Return A⁻¹."""
        if not isinstance(self.lower, np.ndarray):
            return torch_linalg.inverse(self.lower)
        return _mirror(_inverse_triangle(self.lower, overwrite=False))

    def inverse_triangle(self) -> Float[Array, "*b n n"]:
        """Return A⁻¹, valid only in the lower triangle; the factor may be overwritten."""
        if not isinstance(self.lower, np.ndarray):
            return torch_linalg.inverse(self.lower)
        return _inverse_triangle(self.lower, overwrite=True)

    def inverse_less_square(self, v: Float[Array, "*b n 1"]) -> Float[Array, "*b n n"]:
        """Return A⁻¹ − vvᵀ, valid only in the lower triangle; the factor may be overwritten."""
        inverse = self.inverse_triangle()
        if not isinstance(inverse, np.ndarray) or _many_and_small(inverse):
            inverse -= v * array_namespace(v).matrix_transpose(v)
            return inverse
        for matrix, column in zip(_as_stack(inverse), _as_stack(v), strict=True):
            blas.dsyr(-1.0, column[:, 0], lower=0, a=matrix.T, overwrite_a=1)
        return inverse

    def logdet(self) -> Float[Array, "*b"]:
        """Return log |A|."""
        xp = array_namespace(self.lower)
        return xp.asarray(2.0 * xp.sum(xp.log(diagonal(self.lower)), axis=-1))


def cholesky(A: Matrices | Callable[[], Matrices]) -> CholeskyFactor:
    """Factorise symmetric matrices, each with the smallest jitter that makes this possible.

    Only the lower triangles are read. `A` can also be a function that returns the matrices. In this
    case, the matrices can be overwritten, and the function is called again if jitter is needed.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).lower
    array([[2., 0.],
           [1., 2.]])
    """
    overwrite = callable(A)
    matrices = A() if callable(A) else A
    xp = array_namespace(matrices)
    *batch, n, _ = matrices.shape
    lower, succeeded = _factor(matrices.reshape(-1, n, n), overwrite=overwrite)
    jitter = xp.zeros_like(lower[:, 0, 0])
    if not succeeded.all():
        original = (A() if callable(A) else A).reshape(-1, n, n)
        variances = diagonal(original)
        for amount in JITTERS[1:]:
            failed = ~succeeded
            jittered, variance = original[failed], variances[failed]
            diagonal(jittered)[...] = variance + amount * xp.mean(variance, axis=-1, keepdims=True)
            jitter[failed] = amount
            lower[failed], succeeded[failed] = _factor(jittered, overwrite=overwrite)
            if succeeded.all():
                break
    if not succeeded.all():
        device = array_api_compat.device(matrices)
        lower[~succeeded] = xp.eye(n, dtype=matrices.dtype, device=device)
        jitter[~succeeded] = float("nan")
    return CholeskyFactor(lower.reshape(*batch, n, n), jitter.reshape(tuple(batch)))


def _factor(
    A: Float[Array, "b n n"], *, overwrite: bool
) -> tuple[Float[Array, "b n n"], Bool[Array, " b"]]:
    """Return the lower factors, stored in A if `overwrite`, and which factorisations succeeded."""
    if not isinstance(A, np.ndarray):
        return torch_linalg.cholesky(A)
    if _many_and_small(A):
        try:
            return np.linalg.cholesky(A), np.ones(len(A), bool)
        except np.linalg.LinAlgError:
            pass  # At least one matrix has no factor; the loop below finds which.
    lower = np.ascontiguousarray(A) if overwrite else A.copy()
    succeeded = np.empty(len(A), bool)
    for i, matrix in enumerate(lower):
        _, info = lapack.dpotrf(matrix.T, lower=0, clean=not overwrite, overwrite_a=1)
        succeeded[i] = info == 0 and np.isfinite(np.diagonal(matrix)).all()
    return lower, succeeded


def _inverse_triangle(
    lower: Float[np.ndarray, "*b n n"], *, overwrite: bool
) -> Float[np.ndarray, "*b n n"]:
    """Return the lower triangle of (LLᵀ)⁻¹ in a third of the operations of solving LLᵀX = I."""
    if _many_and_small(lower):
        with suppress(np.linalg.LinAlgError):
            root = np.linalg.inv(np.tril(lower))
            return np.swapaxes(root, -1, -2) @ root
    # LAPACK would copy matrices that are not contiguous.
    inverse = lower if overwrite and lower.flags.c_contiguous else lower.copy()
    for matrix in _as_stack(inverse):
        _invert_in_place(matrix)
        lapack.dlauum(matrix.T, lower=0, overwrite_c=1)
    return inverse


def _invert_in_place(lower: Float[np.ndarray, "n n"]) -> None:
    """Replace L with L⁻¹, dividing L recursively into 2 × 2 blocks."""
    n = len(lower)
    if n <= MAX_TRTRI_ROWS:
        lower[...] = lapack.dtrtri(lower.T, lower=0)[0].T
        return
    half = n // 2
    first, below, last = lower[:half, :half], lower[half:, :half], lower[half:, half:]
    _invert_in_place(first)
    _invert_in_place(last)
    product = blas.dtrmm(-1.0, first.T, below.T)
    below[...] = blas.dtrmm(1.0, last.T, product, side=1, overwrite_b=1).T


def _mirror(A: Float[np.ndarray, "*b n n"]) -> Float[np.ndarray, "*b n n"]:
    """Copy the lower triangle of A to the upper triangle, in place."""
    n = A.shape[-1]
    for start in range(0, n, MIRROR_BLOCK):
        end = start + MIRROR_BLOCK
        corner = A[..., start:end, start:end]
        corner[...] = np.tril(corner) + np.swapaxes(np.tril(corner, -1), -1, -2)
        A[..., start:end, end:] = np.swapaxes(A[..., end:, start:end], -1, -2)
    return A


def _substitute(
    lower: Float[np.ndarray, "*b n n"], b: Float[np.ndarray, "*b n m"], *, transposed: bool = False
) -> Float[np.ndarray, "*b n m"]:
    """Return L⁻¹ b or, if `transposed`, L⁻ᵀ b."""
    if _many_and_small(lower, MAX_BATCHED_SOLVE_ROWS):
        L = np.tril(lower)
        with suppress(np.linalg.LinAlgError):
            return np.linalg.solve(np.swapaxes(L, -1, -2) if transposed else L, b)
    x = np.array(b, dtype=float, order="C")
    dtrsm = blas.dtrsm
    for L, part in zip(_as_stack(lower), _as_stack(x), strict=True):
        # Lx = b is solved as xᵀLᵀ = bᵀ (side 1), because LAPACK sees the transposed matrices.
        dtrsm(1.0, L.T, part.T, 1, 0, transposed, 0, 1)  # overwrites `part`
    return x


def _many_and_small(A: Float[np.ndarray, "*b n n"], max_rows: int = MAX_BATCHED_ROWS) -> bool:
    n = A.shape[-1]
    return n <= max_rows and A.size > n * n


def _as_stack(A: Float[np.ndarray, "*b n m"]) -> Float[np.ndarray, "B n m"]:
    return A.reshape(prod(A.shape[:-2]), *A.shape[-2:])  # -1 is ambiguous for an empty array
