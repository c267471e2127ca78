"""Equal mixtures of C Gaussians of one quantity, at M sites: m and s are (C, M).

A component without spread is a step; at the step itself its distribution is ½.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri

Array = np.ndarray

NO_SPREAD = 1e-100  # a deviation of zero, as a divisor


def below(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """P(quantity < u), for u (..., M).

    >>> below(np.zeros(1), np.array([[-9.0], [9.0]]), np.ones((2, 1)))
    array([0.5])
    """
    return sum(ndtr((u - m[c]) / s[c]) for c in range(len(m))) / len(m)


def above(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """P(quantity > u), without the rounding of one minus the other."""
    return below(-u, -m, s)


def density(u: Array, m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """At u (..., M)."""
    total = sum(np.exp(-0.5 * ((u - m[c]) / s[c]) ** 2) / s[c] for c in range(len(m)))
    return total / (len(m) * np.sqrt(2 * np.pi))


def log_density(u: Float[Array, " M"], m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Array:
    """Log of the density at u, far in the tails too."""
    t = (u - m) / s
    each = -0.5 * (t**2 + np.log(2 * np.pi)) - np.log(s)
    return np.asarray(logsumexp(each, axis=0)) - np.log(len(m))


def quantiles(
    q: Float[Array, " k"], m: Float[Array, "C M"], s: Float[Array, "C M"], tolerance: float = 1e-13
) -> Float[Array, "k M"]:
    """Where the distribution reaches each q: Newton's steps, halving where they leap.

    The answer lies between the components' own quantiles. What the components
    hold beyond u is summed as small tails, so that the middle of components far
    apart, where the distribution is flat to rounding, is found all the same.

    >>> quantiles(np.array([0.5]), np.array([[-20.0], [22.0]]), np.ones((2, 1))).round(9)
    array([[1.]])
    """
    C = len(m)
    own = m + s * ndtri(q)[:, None, None]
    low, high = own.min(axis=1), own.max(axis=1)
    if C == 1:
        return low
    u, step = 0.5 * (low + high), high - low
    enough = tolerance * (np.abs(low) + np.abs(high) + s.min(axis=0))
    found = np.zeros(u.shape, dtype=bool)
    for _ in range(200):
        t = (u[:, None] - m) / s
        tails = np.sign(t) * ndtr(-np.abs(t))
        excess = (np.sign(t) + 1).sum(axis=1) / 2 - C * q[:, None] - tails.sum(axis=1)
        low, high = np.where(excess < 0, u, low), np.where(excess > 0, u, high)
        slope = (np.exp(-0.5 * t**2) / s).sum(axis=1) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = u - excess / slope
        leaps = ~((newton > low) & (newton < high) & (np.abs(newton - u) < 0.5 * np.abs(step)))
        following = np.where(leaps, 0.5 * (low + high), newton)
        following = np.where(found | (excess == 0), u, following)
        step, u = following - u, following
        found |= np.abs(step) <= enough
        if found.all():
            break
    return u
