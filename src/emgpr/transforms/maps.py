"""Increasing maps from an output, y, to a scale on which it is closer to Gaussian, u = T(y).

Each is plain numbers and arrays, knows its inverse and its slope, and takes any
value: one below the domain is at u = −∞.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize_scalar
from scipy.special import boxcox1p, inv_boxcox1p, ndtri
from scipy.stats import rankdata

Array = np.ndarray


class Map(ABC):
    """A strictly increasing function of one output."""

    @abstractmethod
    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """u = T(y); −∞ or ∞ for a value below or above the domain, NaN for NaN."""

    @abstractmethod
    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """y = T⁻¹(u)."""

    @abstractmethod
    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Log du/dy."""

    @property
    def n_parameters(self) -> int:
        """How many numbers were learned from the values, location and scale apart."""
        return 0

    def kinks(self) -> Float[Array, " J"]:
        """Where, in u, the inverse is not smooth: nowhere that we know of."""
        return np.empty(0)


def is_flat(mean: Array | float, spread: Array | float) -> Array:
    """Whether a spread is only rounding, and so is none."""
    return np.asarray(spread <= 1e-12 * np.maximum(np.abs(mean), np.finfo(float).tiny))


def is_constant(Y: Float[Array, "N D"]) -> Bool[Array, " D"]:
    """Whether the readings of each output are one value, but for rounding; NaN is none.

    >>> is_constant(np.array([[0.1, 1.0], [0.1 + 1e-17, 2.0], [np.nan, 3.0]]))
    array([ True, False])
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    return high / 2 - low / 2 <= 5e-15 * np.maximum(np.abs(low), np.abs(high))


def centre_and_spread(Y: Float[Array, "N D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Mean and standard deviation of each output; of a constant one, itself and 1.

    >>> centre_and_spread(np.array([[1e152, 5.0], [3e152, 5.0]]))
    (array([2.e+152, 5.e+000]), array([1.e+152, 1.e+000]))
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    still = is_constant(Y)
    # About one of the values and in units of their range, lest digits go, or squares overflow.
    unit = np.where(still, 1.0, high - low)
    away = (Y - low) / unit
    spread = unit * np.nanstd(away, axis=0)
    # To eight digits of the spread, which are the same wherever the origin is.
    digit = np.exp2(np.floor(np.log2(unit)) - 27)
    centre = low + digit * np.round(unit * np.nanmean(away, axis=0) / digit)
    return np.where(still, low, centre), np.where(still, 1.0, spread)


@dataclass(frozen=True)
class Identity(Map):
    """u = y."""

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The output as it is."""
        return y

    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The output as it is."""
        return u

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Zero."""
        return np.where(np.isnan(y), np.nan, 0.0)


@dataclass(frozen=True)
class Log(Map):
    """u = log y.

    >>> Log().forward(np.array([1.0, -2.0]))
    array([  0., -inf])
    """

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Log y, −∞ if y ≤ 0."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(y, 0.0))

    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """e^u."""
        return np.exp(u)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """−log y, −∞ if y ≤ 0, where nothing is."""
        return np.where(y <= 0, -np.inf, -self.forward(y))


