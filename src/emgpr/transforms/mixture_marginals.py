"""Mixtures of C Gaussians, for one quantity at M locations.

Functions are named as in scipy.stats. `m` and `s`, of shape (C, M), are the means and standard
deviations of the components. `w` holds their weights, which sum to one over the components; if it
is None, the components are equally likely. If the standard deviation of a component is zero, its
distribution function is a step, with the value ½ at the step.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri

from emgpr.ensemble import replace_unused

Array = np.ndarray
PerComponent = Float[Array, "C M"]  # one value for each component and location
Weights = Float[Array, "C M"] | None

MIN_STD = 1e-100  # replaces a standard deviation of zero in divisions
MAX_PPF_ITER = 200


class Components(NamedTuple):
    """The components of a mixture, in the order in which the functions take them as arguments."""

    m: PerComponent
    s: PerComponent
    w: Weights = None


def average(values: Float[Array, "C *n"], w: Float[Array, "C *n"] | None = None) -> Array:
    """Return the mean of values over the components, Σ_c w_c v_c.

    >>> average(np.array([[1.0], [5.0]])), average(np.array([[1.0], [5.0]]), np.array([[1.0], [0]]))
    (array([3.]), array([1.]))
    """
    return values.mean(axis=0) if w is None else (w * values).sum(axis=0)


def log_average(log_values: PerComponent, w: Weights = None) -> Float[Array, " M"]:
    """Return log Σ_c w_c exp(l_c) without overflow, given log values l."""
    if w is None:
        return np.asarray(logsumexp(log_values, axis=0)) - np.log(len(log_values))
    with np.errstate(divide="ignore"):  # log 0 = −∞
        return np.asarray(logsumexp(log_values + np.log(w), axis=0))


def weighted_sum(parts: Iterable[Array], w: Weights) -> Array:
    """Return the sum of the parts of all components, each multiplied by its weight if it has one.

    The parts are added one by one, so that they need not all be in memory.
    """
    weighted = parts if w is None else (w_c * part for w_c, part in zip(w, parts, strict=True))
    return np.asarray(sum(weighted))


def total_weight(m: PerComponent, w: Weights) -> int:
    """Return the sum of the weights, one, or the number of components if they have no weights."""
    return len(m) if w is None else 1


def cdf(u: Array, m: PerComponent, s: PerComponent, w: Weights = None) -> Array:
    """Return P(quantity < u), for u of shape (..., M).

    >>> cdf(np.zeros(1), np.array([[-9.0], [9.0]]), np.ones((2, 1)))
    array([0.5])
    """
    parts = (ndtr((u - m[c]) / s[c]) for c in range(len(m)))
    return weighted_sum(parts, w) / total_weight(m, w)


def sf(u: Array, m: PerComponent, s: PerComponent, w: Weights = None) -> Array:
    """Return P(quantity > u), for u of shape (..., M), accurately even in the upper tail."""
    return cdf(-u, -m, s, w)


def pdf(u: Array, m: PerComponent, s: PerComponent, w: Weights = None) -> Array:
    """Return the density at u, for u of shape (..., M)."""
    parts = (np.exp(-0.5 * ((u - m[c]) / s[c]) ** 2) / s[c] for c in range(len(m)))
    return weighted_sum(parts, w) / (total_weight(m, w) * np.sqrt(2 * np.pi))


def logpdf(u: Float[Array, " M"], m: PerComponent, s: PerComponent, w: Weights = None) -> Array:
    """Return the log density at u, which is finite even far in the tails."""
    t = (u - m) / s
    return log_average(-0.5 * (t**2 + np.log(2 * np.pi)) - np.log(s), w)


def ppf(
    q: Float[Array, " k"],
    m: PerComponent,
    s: PerComponent,
    w: Weights = None,
    tolerance: float = 1e-13,
) -> Float[Array, "k M"]:
    """Return the quantiles for probabilities q, using Newton's method and bisection.

    The quantile of the mixture lies between the quantiles of the components of positive weight. The
    equation to solve is written as a sum of tail probabilities of the components. It can therefore
    be solved even for a median between distant components, where the distribution function is
    constant up to rounding.

    >>> ppf(np.array([0.5]), np.array([[-20.0], [22.0]]), np.ones((2, 1))).round(9)
    array([[1.]])
    """
    if w is not None:
        m, s = replace_unused(m, w), replace_unused(s, w)
    # Relative to the centre, rounding errors and the tolerance do not depend on the origin.
    centre = 0.5 * m.min(axis=0) + 0.5 * m.max(axis=0)
    m = m - centre
    of_components = m + s * ndtri(q)[:, None, None]
    low, high = of_components.min(axis=1), of_components.max(axis=1)
    if len(m) == 1:
        return low + centre
    u, step = 0.5 * (low + high), high - low
    max_step = tolerance * (np.abs(low) + np.abs(high) + s.min(axis=0))
    target = total_weight(m, w) * q[:, None]
    converged = np.zeros(u.shape, dtype=bool)
    for _ in range(MAX_PPF_ITER):
        t = (u[:, None] - m) / s
        tails = np.sign(t) * ndtr(-np.abs(t))
        densities = np.exp(-0.5 * t**2) / s
        below, tail, slope = (
            (part if w is None else w * part).sum(axis=1)
            for part in (np.sign(t) + 1, tails, densities)
        )
        excess = below / 2 - target - tail
        low, high = np.where(excess < 0, u, low), np.where(excess > 0, u, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = u - excess / (slope / np.sqrt(2 * np.pi))
        bisect = ~((newton > low) & (newton < high) & (np.abs(newton - u) < 0.5 * np.abs(step)))
        new_u = np.where(bisect, 0.5 * (low + high), newton)
        new_u = np.where(converged | (excess == 0), u, new_u)
        step, u = new_u - u, new_u
        converged |= np.abs(step) <= max_step
        if converged.all():
            break
    return u + centre
