"""Transforms of outputs that lie between bounds, such as concentrations and percentages.

A bound that no reading reaches is removed by a map g of the interval onto the line. Far from the
bounds, compared with a width c, g is the identity; close to a bound it is a logarithm:

    g(y) = y + c log(1 − e^(−(y − a)/c)) − c log(1 − e^(−(b − y)/c)),   a < y < b

If only the lower bound is finite, the inverse of g is c times the softplus function. As c grows, g
approaches a linear function of log(y − a) or, with two bounds, of the logit. Every prediction of
g(y), however uncertain, is thus a distribution between the bounds.

A bound that some readings reach, such as zero rain, has a probability of its own. There, y is the
value of a Gaussian variable that is cut off at the bound: y = max(a, …), as in the Tobit model. A
reading at the bound says only that the variable lies beyond it, and is replaced by the mean of the
variable beyond the bound.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from emgpr.row_numbers import rows_from_zero
from emgpr.transforms import mixture_marginals
from emgpr.transforms.base import NamedTransform, Transform
from emgpr.transforms.builtin import Identity, robust_spread
from emgpr.transforms.censored_normal import Censoring, mean_below
from emgpr.transforms.location_scale import is_constant
from emgpr.transforms.mixture_marginals import PerComponent, Weights, log_average
from emgpr.transforms.output_bounds import ROUNDING
from emgpr.transforms.quadrature import Expansion, Readings, hermite_expansion

Array = np.ndarray

# Widths of g, relative to the spread of the readings: the range in which the width is fitted, and
# the width if another transform follows g.
WIDTH_BOUNDS, FIXED_WIDTH = (0.02, 20.0), 0.25


@dataclass(frozen=True)
class Link:
    """The map g, which removes the finite bounds of an interval.

    >>> positive = Link(0.0, np.inf, 1.0)
    >>> positive.inverse(np.array([-50.0, 0.0, 50.0])).round(3)
    array([ 0.   ,  0.693, 50.   ])
    >>> positive.forward(positive.inverse(np.array([-5.0, 5.0]))).round(9)
    array([-5.,  5.])
    """

    lower: float
    upper: float
    width: float

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return g(y), which is −∞ at and below the lower bound and ∞ at and above the upper."""
        c = self.width
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            below = c * np.log(-np.expm1(np.minimum(self.lower - y, 0.0) / c))
            above = c * np.log(-np.expm1(np.minimum(y - self.upper, 0.0) / c))
        return y + below - above

    def inverse(self, g: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y = g⁻¹(g), which lies between the bounds."""
        # A bound plus a softplus function of g, without loss of digits if the bound is far from g.
        y = np.clip(g, self.lower, self.upper)
        for bound, sign in ((self.lower, 1), (self.upper, -1)):
            if np.isfinite(bound):
                y = y + sign * self.width * np.log1p(np.exp(-np.abs(g - bound) / self.width))
        return y

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log dg/dy, which is −∞ outside the bounds."""
        with np.errstate(divide="ignore", over="ignore"):
            below = 1 / np.expm1(np.maximum(y - self.lower, 0.0) / self.width)
            above = 1 / np.expm1(np.maximum(self.upper - y, 0.0) / self.width)
        return np.where((y <= self.lower) | (y >= self.upper), -np.inf, np.log1p(below + above))

    def with_fitted_width(self, values: Float[Array, " n"]) -> "Link":
        """Return the link whose width makes the values most likely under a normal distribution."""

        def loss(log_width: float) -> float:
            link = replace(self, width=float(np.exp(log_width)))
            g = link.forward(values)
            return float(len(values) * np.log(g.std()) - link.log_slope(values).sum())

        low, high = np.log(np.multiply(WIDTH_BOUNDS, robust_spread(values)))
        grid = np.linspace(low, high, 9)  # the loss can have more than one minimum
        best = grid[np.argmin([loss(x) for x in grid])]
        step = grid[1] - grid[0]
        bounds = (max(low, best - step), min(high, best + step))
        found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        return replace(self, width=float(np.exp(found.x)))


@dataclass(frozen=True)
class PointMass:
    """A bound that is reached: its value, the limit of u beyond it, and the value of u given it."""

    bound: float
    limit: float
    value: float


@dataclass(frozen=True)
class Bounded(Transform):
    """T(y) = shape(g(y)), with a point mass at every bound that some readings reach.

    >>> rain = fit_bounded(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 4.0]), (0.0, np.inf), Identity)
    >>> rain.inverse(np.array([-3.0, 0.0, 3.0]))
    array([0., 0., 3.])
    >>> bool(rain.forward(np.array([0.0]))[0] < 0)
    True
    """

    shape: Transform
    link: Link
    at_lower: PointMass | None = None
    at_upper: PointMass | None = None
    n_widths: int = 0  # number of fitted widths

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The bounds."""
        lower = self.link.lower if self.at_lower is None else self.at_lower.bound
        upper = self.link.upper if self.at_upper is None else self.at_upper.bound
        return lower, upper

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return T(y), which is infinite outside the bounds and at a bound without a mass."""
        y = _at_bounds(y, self.interval)
        u = self.limit(y)
        for mass in filter(None, (self.at_lower, self.at_upper)):
            u = np.where(y == mass.bound, mass.value, u)
        return u

    def limit(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the largest u for which T⁻¹(u) ≤ y."""
        lower, upper = self.interval
        y = _at_bounds(y, self.interval)
        u = self.shape.forward(self.link.forward(y))
        u = np.where(np.isnan(y), np.nan, u)
        u = np.where(y < lower, -np.inf, u)
        beyond = y > upper if self.at_upper is None else y >= upper
        return np.where(beyond, np.inf, u)

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y = T⁻¹(u), which is defined for any u and lies between the bounds."""
        return np.clip(self.link.inverse(self.shape.inverse(u)), *self.interval)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy, which is −∞ outside the bounds."""
        lower, upper = self.interval
        inside = (y > lower) & (y < upper)
        some = np.where(inside, y, self.inverse(np.zeros_like(y)))
        slope = self.link.log_slope(some) + self.shape.log_slope(self.link.forward(some))
        return np.where(inside, slope, np.where(np.isnan(y), np.nan, -np.inf))

    def log_density(
        self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None
    ) -> Readings:
        """Return the log density of y, or the log probability of a bound that has a mass."""
        y = _at_bounds(y, self.interval)
        result = super().log_density(y, m, s, w)
        for mass, sign in ((self.at_lower, 1), (self.at_upper, -1)):
            if mass is not None:
                log_mass = log_average(log_ndtr(sign * (mass.limit - m) / s), w)
                result = np.where(y == mass.bound, log_mass, result)
        return result

    def cdf(self, y: Readings, m: PerComponent, s: PerComponent, w: Weights = None) -> Readings:
        """Return P(Y < y); for readings at a bound that has a mass, evenly spaced parts of it.

        These parts make the result uniform on (0, 1) if the distributions are calibrated.
        """
        y = _at_bounds(y, self.interval)
        result = super().cdf(y, m, s, w)
        for mass, sign in ((self.at_lower, 1), (self.at_upper, -1)):
            if mass is None:
                continue
            rows = np.flatnonzero(y == mass.bound)
            parts = (np.random.default_rng(0).permutation(len(rows)) + 0.5) / max(1, len(rows))
            limit = np.full(len(rows), sign * mass.limit)
            at_rows = sign * m[:, rows], s[:, rows], None if w is None else w[:, rows]
            beyond = parts * mixture_marginals.cdf(limit, *at_rows)
            result[rows] = beyond if sign > 0 else 1 - beyond
        return result

    def expansion(self, m: PerComponent, s: PerComponent, n_terms: int) -> Expansion:
        """Return the Hermite coefficients and the variance; the mean is between the bounds."""
        a, variance = hermite_expansion(self.inverse, m, s, n_terms)
        a[0] = np.clip(a[0], *self.interval)  # rounding errors
        return a, variance

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters."""
        return self.shape.n_parameters + self.n_widths

    def kinks(self) -> Float[Array, " J"]:
        """Return the values of u at which the inverse is not smooth."""
        limits = [mass.limit for mass in (self.at_lower, self.at_upper) if mass is not None]
        return np.concatenate([self.shape.kinks(), limits])

    def domain_error(self, output: str, rows: Array) -> str:
        """Return the error message for readings outside the bounds."""
        lower, upper = self.interval
        left = "(" if self.at_lower is None else "["
        right = ")" if self.at_upper is None else "]"
        return (
            f"Output {output!r} has {len(rows)} values outside {left}{lower:g}, {upper:g}{right}, "
            f"the first of them in {rows_from_zero(rows)}. Correct them or replace them with "
            "NaN; if such values are possible, change output_bounds and fit again."
        )


def _at_bounds(y: Float[Array, "*n"], bounds: tuple[float, float]) -> Float[Array, "*n"]:
    """Move readings that differ from a bound only because of rounding to this bound."""
    for bound in filter(np.isfinite, bounds):
        y = np.where(np.abs(y - bound) <= ROUNDING * abs(bound), bound, y)
    return y


def fit_bounded(
    values: Float[Array, " n"], bounds: tuple[float, float], shape: type[NamedTransform]
) -> Bounded:
    """Fit a transform with bounds to the readings of one output.

    If no other transform follows g (`shape` is `Identity`), the width of g is fitted, too.
    """
    if is_constant(values[:, None])[0]:
        # Equal readings cannot be fitted; the identity, cut off at the bounds, is exact for them.
        at_lower, at_upper = (
            PointMass(bound, bound, bound) if np.isfinite(bound) else None for bound in bounds
        )
        return Bounded(Identity(), Link(-np.inf, np.inf, 1.0), at_lower, at_upper)
    values = _at_bounds(values, bounds)
    below, above = values <= bounds[0], values >= bounds[1]
    inside = values[~(below | above)]
    link = Link(
        -np.inf if below.any() else bounds[0],
        np.inf if above.any() else bounds[1],
        1.0,
    )
    varies = len(inside) > 0 and not is_constant(inside[:, None])[0]
    link = replace(link, width=FIXED_WIDTH * robust_spread(inside if varies else values))
    fits_width = shape is Identity and varies and bool(np.isfinite([link.lower, link.upper]).any())
    if fits_width:
        link = link.with_fitted_width(inside)
    g = link.forward(inside)
    ends = link.forward(np.array(bounds))
    censoring = Censoring(int(below.sum()), float(ends[0]), int(above.sum()), float(ends[1]))
    fitted = shape.fit(g, censoring) if varies else Identity()
    on_scale = censoring.transformed(fitted.forward)
    mean, std = on_scale.fit(fitted.forward(g))
    at_lower = at_upper = None
    if below.any():
        at_lower = PointMass(bounds[0], on_scale.lower, mean_below(on_scale.lower, mean, std))
    if above.any():
        beyond = -mean_below(-on_scale.upper, -mean, std)
        at_upper = PointMass(bounds[1], on_scale.upper, beyond)
    return Bounded(fitted, link, at_lower, at_upper, int(fits_width))
