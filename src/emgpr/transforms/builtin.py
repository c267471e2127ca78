"""The named transforms: identity, logarithm, Yeo–Johnson and normal score."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import boxcox1p, inv_boxcox1p, ndtr, ndtri
from scipy.stats import rankdata

from emgpr.row_numbers import rows_from_zero
from emgpr.transforms import quadrature
from emgpr.transforms.base import NamedTransform
from emgpr.transforms.censored_normal import NOT_CENSORED, Censoring
from emgpr.transforms.mixture_marginals import (
    MIN_STD,
    PerComponent,
    Weights,
    average,
    total_weight,
    weighted_sum,
)
from emgpr.transforms.quadrature import Expansion, Readings

Array = np.ndarray

IQR_OF_A_GAUSSIAN = 1.349  # in standard deviations
MIN_RELATIVE_SPREAD = 1e-12  # A smaller spread, relative to the median, is attributed to rounding.


class _ParameterFree(NamedTransform):
    """A transform without parameters, with closed forms for moments and scores."""

    parameter_free: ClassVar[bool] = True

    @classmethod
    def fit(cls, values: Float[Array, " n"], censoring: Censoring = NOT_CENSORED) -> NamedTransform:
        """Return the transform, which has no parameters to fit."""
        return cls()

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters, which is zero."""
        return 0

    def expansion_bytes(self) -> float:
        """Return the bytes of memory that `expansion` needs for each component and location."""
        return 64.0

    def crps_bytes(self, n_components: int) -> float:
        """Return the bytes of memory that `crps` needs for each location."""
        return 80.0 * n_components


@dataclass(frozen=True)
class Identity(_ParameterFree):
    """The identity, u = y."""

    linear: ClassVar[bool] = True
    on_line: ClassVar[bool] = True

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return u = y."""
        return y

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y = u."""
        return u

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy = 0, or NaN for NaN."""
        return np.where(np.isnan(y), np.nan, 0.0)

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the coefficients, all zero except a_0 = m and a_1 = s, and the variance."""
        a = np.zeros((n_terms + 1, *m.shape))
        a[: min(n_terms, 1) + 1] = [m, s][: n_terms + 1]
        return a, s**2

    def crps(self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None) -> Readings:
        """Return the CRPS of a Gaussian mixture."""
        pairs = weighted_sum(
            (average(_mean_absolute(m - m[c], np.hypot(s, s[c])), w) for c in range(len(m))), w
        )
        return average(_mean_absolute(m - y, s), w) - 0.5 * pairs / total_weight(m, w)


def _mean_absolute(m: PerComponent, s: PerComponent) -> PerComponent:
    """Return E|x| for x ~ N(m, s²)."""
    t = m / s
    return s * np.exp(-0.5 * t**2) * np.sqrt(2 / np.pi) + m * (ndtr(t) - ndtr(-t))


