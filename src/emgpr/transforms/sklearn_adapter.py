"""Adapter that turns an invertible scikit-learn transformer into an output transform."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone

from emgpr.row_numbers import rows_from_zero
from emgpr.transforms.base import Transform

Array = np.ndarray

N_PROBES = 501  # number of values at which a transformer is tested
MAX_STDS = 20.0  # tested range beyond the data, in standard deviations of transformed values
MAX_SPANS = 1e3  # allowed range beyond the data, as a multiple of the range of the data
SLOPE_STEP = 1e-4  # step of finite differences, in standard deviations
ROUND_TRIP_TOLERANCE = 1e-6  # for transform(inverse_transform(u)) − u, in standard deviations


@dataclass(frozen=True)
class FittedTransformer(Transform):
    """A fitted transformer, negated if it decreases, on the interval where it can be inverted.

    On the transformed scale, the interval from `low` to `high` extends at most 20 standard
    deviations beyond the data on either side. The interval is shorter if the inverse is bounded, as
    for a quantile transform, or diverges, as for a power below 0. Predictions outside the interval
    are moved to its nearest end.

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> root = FunctionTransformer(np.sqrt, np.square)
    >>> root = FittedTransformer.from_transformer(root, np.arange(9.0), "Zn")
    >>> root.inverse(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 4.])
    """

    transformer: Any
    sign: float
    unit: float  # standard deviation of the transformed values
    low: float  # ends of the interval on the transformed scale
    high: float
    lowest: float  # ends of the interval in original units
    highest: float

    @classmethod
    def from_transformer(
        cls, transformer: Any, values: Float[Array, " n"], name: str
    ) -> "FittedTransformer":
        """Fit a clone of the transformer to an output's readings; raise if it is not invertible."""
        described = f"The transform of output {name!r}, {transformer!r},"
        try:
            fitted = clone(transformer).fit(values[:, None])
            with np.errstate(divide="ignore", invalid="ignore"):
                transformed = np.asarray(fitted.transform(values[:, None]))
        except ValueError as error:
            raise ValueError(f"{described} cannot be fitted to its values: {error}") from error
        if transformed.shape not in {(len(values), 1), (len(values),)}:
            raise ValueError(
                f"{described} transforms a column of {len(values)} values to shape "
                f"{transformed.shape}; expected ({len(values)}, 1). Use a transformer that "
                "returns one output column for each input column."
            )
        y = np.linspace(values.min(), values.max(), N_PROBES)
        u = _apply(fitted.transform, y)
        sign = 1.0 if u[-1] > u[0] else -1.0
        unit = float(transformed.std())
        unlimited = cls(fitted, sign, unit, -np.inf, np.inf, -np.inf, np.inf)
        u = sign * u
        inside = np.linspace(u[0], u[-1], N_PROBES)
        if not (np.diff(u) > 0).all() or not (np.diff(unlimited.inverse(inside)) > 0).all():
            raise ValueError(
                f"{described} is not strictly monotone between {y[0]:g} and {y[-1]:g}, the range "
                "of the data, so it cannot be inverted. Choose a monotone transform, or "
                '"normal-score", which also accepts equal values.'
            )
        if not np.allclose(unlimited.inverse(u), y, rtol=1e-6, atol=1e-6 * (y[-1] - y[0])):
            raise ValueError(
                f"{described} has an inverse_transform that is not the inverse of its transform. "
                "Choose another transformer; for a FunctionTransformer, set inverse_func."
            )
        far = MAX_STDS * unit
        low = unlimited._last_invertible(np.linspace(u[0], u[0] - far, N_PROBES), y)
        high = unlimited._last_invertible(np.linspace(u[-1], u[-1] + far, N_PROBES), y)
        ends = unlimited.inverse(np.array([low, high]))
        lowest, highest = min(ends[0], y[0]), max(ends[1], y[-1])
        return cls(fitted, sign, unit, low, high, float(lowest), float(highest))

    def _last_invertible(self, u: Float[Array, " m"], values: Float[Array, " n"]) -> float:
        """Return the last of the values u before the transformer ceases to be invertible."""
        y = self.inverse(u)
        round_trip = self.sign * _apply(self.transformer.transform, y)
        invertible = np.abs(round_trip - u) <= ROUND_TRIP_TOLERANCE * self.unit
        invertible &= np.abs(y - y[0]) <= MAX_SPANS * np.ptp(values)
        invertible[0] = True
        return float(u[np.logical_and.accumulate(invertible)][-1])

    @property
    def n_parameters(self) -> int:
        """Number of parameters, taken as zero because the true number is unknown."""
        return 0

    def domain_error(self, output: str, rows: Array) -> str:
        """Return the error message for values at which the transformer cannot be inverted."""
        return (
            f"The transform of output {output!r}, {self.transformer!r}, cannot be inverted at "
            f"{len(rows)} values beyond those it was fitted to, the first of them in "
            f"{rows_from_zero(rows)}. "
            'Choose another transform, such as "normal-score", or replace the values with NaN.'
        )

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the transformed values, which are −∞ below the interval and ∞ above it."""
        inside = np.clip(y, self.lowest, self.highest)
        u = self.sign * _apply(self.transformer.transform, inside)
        return np.where(y < self.lowest, -np.inf, np.where(y > self.highest, np.inf, u))

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the inverse, after moving values outside the interval to the nearest end."""
        u = np.clip(u, self.low, self.high)
        return _apply(self.transformer.inverse_transform, self.sign * u)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy, from finite differences of the inverse, or −∞ outside the interval."""
        u = self.forward(y)
        h = SLOPE_STEP * self.unit
        left, right = (np.clip(u + step, self.low, self.high) for step in (-h, h))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.log((right - left) / (self.inverse(right) - self.inverse(left)))
        return np.where(np.isinf(u), -np.inf, slope)

    def kinks(self) -> Float[Array, " J"]:
        """Return a fine grid of values of u, since the inverse can have kinks anywhere."""
        return np.linspace(self.low, self.high, N_PROBES)


def check_invertible(transformer: Any, name: str) -> None:
    """Raise ValueError unless the object is a transformer that can be fitted and inverted."""
    needed = ("fit", "transform", "inverse_transform", "get_params")
    missing = [method for method in needed if not hasattr(transformer, method)]
    if missing or isinstance(transformer, type):
        problem = f"has no {missing[0]}" if missing else "is a class, not an object"
        raise ValueError(
            f"The transform of output {name!r}, {transformer!r}, {problem}; expected a "
            "scikit-learn transformer with an inverse, such as PowerTransformer(), or one of the "
            "named transforms."
        )


def _apply(function: Callable[[Array], Any], values: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Apply a function to every finite value; return NaN where the function is undefined."""
    result = np.full(values.shape, np.nan)
    finite = np.isfinite(values)
    column = values[finite][:, None]
    if not len(column):
        return result
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NaN already marks undefined values.
        try:
            result[finite] = np.ravel(function(column))
        except ValueError:
            result[finite] = [_apply_to_one(function, value) for value in column[:, None]]
    return result


def _apply_to_one(function: Callable[[Array], Any], value: Array) -> float:
    try:
        return float(np.ravel(function(value))[0])
    except ValueError:
        return float("nan")
