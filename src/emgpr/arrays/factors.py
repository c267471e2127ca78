"""Cholesky factors in batches, and the one jitter policy.

A covariance is factored as it is. If rounding has made it indefinite, its
diagonal grows by 1e-12, 1e-11, … 1e-6 of its mean until the factor exists;
what was added is kept, `checked` warns of it, and raises when 1e-6 was not enough.
"""

import warnings
from dataclasses import dataclass
from types import ModuleType

import array_api_compat
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float

from emgpr.arrays import lapack, products
from emgpr.arrays.devices import Array, diagonal, fetch

JITTERS = (0.0, *(10.0**power for power in range(-12, -5)))


class NumericalError(ValueError):
    """A covariance that is not positive definite even with the largest jitter."""


class JitterWarning(UserWarning):
    """A covariance needed help to be factored; the message says how much."""


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factors of a batch of matrices; jitter is NaN where there is none.

    What `lower` holds above its diagonals is not to be read.
    """

    lower: Float[Array, "*b n n"]
    jitter: Float[Array, "*b"]

    def checked(self, what: str) -> "Factor":
        """This factor; warns if jitter was needed, raises if none sufficed."""
        jitter = fetch(self.jitter)
        if np.isnan(jitter).any():
            raise NumericalError(
                f"The {what} is not positive definite, even with {JITTERS[-1]:g} of its mean "
                "added to the diagonal. Look for duplicated sites with zero noise, inputs or "
                "outputs that are not finite, or a kernel that is not a covariance function."
            )
        if (jitter > 0).any():
            warnings.warn(
                f"The {what} was not positive definite to rounding; {jitter.max():g} of its "
                "mean was added to the diagonal. Sites very close together, or a length-scale "
                "far larger than the region, with almost no noise are the usual cause.",
                JitterWarning,
                stacklevel=2,
            )
        return self

    def half_solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """L⁻¹ b."""
        return _library(b).half_solve(self.lower, b)

    def solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """A⁻¹ b."""
        return _library(b).solve(self.lower, b)

    def inverse(self) -> Float[Array, "*b n n"]:
        """A⁻¹."""
        library = _library(self.lower)
        return library.mirrored(library.inverse_triangle(self.lower, overwrite=False))

    def inverse_triangle(self) -> Float[Array, "*b n n"]:
        """A⁻¹ on and below the diagonal; above it, anything. It may take the factor's place."""
        return _library(self.lower).inverse_triangle(self.lower, overwrite=True)

    def half_of_inverse_less_square(self, v: Float[Array, "*b n 1"]) -> Float[Array, "*b n n"]:
        """M with M + Mᵀ = A⁻¹ − vvᵀ: all that a contraction with symmetric matrices needs.

        It may take the factor's place.
        """
        library = _library(self.lower)
        inverse = library.inverse_triangle(self.lower, overwrite=True)
        return library.half(library.less_square(inverse, v))

    def logdet(self) -> Float[Array, "*b"]:
        """log |A|."""
        xp = array_namespace(self.lower)
        return xp.asarray(2.0 * xp.sum(xp.log(diagonal(self.lower)), axis=-1))


def factor(A: Float[Array, "*b n n"], *, overwrite: bool = False) -> Factor:
    """Cholesky factors of symmetric matrices, each with the least jitter that works.

    With `overwrite` they may take the place of A.

    >>> factor(np.array([[4.0, 2.0], [2.0, 5.0]])).lower
    array([[2., 0.],
           [1., 2.]])
    """
    xp, library = array_namespace(A), _library(A)
    *batch, n, _ = A.shape
    whole = A.reshape(-1, n, n)
    variances = xp.asarray(diagonal(whole), copy=True)
    lower, fine = library.cholesky(whole, overwrite=overwrite)
    jitter = xp.zeros_like(variances[:, 0])
    for amount in JITTERS[1:]:
        if fine.all():
            break
        weak = ~fine
        # Whatever became of the lower triangle, the upper one is as it was.
        upper = xp.triu(whole[weak], k=1)
        again, own = upper + xp.matrix_transpose(upper), variances[weak]
        diagonal(again)[...] = own + amount * xp.mean(own, axis=-1, keepdims=True)
        jitter[weak] = amount
        lower[weak], fine[weak] = library.cholesky(again, overwrite=overwrite)
    if not fine.all():
        lower[~fine] = xp.eye(n, dtype=A.dtype, device=array_api_compat.device(A))
        jitter[~fine] = float("nan")
    return Factor(lower.reshape(A.shape), jitter.reshape(tuple(batch)))


def _library(A: Array) -> ModuleType:
    """Who factors these matrices: LAPACK for NumPy's, torch for its own."""
    return lapack if isinstance(A, np.ndarray) else products