@dataclass(frozen=True)
class Log(_ParameterFree):
    """The logarithm of a positive output: u = log y.

    >>> Log().forward(np.array([1.0, -2.0]))
    array([  0., -inf])
    """

    log_normal: ClassVar[bool] = True

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log y, or −∞ if y ≤ 0."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(y, 0.0))

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return e^u."""
        return np.exp(u)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy = −log y, or −∞ if y ≤ 0."""
        return np.where(y <= 0, -np.inf, -self.forward(y))

    def domain_error(self, output: str, rows: Array) -> str:
        """Return the error message for values that are not positive."""
        return (
            f"The log transform needs positive values, but output {output!r} has {len(rows)} "
            f"values that are zero or negative, the first of them in {rows_from_zero(rows)}. "
            "Replace values below a detection limit with positive values or NaN, or choose another "
            "transform."
        )

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the coefficients a_k = E[y] s^k/√k! and the variance of a log-normal variable.

        Values whose squares would overflow are reduced to `quadrature.MAX_VALUE` or its square.
        """
        a = [np.exp(np.minimum(m + 0.5 * s**2, np.log(quadrature.MAX_VALUE)))]
        for k in range(1, n_terms + 1):
            a.append(np.minimum(a[-1] * s / np.sqrt(k), quadrature.MAX_VALUE))
        log_variance = 2 * m + s**2 + quadrature.log_expm1(s**2)
        return np.stack(a), np.exp(np.minimum(log_variance, 2 * np.log(quadrature.MAX_VALUE)))

    def crps(self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None) -> Readings:
        """Return the CRPS of a log-normal mixture."""
        # Since |a − b| = a + b − 2 min(a, b), the means, which can be huge, cancel.
        mean = np.exp(np.minimum(m + 0.5 * s**2, np.log(quadrature.MAX_VALUE)))
        t = (self.forward(y) - m) / s
        min_with_y = average(mean * ndtr(t - s) + y * ndtr(-t), w)

        def half_of_min_with(c: int) -> Readings:
            joint_s = np.hypot(s, s[c])
            t = (m[c] - m) / joint_s
            return average(mean * ndtr(t - s * (s / joint_s)), w)

        min_of_pairs = 2 * weighted_sum(map(half_of_min_with, range(len(m))), w)
        return y - 2 * min_with_y + min_of_pairs / total_weight(m, w)


@dataclass(frozen=True)
class YeoJohnson(NamedTransform):
    """The Yeo–Johnson power transform of x = (y − centre)/spread.

    u = ((1 + x)^λ − 1)/λ for x ≥ 0, and −((1 − x)^(2−λ) − 1)/(2 − λ) for x < 0, with λ in [0, 2].
    The transform maps the real line onto itself, so every prediction of u can be converted to
    original units. With other values of λ, the inverse would be undefined far from the data.

    >>> skewed = YeoJohnson.fit(np.exp(np.linspace(-2, 2, 9)))
    >>> skewed.power < 1
    True
    >>> skewed.inverse(skewed.forward(np.array([-7.0, 3.0, 1e3]))).round(9)
    array([  -7.,    3., 1000.])
    """

    on_line: ClassVar[bool] = True
    centre: float
    spread: float
    power: float

    @classmethod
    def fit(cls, values: Float[Array, " n"], censoring: Censoring = NOT_CENSORED) -> "YeoJohnson":
        """Estimate the centre and spread from quartiles, and the power by maximum likelihood.

        The maximum-likelihood power depends on location and scale. The readings are therefore
        standardised first, using the median and the interquartile range.
        """
        standard = cls(float(np.median(values)), robust_spread(values), 1.0)
        x = standard.forward(values)
        slopes = np.sum(np.sign(x) * np.log1p(np.abs(x)))

        def loss(power: float) -> float:
            fitted = replace(standard, power=float(power))
            with np.errstate(over="ignore", invalid="ignore"):  # the square of a huge reading
                limits = censoring.transformed(fitted.forward)
                log_likelihood = limits.max_log_likelihood(fitted.forward(values))
            return -np.nan_to_num(log_likelihood, nan=-np.inf) - (power - 1) * slopes

        best = minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-8})
        return replace(standard, power=float(best.x))

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the power transform of the standardised output."""
        return _yeo_johnson((y - self.centre) / self.spread, self.power)

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y = T⁻¹(u), which is defined for any u."""
        power = np.where(u < 0, 2 - self.power, self.power)
        return self.centre + self.spread * np.sign(u) * inv_boxcox1p(np.abs(u), power)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy = (λ − 1) sign(x) log(1 + |x|) − log spread."""
        x = (y - self.centre) / self.spread
        return (self.power - 1) * np.sign(x) * np.log1p(np.abs(x)) - np.log(self.spread)

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters, which is one: the power."""
        return 1

    def kinks(self) -> Float[Array, " J"]:
        """Return the value zero, at which the third derivative of the inverse is discontinuous."""
        return np.zeros(1)

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the Hermite coefficients and the variance, using a coarse quadrature rule."""
        every = quadrature.EVERY_NODE_IF_SMOOTH
        return quadrature.hermite_expansion(self.inverse, m, s, n_terms, every)


def robust_spread(values: Float[Array, " n"]) -> float:
    """Return the standard deviation of a normal distribution with the same quartiles.

    If most values are equal, the standard deviation of the values is returned instead.

    >>> robust_spread(np.array([-1e9, 0.0, 1.0, 1.349, 1e9]))
    1.0
    """
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = (high - low) / IQR_OF_A_GAUSSIAN
    if spread <= MIN_RELATIVE_SPREAD * max(abs(centre), np.finfo(float).tiny):
        spread = np.ptp(values) * np.std((values - values.min()) / np.ptp(values))
    return float(spread)


def _yeo_johnson(x: Float[Array, "*n"], power: float) -> Float[Array, "*n"]:
    return np.sign(x) * boxcox1p(np.abs(x), np.where(x < 0, 2 - power, power))


