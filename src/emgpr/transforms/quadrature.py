"""Numerical integration of moments and scores of transformed Gaussian mixtures.

Let y = f(m + s x) with x ~ N(0, 1), and let h_k be the Hermite polynomials of unit norm. Then

    f(m + s x) = Σ_k a_k h_k(x),   E y = a_0,   cov(y, y') = Σ_k≥1 a_k a'_k ρ^k   (Mehler)

where y' is another output and ρ its correlation with y before the transform. The
coefficients are computed by a quadrature rule with equal steps in x. Provided that f does not grow
faster than e^(3x), the errors are 1e-6 standard deviations if f is smooth, and 1e-3 if f has kinks.
"""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from emgpr.transforms import mixture_marginals
from emgpr.transforms.mixture_marginals import PerComponent, Weights

Array = np.ndarray
Inverse = Callable[[Array], Array]
Readings = Float[Array, " M"]
Expansion = tuple[Float[Array, "k C M"], PerComponent]  # Hermite coefficients, and the variance

MAX_TERMS = 128  # largest number of terms in an expansion
MAX_VALUE = 1e153  # Larger values of y are reduced to this one, so that squares are finite.
NODES = np.linspace(-12.0, 12.0, 961)  # values of x at which expansions evaluate f
EVERY_NODE_IF_SMOOTH = 4  # If f is smooth, every fourth node suffices.
_NODE_WEIGHTS = np.exp(-0.5 * NODES**2) * (NODES[1] - NODES[0]) / np.sqrt(2 * np.pi)

# The CRPS is integrated with a five-point Gauss–Legendre rule over intervals of about one standard
# deviation, up to eight standard deviations from the mean.
_CRPS_EDGES = np.linspace(-8.0, 8.0, 17)
_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(5)


def hermite_polynomials(x: Array, last: int) -> Iterator[Array]:
    """Yield h_0(x) … h_last(x), with E h_j(x) h_k(x) = [j = k] for x ~ N(0, 1).

    >>> [h * np.sqrt(norm) for h, norm in zip(hermite_polynomials(2.0 * np.ones(1), 2), [1, 1, 2])]
    [array([1.]), array([2.]), array([3.])]
    """
    previous, h = np.zeros_like(x), np.ones_like(x)
    for k in range(last + 1):
        yield h
        previous, h = h, (x * h - np.sqrt(k) * previous) / np.sqrt(k + 1)


_RULE = np.stack(list(hermite_polynomials(NODES, MAX_TERMS))) * _NODE_WEIGHTS


def hermite_expansion(
    inverse: Inverse, m: PerComponent, s: PerComponent, n_terms: int, every: int = 1
) -> Expansion:
    """Return the coefficients a_0 to a_n of y = inverse(u), u ~ N(m, s²), and the variance of y."""
    centre = reduced(inverse, m)
    u = m[..., None] + s[..., None] * NODES[::every]
    deviation = reduced(inverse, u) - centre[..., None]
    a = np.moveaxis(deviation @ (every * _RULE[: n_terms + 1, ::every].T), -1, 0)
    deviation -= a[0][..., None]
    a[0] += centre
    return a, np.square(deviation) @ (every * _NODE_WEIGHTS[::every])


def reduced(inverse: Inverse, u: Array) -> Array:
    """Return y = inverse(u), with values beyond `MAX_VALUE` reduced to it.

    >>> reduced(np.exp, np.array([0.0, 1e6]))
    array([1.e+000, 1.e+153])
    """
    with np.errstate(over="ignore"):
        return np.clip(inverse(u), -MAX_VALUE, MAX_VALUE)


def log_expm1(x: Array) -> Array:
    """Return log(e^x − 1) for x ≥ 0, without overflow.

    >>> log_expm1(np.array([1.0, 1e6])).round(4)
    array([5.413e-01, 1.000e+06])
    """
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


def crps(
    inverse: Inverse,
    y: Readings,
    u: Readings,
    kinks: Float[Array, " J"],
    m: PerComponent,
    s: PerComponent,
    w: Weights = None,
) -> Readings:
    """Return the CRPS, ∫ (P(Y < x) − [y < x])² dx, for readings y with transformed values u.

    Integration by parts gives 2 ∫ p(v) |inverse(v) − y| P(v) dv, where p is the density of the
    transformed value and P(v) its probability on the side of v that does not contain u. The
    integration intervals end at u, at the kinks of the inverse, and at points one standard
    deviation apart.
    """
    # A standard deviation of zero is replaced by a small positive one.
    s = np.maximum(s, 1e-9 * (np.abs(m).max(axis=0) + np.ptp(m, axis=0)))
    steps = _crps_steps(m, s)
    kinks = np.broadcast_to(kinks[:, None], (len(kinks), len(y)))
    inside = np.clip(np.vstack([kinks, u]), steps.min(axis=0), steps.max(axis=0))
    ends = np.sort(np.vstack([steps, inside]), axis=0)
    half = 0.5 * np.diff(ends, axis=0)
    v = (ends[1:] + ends[:-1]) / 2 + half * _GAUSS_NODES[:, None, None]
    P = np.where(v < u, mixture_marginals.cdf(v, m, s, w), mixture_marginals.sf(v, m, s, w))
    integrand = mixture_marginals.pdf(v, m, s, w) * P * np.abs(reduced(inverse, v) - y)
    return 2 * np.einsum("g,gpm,pm->m", _GAUSS_WEIGHTS, integrand, half)


def crps_bytes(n_components: int, n_kinks: int) -> float:
    """Return the bytes of memory that `crps` needs for each location."""
    return 80.0 * len(_GAUSS_NODES) * (len(_CRPS_EDGES) * n_components + n_kinks + 1)


def _crps_steps(m: PerComponent, s: PerComponent) -> Float[Array, "p M"]:
    """Return the ends of integration intervals that are about one standard deviation long."""
    low, high = (m - 8 * s).min(axis=0), (m + 8 * s).max(axis=0)
    n = np.max((high - low) / s.min(axis=0), initial=1.0)
    if n < len(_CRPS_EDGES) * len(m):  # If the standard deviations are similar, use equal steps.
        return low + (high - low) * np.linspace(0.0, 1.0, int(np.ceil(n - 1e-9)) + 1)[:, None]
    return np.concatenate([m + s * edge for edge in _CRPS_EDGES])
