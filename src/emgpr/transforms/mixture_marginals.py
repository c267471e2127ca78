"""Mixtures of C Gaussians with equal weights, for one quantity at M locations.

Functions are named as in scipy.stats. `m` and `s`, of shape (C, M), are the means and standard
deviations of the components. If the standard deviation of a component is zero, its distribution
function is a step, with the value ½ at the step.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri

Array = np.ndarray

MIN_STD = 1e-100  # replaces a standard deviation of zero in divisions
MAX_PPF_ITER = 200


def cdf(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """Return P(quantity < u), for u of shape (..., M).

    >>> cdf(np.zeros(1), np.array([[-9.0], [9.0]]), np.ones((2, 1)))
    array([0.5])
    """
    return sum(ndtr((u - m[c]) / s[c]) for c in range(len(m))) / len(m)


def sf(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """Return P(quantity > u), for u of shape (..., M), accurately even in the upper tail."""
    return cdf(-u, -m, s)


def pdf(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """Return the density at u, for u of shape (..., M)."""
    total = sum(np.exp(-0.5 * ((u - m[c]) / s[c]) ** 2) / s[c] for c in range(len(m)))
    return total / (len(m) * np.sqrt(2 * np.pi))


def logpdf(u: Float[Array, " M"], m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """Return the log density at u, which is finite even far in the tails."""
    t = (u - m) / s
    components = -0.5 * (t**2 + np.log(2 * np.pi)) - np.log(s)
    return np.asarray(logsumexp(components, axis=0)) - np.log(len(m))


def ppf(
    q: Float[Array, " k"], m: Float[Array, "C M"], s: Float[Array, "C M"], tolerance: float = 1e-13
) -> Float[Array, "k M"]:
    """Return the quantiles for probabilities q, using Newton's method and bisection.

    The quantile of the mixture lies between the quantiles of the components. The equation to
    solve is written as a sum of tail probabilities of the components. It can therefore be solved
    even for a median between distant components, where the distribution function is constant up to
    rounding.

    >>> ppf(np.array([0.5]), np.array([[-20.0], [22.0]]), np.ones((2, 1))).round(9)
    array([[1.]])
    """
    C = len(m)
    of_components = m + s * ndtri(q)[:, None, None]
    low, high = of_components.min(axis=1), of_components.max(axis=1)
    if C == 1:
        return low
    u, step = 0.5 * (low + high), high - low
    max_step = tolerance * (np.abs(low) + np.abs(high) + s.min(axis=0))
    converged = np.zeros(u.shape, dtype=bool)
    for _ in range(MAX_PPF_ITER):
        t = (u[:, None] - m) / s
        tails = np.sign(t) * ndtr(-np.abs(t))
        excess = (np.sign(t) + 1).sum(axis=1) / 2 - C * q[:, None] - tails.sum(axis=1)
        low, high = np.where(excess < 0, u, low), np.where(excess > 0, u, high)
        slope = (np.exp(-0.5 * t**2) / s).sum(axis=1) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = u - excess / slope
        bisect = ~((newton > low) & (newton < high) & (np.abs(newton - u) < 0.5 * np.abs(step)))
        new_u = np.where(bisect, 0.5 * (low + high), newton)
        new_u = np.where(converged | (excess == 0), u, new_u)
        step, u = new_u - u, new_u
        converged |= np.abs(step) <= max_step
        if converged.all():
            break
    return u