@dataclass(frozen=True)
class NormalScore(NamedTransform):
    """The normal-score transform: values are mapped to normal quantiles according to their ranks.

    Equal values have the same score, that of their mean rank. The transform is linear between
    knots. About 2√n of n values are knots, evenly spaced in the scores. With a knot at every value,
    the transform would follow random gaps between values. This would reduce the log density of new
    readings by 0.4, whatever n, and have no benefit. Beyond the outermost knots, the transform is
    linear. Its slope there is the mean slope over the outermost interval of length 1 in u, which is
    about one standard deviation of the scores. This interval is wide enough to contain more than
    the last two values, and always lies inside the range of the scores, which is at least 1.35.

    >>> scores = NormalScore.fit(np.array([1.0, 2.0, 10.0]))
    >>> scores.forward(np.array([2.0, 6.0])).round(3)
    array([0.   , 0.484])
    >>> scores.inverse(scores.forward(np.array([-50.0, 1e4])))
    array([  -50., 10000.])
    """

    on_line: ClassVar[bool] = True
    values: Float[Array, " J"]
    scores: Float[Array, " J"]

    @classmethod
    def fit(cls, values: Float[Array, " n"], censoring: Censoring = NOT_CENSORED) -> "NormalScore":
        """Fit the transform to values that are not all equal."""
        knots, first = np.unique(values, return_index=True)
        n = censoring.n_below + len(values) + censoring.n_above
        scores = ndtri((censoring.n_below + rankdata(values)[first] - 0.5) / n)
        n_knots = int(np.ceil(2 * np.sqrt(len(values))))
        if len(knots) > n_knots:
            even = np.linspace(scores[0], scores[-1], n_knots)
            middles = (scores[1:] + scores[:-1]) / 2
            kept = np.unique(np.searchsorted(middles, even))  # nearest scores
            knots, scores = knots[kept], scores[kept]
        if censoring.n_below:
            knots = np.append(censoring.lower, knots)
            scores = np.append(ndtri(censoring.n_below / n), scores)
        if censoring.n_above:
            knots = np.append(knots, censoring.upper)
            scores = np.append(scores, ndtri(1 - censoring.n_above / n))
        return cls(knots, scores)

    @cached_property
    def slopes(self) -> Float[Array, " lines"]:
        """Slopes of the inverse: below the lowest knot, between knots, above the highest knot."""
        low, high = self.values - self.values[0], self.values[-1] - self.values
        return np.concatenate(
            [
                [np.interp(self.scores[0] + 1, self.scores, low)],
                np.diff(self.values) / np.diff(self.scores),
                [np.interp(self.scores[-1] - 1, self.scores, high)],
            ]
        )

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters: the knots, minus two for location and scale."""
        return max(0, len(self.values) - 2)

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the score of y, interpolated between the knots."""
        inside = np.interp(y, self.values, self.scores)
        below, above = np.minimum(y - self.values[0], 0), np.maximum(y - self.values[-1], 0)
        return np.asarray(inside + below / self.slopes[0] + above / self.slopes[-1])

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the value with score u, interpolated between the knots."""
        inside = np.interp(u, self.scores, self.values)
        below, above = np.minimum(u - self.scores[0], 0), np.maximum(u - self.scores[-1], 0)
        return np.asarray(inside + self.slopes[0] * below + self.slopes[-1] * above)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the logarithm of the slope of the linear segment that contains y."""
        line = np.searchsorted(self.values, y, side="right")
        return np.where(np.isnan(y), np.nan, -np.log(self.slopes)[line])

    def kinks(self) -> Float[Array, " J"]:
        """Return the scores of the knots, at which the slope of the inverse changes."""
        return self.scores

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the exact Hermite coefficients and variance of a piecewise linear function."""
        # On each segment, y = α + βx. If P is the probability of the segment, the integrals of x
        # and x² over it, weighted by the density φ, are −Δφ and P − Δ(xφ).
        x = np.clip((self.scores - m[..., None]) / np.maximum(s, MIN_STD)[..., None], -40.0, 40.0)
        phi = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
        P = np.diff(ndtr(x), axis=-1, prepend=0.0, append=1.0)
        d_phi, d_xphi = (np.diff(end, axis=-1, prepend=0.0, append=0.0) for end in (phi, x * phi))
        knot = np.maximum(np.arange(len(self.scores) + 1) - 1, 0)  # at the start of each segment
        centre = self.inverse(m)
        alpha = self.values[knot] - centre[..., None]
        alpha -= self.slopes * (self.scores[knot] - m[..., None])
        beta = s[..., None] * self.slopes
        a = np.empty((n_terms + 1, *m.shape))
        a[0] = (alpha * P - beta * d_phi).sum(axis=-1)
        square = alpha**2 * P - 2 * alpha * beta * d_phi + beta**2 * (P - d_xphi)
        variance = np.maximum(square.sum(axis=-1) - a[0] ** 2, 0.0)
        a[0] += centre
        if n_terms:
            a[1] = (beta * P).sum(axis=-1)
        # The second derivative consists of a delta function at each knot.
        peaks = s[..., None] * np.diff(self.slopes) * phi
        for k, h in enumerate(quadrature.hermite_polynomials(x, n_terms - 2), start=2):
            a[k] = (peaks * h).sum(axis=-1) / np.sqrt(k * (k - 1))
        return a, variance

    def expansion_bytes(self) -> float:
        """Return the bytes of memory that `expansion` needs for each component and location."""
        return 80.0 * len(self.scores)