@dataclass(frozen=True)
class YeoJohnson(Map):
    """The power transform of x = (y − centre)/spread, on both sides of zero.

    u = ((1 + x)^λ − 1)/λ for x ≥ 0 and −((1 − x)^(2−λ) − 1)/(2 − λ) below. With
    λ in [0, 2] it maps the real line onto itself, so that every prediction has a
    value on the user's scale; outside of it far ones have none.

    >>> skewed = YeoJohnson.learned(np.exp(np.linspace(-2, 2, 9)))
    >>> skewed.power < 1
    True
    >>> skewed.back(skewed.forward(np.array([-7.0, 3.0, 1e3]))).round(9)
    array([  -7.,    3., 1000.])
    """

    centre: float
    spread: float
    power: float

    @classmethod
    def learned(cls, values: Float[Array, " n"]) -> "YeoJohnson":
        """Median, interquartile range (as a Gaussian's deviation), and λ by maximum likelihood.

        The power depends on units, so these are removed first, robustly.
        """
        low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
        spread = (high - low) / 1.349
        if is_flat(centre, spread):  # most readings are one value
            spread = centre_and_spread(values[:, None])[1][0]
        standard = cls(float(centre), float(spread), 1.0)
        x = standard.forward(values)
        slopes = np.sum(np.sign(x) * np.log1p(np.abs(x)))

        def loss(power: float) -> float:
            u = _yeo_johnson(x, power)
            return float(len(x) / 2 * np.log(u.var()) - (power - 1) * slopes)

        best = minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-8})
        return cls(standard.centre, standard.spread, float(best.x))

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The power of the standardised output."""
        return _yeo_johnson((y - self.centre) / self.spread, self.power)

    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The root, for any u."""
        power = np.where(u < 0, 2 - self.power, self.power)
        return self.centre + self.spread * np.sign(u) * inv_boxcox1p(np.abs(u), power)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """(λ − 1) sign(x) log(1 + |x|) − log spread."""
        x = (y - self.centre) / self.spread
        return (self.power - 1) * np.sign(x) * np.log1p(np.abs(x)) - np.log(self.spread)

    @property
    def n_parameters(self) -> int:
        """The power."""
        return 1

    def kinks(self) -> Float[Array, " J"]:
        """Zero, where the third derivative jumps."""
        return np.zeros(1)


def _yeo_johnson(x: Float[Array, "*n"], power: float) -> Float[Array, "*n"]:
    return np.sign(x) * boxcox1p(np.abs(x), np.where(x < 0, 2 - power, power))


@dataclass(frozen=True)
class NormalScore(Map):
    """Straight lines through values seen and the normal quantiles of their ranks.

    Equal values share their middle rank. Of n values, 2√n are knots, evenly
    spread over the scores: a knot at each would make densities follow chance
    gaps between values, which costs unseen readings 0.4 of log density, however
    many values there are, and gains nothing. Beyond the extremes the line goes on
    with the mean slope of the outermost unit of u, one standard deviation of the
    scores: wide enough not to hang on the last two values, and always inside the
    data, whose scores span 1.35 at least.

    >>> scores = NormalScore.learned(np.array([1.0, 2.0, 10.0]))
    >>> scores.forward(np.array([2.0, 6.0])).round(3)
    array([0.   , 0.484])
    >>> scores.back(scores.forward(np.array([-50.0, 1e4])))
    array([  -50., 10000.])
    """

    values: Float[Array, " J"]
    scores: Float[Array, " J"]

    @classmethod
    def learned(cls, values: Float[Array, " n"]) -> "NormalScore":
        """From at least two different values."""
        knots, first = np.unique(values, return_index=True)
        scores = ndtri((rankdata(values)[first] - 0.5) / len(values))
        most = int(np.ceil(2 * np.sqrt(len(values))))
        if len(knots) > most:
            even = np.linspace(scores[0], scores[-1], most)
            middles = (scores[1:] + scores[:-1]) / 2
            kept = np.unique(np.searchsorted(middles, even))  # the nearest to each
            knots, scores = knots[kept], scores[kept]
        return cls(knots, scores)

    @cached_property
    def slopes(self) -> Float[Array, " lines"]:
        """Of the inverse: below the lowest value, between each two, above the highest."""
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
        """Knots, but for two that location and scale would place."""
        return max(0, len(self.values) - 2)

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The score, by interpolation between the values seen."""
        inside = np.interp(y, self.values, self.scores)
        below, above = np.minimum(y - self.values[0], 0), np.maximum(y - self.values[-1], 0)
        return np.asarray(inside + below / self.slopes[0] + above / self.slopes[-1])

    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The value, by interpolation between the scores."""
        inside = np.interp(u, self.scores, self.values)
        below, above = np.minimum(u - self.scores[0], 0), np.maximum(u - self.scores[-1], 0)
        return np.asarray(inside + self.slopes[0] * below + self.slopes[-1] * above)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Of the line that y is on."""
        line = np.searchsorted(self.values, y, side="right")
        return np.where(np.isnan(y), np.nan, -np.log(self.slopes)[line])

    def kinks(self) -> Float[Array, " J"]:
        """Every score."""
        return self.scores
