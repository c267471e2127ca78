"""Linear algebra at the level of LAPACK, in batches, with the one jitter policy.

A covariance is factored as it is. If rounding has made it indefinite, its
diagonal grows by 1e-12, 1e-11, … 1e-6 of its mean until the factor exists;
what was added is kept, `checked` warns of it, and raises when 1e-6 was not enough.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack, solve_triangular

Array = np.ndarray

JITTERS = (0.0, *(10.0**power for power in range(-12, -5)))


class NumericalError(ValueError):
    """A covariance that is not positive definite even with the largest jitter."""


class JitterWarning(UserWarning):
    """A covariance needed help to be factored; the message says how much."""


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factors of a batch of matrices; jitter is NaN where there is none."""

    lower: Float[Array, "*b n n"]
    jitter: Float[Array, "*b"]

    def checked(self, what: str) -> "Factor":
        """This factor; warns if jitter was needed, raises if none sufficed."""
        if np.isnan(self.jitter).any():
            raise NumericalError(
                f"The {what} is not positive definite, even with {JITTERS[-1]:g} of its mean "
                "added to the diagonal. Look for duplicated sites with zero noise, inputs or "
                "outputs that are not finite, or a kernel that is not a covariance function."
            )
        if (self.jitter > 0).any():
            warnings.warn(
                f"The {what} was not positive definite to rounding; {self.jitter.max():g} of its "
                "mean was added to the diagonal. Sites very close together, or a length-scale "
                "far larger than the region, with almost no noise are the usual cause.",
                JitterWarning,
                stacklevel=2,
            )
        return self

    def half_solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """L⁻¹ b."""
        return _each(lambda lower, rhs: _triangular(lower, rhs, trans=False), self.lower, b)

    def solve(self, b: Float[Array, "*b n m"]) -> Float[Array, "*b n m"]:
        """A⁻¹ b."""
        return _each(
            lambda lower, rhs: _triangular(lower, _triangular(lower, rhs, False), True),
            self.lower,
            b,
        )

    def inverse(self) -> Float[Array, "*b n n"]:
        """A⁻¹, by potri: a third of the work of solving against the identity."""
        return _each(_inverse, self.lower)

    def inverse_triangle(self) -> Float[Array, "*b n n"]:
        """The lower triangle of A⁻¹, zeros above: half of the memory traffic, where it will do."""
        return _each(_inverse_triangle, self.lower)

    def logdet(self) -> Float[Array, "*b"]:
        """log |A|."""
        return np.asarray(2.0 * np.log(np.einsum("...ii->...i", self.lower)).sum(-1))


def factor(A: Float[Array, "*b n n"]) -> Factor:
    """Cholesky factors of symmetric matrices, each with the least jitter that works.

    >>> factor(np.array([[4.0, 2.0], [2.0, 5.0]])).lower
    array([[2., 0.],
           [1., 2.]])
    """
    *batch, _, _ = A.shape
    lower = A.copy()
    jitter = np.empty(tuple(batch))
    for index in np.ndindex(*batch):
        jitter[index] = _factor_in_place(lower[index], A[index])
    return Factor(lower, jitter)


def _factor_in_place(lower: Float[Array, "n n"], A: Float[Array, "n n"]) -> float:
    """Turn `lower`, a copy of A, into its factor; the jitter that took, NaN if none was enough."""
    diagonal = lower.reshape(-1)[:: len(A) + 1]
    scale = np.trace(A) / len(A)
    for jitter in JITTERS:
        if jitter:
            lower[...] = A
            diagonal += jitter * scale
        # LAPACK is column-major: the upper factor of the transpose is our lower one, in place.
        _, info = lapack.dpotrf(lower.T, lower=0, clean=1, overwrite_a=1)
        if info == 0 and np.isfinite(diagonal).all():
            return jitter
    lower[...] = np.eye(len(A))
    return float("nan")


def _inverse_triangle(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    half, _ = lapack.dpotri(lower.T, lower=0)  # the other triangle is zero, as `clean` left it
    return half.T


def _inverse(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    half = _inverse_triangle(lower)
    inverse = half + half.T
    inverse.reshape(-1)[:: len(lower) + 1] /= 2
    return inverse


def _triangular(
    lower: Float[Array, "n n"], b: Float[Array, "n m"], trans: bool
) -> Float[Array, "n m"]:
    return solve_triangular(lower, b, lower=True, trans=int(trans), check_finite=False)


def _each(function: Callable[..., Array], *stacks: Float[Array, "..."]) -> Float[Array, "..."]:
    """The function of each matrix of the stacks."""
    batch = stacks[0].shape[:-2]
    if not batch:
        return function(*stacks)
    flat = [stack.reshape(-1, *stack.shape[-2:]) for stack in stacks]
    out = np.stack([function(*matrices) for matrices in zip(*flat, strict=True)])
    return out.reshape(*batch, *out.shape[-2:])
