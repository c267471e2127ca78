"""Means and covariances on the user's scale of what is Gaussian on the transformed one.

With y = f(m + s x), x ~ N(0, 1), and h_k the Hermite polynomials of unit norm,

    f(m + s x) = Σ_k a_k h_k(x),   E y = a_0,   cov(y, y') = Σ_k≥1 a_k a'_k ρ^k   (Mehler)

The coefficients of the identity (a_1 = s), of the exponential (a_k = E y s^k/√k!) and
of straight lines between knots are known; others come from a rule of equal
steps in x, which gives them to 1e-6 standard deviations if f is smooth and to
1e-3 if it has kinks, while f grows no faster than e^(3x).
"""

from collections.abc import Iterator
from functools import singledispatch

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from emgpr.transforms.maps import Identity, Log, Map, NormalScore, YeoJohnson
from emgpr.transforms.mixtures import NO_SPREAD

Array = np.ndarray

TERMS = 128
NEGLIGIBLE = 1e-9  # of the product of two standard deviations
NODES = np.linspace(-12.0, 12.0, 961)
SMOOTH = 4  # every so-many-th node will do
_WEIGHTS = np.exp(-0.5 * NODES**2) * (NODES[1] - NODES[0]) / np.sqrt(2 * np.pi)


def hermite(x: Array, last: int) -> Iterator[Array]:
    """h_0(x) … h_last(x): polynomials with E h_j(x) h_k(x) = [j = k] for x ~ N(0, 1).

    >>> [h * np.sqrt(norm) for h, norm in zip(hermite(2.0 * np.ones(1), 2), [1, 1, 2])]
    [array([1.]), array([2.]), array([3.])]
    """
    before, h = np.zeros_like(x), np.ones_like(x)
    for k in range(last + 1):
        yield h
        before, h = h, (x * h - np.sqrt(k) * before) / np.sqrt(k + 1)


_RULE = np.stack(list(hermite(NODES, TERMS))) * _WEIGHTS


@singledispatch
def expansion(
    of: Map, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    """Coefficients a_0 … a_terms of y, and its variance."""
    return _by_rule(of, m, s, terms, every=1)


def _by_rule(
    of: Map, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int, every: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    centre = of.back(m)
    apart = of.back(m[..., None] + s[..., None] * NODES[::every]) - centre[..., None]
    a = np.moveaxis(apart @ (every * _RULE[: terms + 1, ::every].T), -1, 0)
    apart -= a[0][..., None]
    a[0] += centre
    return a, np.square(apart) @ (every * _WEIGHTS[::every])


@expansion.register
def _(
    of: YeoJohnson, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    return _by_rule(of, m, s, terms, every=SMOOTH)


@expansion.register
def _(
    of: NormalScore, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    # y is α + βx on each line; of x, each holds the probability P, and −Δφ, P − Δxφ of x and x².
    x = np.clip((of.scores - m[..., None]) / np.maximum(s, NO_SPREAD)[..., None], -40.0, 40.0)
    phi = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    P = np.diff(ndtr(x), axis=-1, prepend=0.0, append=1.0)
    d_phi, d_xphi = (np.diff(end, axis=-1, prepend=0.0, append=0.0) for end in (phi, x * phi))
    of_line = np.maximum(np.arange(len(of.scores) + 1) - 1, 0)
    centre = of.back(m)
    alpha = of.values[of_line] - centre[..., None]
    alpha -= of.slopes * (of.scores[of_line] - m[..., None])
    beta = s[..., None] * of.slopes
    a = np.empty((terms + 1, *m.shape))
    a[0] = (alpha * P - beta * d_phi).sum(axis=-1)
    square = alpha**2 * P - 2 * alpha * beta * d_phi + beta**2 * (P - d_xphi)
    variance = np.maximum(square.sum(axis=-1) - a[0] ** 2, 0.0)
    a[0] += centre
    if terms:
        a[1] = (beta * P).sum(axis=-1)
    # The second derivative is a peak at each knot.
    peaks = s[..., None] * np.diff(of.slopes) * phi
    for k, h in enumerate(hermite(x, terms - 2), start=2):
        a[k] = (peaks * h).sum(axis=-1) / np.sqrt(k * (k - 1))
    return a, variance


@expansion.register
def _(
    of: Identity, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    a = np.zeros((terms + 1, *m.shape))
    a[: min(terms, 1) + 1] = [m, s][: terms + 1]
    return a, s**2


@expansion.register
def _(
    of: Log, m: Float[Array, "C M"], s: Float[Array, "C M"], terms: int
) -> tuple[Float[Array, "k C M"], Float[Array, "C M"]]:
    a = [np.exp(m + 0.5 * s**2)]
    for k in range(1, terms + 1):
        a.append(a[-1] * s / np.sqrt(k))
    return np.stack(a), a[0] ** 2 * np.expm1(s**2)


def covariance(
    maps: tuple[Map, ...], m: Float[Array, "C M D"], cov: Float[Array, "C M D D"]
) -> tuple[Float[Array, "C M D"], Float[Array, "C M D D"]]:
    """Mean and covariance on the user's scale of every component.

    Variances are whole while covariances end after a number of terms, which
    keeps the matrices positive semi-definite. What is left out is below 1e-9 of
    the deviations up to |ρ| = 0.85; as |ρ| nears 1 it grows to 2e-3 for lines
    between knots, and to 1e-6 for smooth maps.
    """
    s = np.sqrt(np.maximum(np.einsum("cmdd->cmd", cov), 0.0))
    both = s[..., :, None] * s[..., None, :]
    rho = np.clip(np.divide(cov, both, out=np.zeros_like(cov), where=both > 0), -1.0, 1.0)
    terms = _terms(maps, rho)
    parts = [expansion(of, m[..., d], s[..., d], terms) for d, of in enumerate(maps)]
    a = np.stack([coefficients for coefficients, _ in parts], axis=-1)
    answer = np.zeros_like(cov)
    for k in range(terms, 0, -1):
        answer = rho * (answer + a[k][..., :, None] * a[k][..., None, :])
    # Between two exponentials the whole series is known.
    logs = np.array([isinstance(of, Log) for of in maps])
    pairs = logs[:, None] & logs
    means = a[0][..., :, None] * a[0][..., None, :]
    answer[..., pairs] = means[..., pairs] * np.expm1((rho * both)[..., pairs])
    np.einsum("cmdd->cmd", answer)[...] = np.stack([own for _, own in parts], axis=-1)
    return a[0], answer


def _terms(maps: tuple[Map, ...], rho: Float[Array, "C M D D"]) -> int:
    """After which what is left of a covariance, at most ρ^k of the deviations, is negligible."""
    if all(isinstance(of, Identity | Log) for of in maps):
        return 1
    apart = ~np.eye(len(maps), dtype=bool)
    most = np.abs(rho[..., apart]).max(initial=1e-9)
    return int(np.ceil(np.clip(np.log(NEGLIGIBLE) / np.log(min(most, 0.999)), 1, TERMS)))
