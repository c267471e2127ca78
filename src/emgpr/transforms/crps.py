"""The continuous ranked probability score of a mixture, on the user's scale:

CRPS = ∫ (P(Y < x) − [y < x])² dx = E|Y − y| − ½ E|Y − Y'|
"""

from functools import singledispatch

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from emgpr.transforms.maps import Identity, Log, Map
from emgpr.transforms.mixtures import above, below, density

Array = np.ndarray

_EDGES = np.linspace(-8.0, 8.0, 17)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


@singledispatch
def crps(
    of: Map, y: Float[Array, " M"], m: Float[Array, "C M"], s: Float[Array, "C M"]
) -> Float[Array, " M"]:
    """By parts, with y = f(v): 2 ∫ p(u) |f(u) − y| P(u) du, P the lesser side of v.

    Gauss's rule between v, the kinks of the map, and steps of one deviation.
    """
    s = np.maximum(s, 1e-9 * (np.abs(m).max(axis=0) + np.ptp(m, axis=0)))  # a step has no width
    v = of.forward(y)
    steps = _steps(m, s)
    kinks = np.broadcast_to(of.kinks()[:, None], (len(of.kinks()), len(y)))
    inside = np.clip(np.vstack([kinks, v]), steps.min(axis=0), steps.max(axis=0))
    u = np.sort(np.vstack([steps, inside]), axis=0)
    half = 0.5 * np.diff(u, axis=0)
    nodes = (u[1:] + u[:-1]) / 2 + half * _NODES[:, None, None]
    side = np.where(nodes < v, below(nodes, m, s), above(nodes, m, s))
    parts = density(nodes, m, s) * side * np.abs(of.back(nodes) - y)
    return 2 * np.einsum("g,gpm,pm->m", _WEIGHTS, parts, half)


def _steps(m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Float[Array, "p M"]:
    """Edges no further apart than the deviation of a component that is there."""
    low, high = (m - 8 * s).min(axis=0), (m + 8 * s).max(axis=0)
    n = np.max((high - low) / s.min(axis=0), initial=1.0)
    if n < len(_EDGES) * len(m):  # of like width: the same steps serve them all
        return low + (high - low) * np.linspace(0.0, 1.0, int(np.ceil(n - 1e-9)) + 1)[:, None]
    return np.concatenate([m + s * edge for edge in _EDGES])


def bytes_each(C: int, of: Map) -> float:
    """Memory that a site takes, at most."""
    if isinstance(of, Identity | Log):
        return 80.0 * C
    return 80.0 * len(_NODES) * (len(_EDGES) * C + len(of.kinks()) + 1)


@crps.register
def _(
    of: Identity, y: Float[Array, " M"], m: Float[Array, "C M"], s: Float[Array, "C M"]
) -> Float[Array, " M"]:
    apart = sum(_distance(m - m[c], np.hypot(s, s[c])).mean(axis=0) for c in range(len(m)))
    return _distance(m - y, s).mean(axis=0) - 0.5 * apart / len(m)


def _distance(m: Float[Array, "C M"], s: Float[Array, "C M"]) -> Float[Array, "C M"]:
    """E|x| of x ~ N(m, s²)."""
    t = m / s
    return s * np.exp(-0.5 * t**2) * np.sqrt(2 / np.pi) + m * (ndtr(t) - ndtr(-t))


@crps.register
def _(
    of: Log, y: Float[Array, " M"], m: Float[Array, "C M"], s: Float[Array, "C M"]
) -> Float[Array, " M"]:
    # |a − b| = a + b − 2 min(a, b), and the means, which may be vast, cancel.
    mean = np.exp(m + 0.5 * s**2)
    t = (of.forward(y) - m) / s
    nearer = (mean * ndtr(t - s) + y * ndtr(-t)).mean(axis=0)
    among = np.zeros_like(y)
    for c in range(len(m)):
        both = np.hypot(s, s[c])
        t = (m[c] - m) / both
        among += 2 * (mean * ndtr(t - s * (s / both))).mean(axis=0)
    return y - 2 * nearer + among / len(m)
