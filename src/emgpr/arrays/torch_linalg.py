"""Cholesky factorisation and inversion of batches of matrices with torch.

A GPU is most efficient with a few large matrix products. To invert a triangular matrix, all small
blocks on its diagonal are inverted first. Matrix products then combine pairs of inverses into
inverses of blocks twice as large, until a single block is left. On an H200 GPU, one matrix with
n = 8000 is inverted in 14 ms, compared with 32 ms for torch.cholesky_inverse. Eighty matrices with
n = 1000 are inverted in 7 ms, compared with 33 ms.
"""

from math import ceil, log2
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Bool, Float

Tensor = Any

MIN_HALVED_ROWS = 640  # matrices with up to this many rows are not halved


def cholesky(A: Float[Tensor, "b n n"]) -> tuple[Float[Tensor, "b n n"], Bool[Tensor, " b"]]:
    """Return the lower factors and which factorisations succeeded; A is not modified."""
    xp = array_namespace(A)
    lower, info = xp.linalg.cholesky_ex(A)
    finite = xp.isfinite(lower.diagonal(dim1=-2, dim2=-1))
    return lower, (info == 0) & xp.all(finite, axis=-1)


def half_solve(
    lower: Float[Tensor, "*b n n"], b: Float[Tensor, "*b n m"]
) -> Float[Tensor, "*b n m"]:
    """Return L⁻¹ b."""
    return array_namespace(b).linalg.solve_triangular(lower, b, upper=False)


def back_solve(
    lower: Float[Tensor, "*b n n"], b: Float[Tensor, "*b n m"]
) -> Float[Tensor, "*b n m"]:
    """Return L⁻ᵀ b."""
    return array_namespace(b).linalg.solve_triangular(lower.mT, b, upper=True)


def solve(lower: Float[Tensor, "*b n n"], b: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    """Return L⁻ᵀL⁻¹ b."""
    return array_namespace(b).cholesky_solve(b, lower)


def inverse(lower: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """Return (LLᵀ)⁻¹; the factor is not modified."""
    return _square(_inverse_of_triangle(lower))


def _inverse_of_triangle(lower: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """Return L⁻¹ by inverting small diagonal blocks and combining pairs of blocks repeatedly."""
    xp, n = array_namespace(lower), lower.shape[-1]
    n_blocks = 2 ** max(0, ceil(log2(max(n, 1) / MIN_HALVED_ROWS)))
    size = -(-n // n_blocks)
    lower = _pad(lower, size * n_blocks)
    blocks = _diagonal_blocks(lower, size)
    identity = xp.eye(size, dtype=lower.dtype, device=lower.device).expand_as(blocks)
    inverse = xp.linalg.solve_triangular(blocks, identity, upper=False)
    while inverse.shape[-3] > 1:
        first, last = inverse[..., ::2, :, :], inverse[..., 1::2, :, :]
        blocks = _diagonal_blocks(lower, 2 * size)
        inverse = blocks.new_zeros(blocks.shape)
        inverse[..., :size, :size] = first
        inverse[..., size:, :size] = -last @ _times_lower(blocks[..., size:, :size], first)
        inverse[..., size:, size:] = last
        size *= 2
    return inverse[..., 0, :n, :n]


def _pad(lower: Float[Tensor, "*b n n"], size: int) -> Float[Tensor, "*b m m"]:
    """Extend a factor to `size` rows, with an identity matrix as the last diagonal block."""
    n = lower.shape[-1]
    if n == size:
        return lower
    padded = lower.new_zeros(*lower.shape[:-2], size, size)
    padded[..., :n, :n] = lower
    padded.diagonal(dim1=-2, dim2=-1)[..., n:] = 1.0
    return padded


def _diagonal_blocks(A: Float[Tensor, "*b n n"], size: int) -> Float[Tensor, "*b m s s"]:
    """Return a view of the diagonal blocks, which have `size` rows each."""
    m = A.shape[-1] // size
    blocks = A.reshape(*A.shape[:-2], m, size, m, size).diagonal(dim1=-4, dim2=-2)
    return blocks.movedim(-1, -3)


def _square(T: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """Return TᵀT for a lower triangular T."""
    n = T.shape[-1]
    if n <= MIN_HALVED_ROWS:
        return T.mT @ T
    half = n // 2
    below, last = T[..., half:, :half], T[..., half:, half:]
    square = T.new_empty(T.shape)
    square[..., :half, :half] = _square(T[..., :half, :half])
    square[..., :half, :half] += below.mT @ below
    square[..., :half, half:] = _times_lower(below.mT, last)
    square[..., half:, :half] = square[..., :half, half:].mT
    square[..., half:, half:] = _square(last)
    return square


def _times_lower(A: Float[Tensor, "*b m n"], T: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b m n"]:
    """Return A T for a lower triangular T; if T is large, its zero upper right block is skipped."""
    half = T.shape[-1] // 2
    if half < MIN_HALVED_ROWS:
        return A @ T
    product = T.new_empty(A.shape)
    product[..., :half] = A @ T[..., :half]
    product[..., half:] = A[..., half:] @ T[..., half:, half:]
    return product
