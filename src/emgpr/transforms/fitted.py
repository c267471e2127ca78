"""Any scikit-learn transformer of one column, as an increasing map with an inverse."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone

from emgpr.transforms.maps import Map

Array = np.ndarray

PROBES = 501
REACH = 20.0  # standard deviations of the transformed values
FARTHEST = 1e3  # spans of the values themselves
STEP = 1e-4


@dataclass(frozen=True)
class Fitted(Map):
    """A fitted transformer, negated if it decreases, within the reach of its inverse.

    Between `low` and `high`, on the transformed scale, the transformer and its
    inverse undo each other: that holds the data and at most 20 of its standard
    deviations to either side, and is less where the inverse ends (a quantile
    transform) or runs away from the data (a power below 0). What a belief holds
    beyond is put at the end.

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> root = Fitted.learned(FunctionTransformer(np.sqrt, np.square), np.arange(9.0), "Zn")
    >>> root.back(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 4.])
    """

    transformer: Any
    sign: float
    unit: float  # standard deviation of the transformed values
    low: float  # the reach, transformed
    high: float
    lowest: float  # and as it was
    highest: float

    @classmethod
    def learned(cls, transformer: Any, values: Float[Array, " n"], name: str) -> "Fitted":
        """A clone of the transformer, fitted to the values, if it can be undone."""
        says = f"transform of output {name!r}, {transformer!r},"
        try:
            fitted = clone(transformer).fit(values[:, None])
            with np.errstate(divide="ignore", invalid="ignore"):
                seen = np.asarray(fitted.transform(values[:, None]))
        except ValueError as error:
            raise ValueError(f"{says} cannot be fitted to its values: {error}") from error
        if seen.shape not in {(len(values), 1), (len(values),)}:
            raise ValueError(
                f"{says} turns a column of {len(values)} values into shape {seen.shape}; expected "
                f"({len(values)}, 1): one transformed value for each."
            )
        y = np.linspace(values.min(), values.max(), PROBES)
        u = _each(fitted.transform, y)
        sign = 1.0 if u[-1] > u[0] else -1.0
        unit = float(seen.std())
        bare = cls(fitted, sign, unit, -np.inf, np.inf, -np.inf, np.inf)
        u = sign * u
        inside = np.linspace(u[0], u[-1], PROBES)
        if not (np.diff(u) > 0).all() or not (np.diff(bare.back(inside)) > 0).all():
            raise ValueError(
                f"{says} is not strictly monotone between {y[0]:g} and {y[-1]:g}, the range of "
                'the data, so it cannot be undone; choose one that is, or "normal-score", '
                "which takes equal values too."
            )
        if not np.allclose(bare.back(u), y, rtol=1e-6, atol=1e-6 * (y[-1] - y[0])):
            raise ValueError(
                f"{says} has an inverse_transform that does not undo its transform; a "
                "FunctionTransformer needs inverse_func."
            )
        far = REACH * unit
        low = bare._last_invertible(np.linspace(u[0], u[0] - far, PROBES), y)
        high = bare._last_invertible(np.linspace(u[-1], u[-1] + far, PROBES), y)
        ends = bare.back(np.array([low, high]))
        lowest, highest = min(ends[0], y[0]), max(ends[1], y[-1])
        return cls(fitted, sign, unit, low, high, float(lowest), float(highest))

    def _last_invertible(self, u: Float[Array, " m"], seen: Float[Array, " n"]) -> float:
        """How far along u, from the data outwards, the transformer undoes its inverse."""
        y = self.back(u)
        there_and_back = self.sign * _each(self.transformer.transform, y)
        good = np.abs(there_and_back - u) <= 1e-6 * self.unit
        good &= np.abs(y - y[0]) <= FARTHEST * np.ptp(seen)
        good[0] = True
        return float(u[np.logical_and.accumulate(good)][-1])

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Transformed; −∞ or ∞ beyond the values that the inverse can give."""
        inside = np.clip(y, self.lowest, self.highest)
        u = self.sign * _each(self.transformer.transform, inside)
        return np.where(y < self.lowest, -np.inf, np.where(y > self.highest, np.inf, u))

    def back(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Inverse, of the nearest end if beyond reach."""
        u = np.clip(u, self.low, self.high)
        return _each(self.transformer.inverse_transform, self.sign * u)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """By differences of the inverse; −∞ beyond its reach, where nothing is."""
        u = self.forward(y)
        h = STEP * self.unit
        left, right = (np.clip(u + step, self.low, self.high) for step in (-h, h))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.log((right - left) / (self.back(right) - self.back(left)))
        return np.where(np.isinf(u), -np.inf, slope)

    def kinks(self) -> Float[Array, " J"]:
        """Anywhere, for all we know: everywhere, closely."""
        return np.linspace(self.low, self.high, PROBES)


def refuse_without_inverse(transformer: Any, name: str) -> None:
    """Raise if this is no transformer that can be fitted, used and undone."""
    needed = ("fit", "transform", "inverse_transform", "get_params")
    missing = [method for method in needed if not hasattr(transformer, method)]
    if missing or isinstance(transformer, type):
        trouble = f"has no {missing[0]}" if missing else "is a class, not an object"
        raise ValueError(
            f"transform of output {name!r}, {transformer!r}, {trouble}; give a scikit-learn "
            "transformer that has an inverse, such as PowerTransformer(), or one of the named "
            "transforms."
        )


def _each(apply: Callable[[Array], Any], values: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The function of every finite value, NaN where it, or the value, is none."""
    answer = np.full(values.shape, np.nan)
    finite = np.isfinite(values)
    column = values[finite][:, None]
    if not len(column):
        return answer
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some have none is an answer here
        try:
            answer[finite] = np.ravel(apply(column))
        except ValueError:
            answer[finite] = [_one(apply, value) for value in column[:, None]]
    return answer


def _one(apply: Callable[[Array], Any], value: Array) -> float:
    try:
        return float(np.ravel(apply(value))[0])
    except ValueError:
        return float("nan")
