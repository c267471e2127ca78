"""Cholesky factors in batches, and the one jitter policy.

A covariance is factored as it is. If rounding has made it indefinite, its
diagonal grows by 1e-12, 1e-11, … 1e-6 of its mean until the factor exists;
what was added is kept, `checked` warns of it, and raises when 1e-6 was not enough.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import array_api_compat
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float

from emgpr.arrays import lapack, products
from emgpr.arrays.devices import Array, diagonal, fetch

Matrices = Float[Array, "*b n n"]

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

    def inverse_less_square(self, v: Float[Array, "*b n 1"]) -> Float[Array, "*b n n"]:
        """A⁻¹ − vvᵀ on and below the diagonal. It may take the factor's place."""
        return _library(self.lower).less_square(self.inverse_triangle(), v)

    def logdet(self) -> Float[Array, "*b"]:
        """log |A|."""
        xp = array_namespace(self.lower)
        return xp.asarray(2.0 * xp.sum(xp.log(diagonal(self.lower)), axis=-1))


def factor(A: Matrices | Callable[[], Matrices]) -> Factor:
    """Cholesky factors of symmetric matrices, each with the least jitter that works.

    Only what is on and below their diagonals is read. If A is a function that makes them, the
    factors may take their place; it is called again should jitter be needed.

    >>> factor(np.array([[4.0, 2.0], [2.0, 5.0]])).lower
    array([[2., 0.],
           [1., 2.]])
    """
    make = A if callable(A) else None
    made = A() if callable(A) else A
    xp, library = array_namespace(made), _library(made)
    *batch, n, _ = made.shape
    lower, fine = library.cholesky(made.reshape(-1, n, n), overwrite=make is not None)
    jitter = xp.zeros_like(lower[:, 0, 0])
    if not fine.all():
        whole = (made if make is None else make()).reshape(-1, n, n)
        variances = diagonal(whole)
        for amount in JITTERS[1:]:
            weak = ~fine
            again, own = whole[weak], variances[weak]
            diagonal(again)[...] = own + amount * xp.mean(own, axis=-1, keepdims=True)
            jitter[weak] = amount
            lower[weak], fine[weak] = library.cholesky(again, overwrite=make is not None)
            if fine.all():
                break
    if not fine.all():
        lower[~fine] = xp.eye(n, dtype=made.dtype, device=array_api_compat.device(made))
        jitter[~fine] = float("nan")
    return Factor(lower.reshape(*batch, n, n), jitter.reshape(tuple(batch)))


def _library(A: Array) -> ModuleType:
    """Who factors these matrices: LAPACK for NumPy's, torch for its own."""
    return lapack if isinstance(A, np.ndarray) else products
