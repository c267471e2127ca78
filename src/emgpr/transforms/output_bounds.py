"""Bounds of the outputs: those that the user sets, and those that the readings suggest."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from emgpr.parameter_checks import with_string_keys
from emgpr.row_numbers import rows_from_zero

Array = np.ndarray
Interval: TypeAlias = tuple[float, float]

ROUNDING = 1e-9  # readings this close to a bound, relative to it, are taken as equal to it
NON_NEGATIVE: Interval = (0.0, np.inf)


def check_output_bounds(given: Any) -> None:
    """Raise ValueError unless this is a valid value of the parameter `output_bounds`.

    >>> check_output_bounds({"sand": (0, 100), "T": None})
    >>> check_output_bounds((100, 0))
    Traceback (most recent call last):
        ...
    ValueError: output_bounds contains (100, 0); the lower bound must be below the upper bound.
    """
    if isinstance(given, Mapping):
        values: Sequence[Any] = list(given.values())
    else:
        values = given if is_list_of_bounds(given) else [given]
    for value in values:
        if value is None or (isinstance(value, str) and value == "auto"):
            continue
        pair = isinstance(value, list | tuple | np.ndarray) and len(value) == 2
        if not pair or not all(
            end is None or (isinstance(end, Real) and not np.isnan(float(end))) for end in value
        ):
            raise ValueError(
                f'output_bounds contains {value!r}; expected "auto", None, a pair (lower, upper) '
                "such as (0, 100), or a dict that maps outputs to these."
            )
        lower, upper = _interval(value)
        if not lower < upper:
            raise ValueError(
                f"output_bounds contains {value!r}; the lower bound must be below the upper bound."
            )


def bounds_per_output(
    given: Any, names: Sequence[str], Y: Float[Array, "N D"], transforms: Sequence[Any]
) -> list[Interval | None]:
    """Return the bounds of every output, or None for an output without bounds.

    With "auto", an output without negative readings is bounded below by zero, unless its transform
    is None or a scikit-learn transformer.

    >>> Y = np.array([[1.0, -1.0, 5.0], [2.0, 3.0, 6.0]])
    >>> bounds_per_output({"c": (0, 100)}, ["a", "b", "c"], Y, ["auto"] * 3)
    [(0.0, inf), None, (0.0, 100.0)]
    """
    bounds: list[Interval | None] = []
    for d, (name, bound) in enumerate(zip(names, _per_output(given, names), strict=True)):
        values = Y[~np.isnan(Y[:, d]), d]
        if isinstance(bound, str):  # "auto"
            positive = isinstance(transforms[d], str) and values.min() >= 0
            bounds.append(NON_NEGATIVE if positive else None)
            continue
        interval = None if bound is None else _interval(bound)
        if interval is None or not np.isfinite(interval).any():
            bounds.append(None)
            continue
        lower, upper = interval
        below = Y[:, d] < lower - ROUNDING * (abs(lower) if np.isfinite(lower) else 0.0)
        above = Y[:, d] > upper + ROUNDING * (abs(upper) if np.isfinite(upper) else 0.0)
        rows = np.flatnonzero(below | above)
        if len(rows):
            raise ValueError(
                f"Output {name!r} has {len(rows)} readings outside its bounds {interval}, the "
                f"first of them, {Y[rows[0], d]:g}, in {rows_from_zero(rows[:1])}. Correct the "
                "readings or output_bounds."
            )
        bounds.append(interval)
    return bounds


def _per_output(given: Any, names: Sequence[str]) -> list[Any]:
    """Return the bounds of every output as the user gave them."""
    if isinstance(given, Mapping):
        by_name = with_string_keys(given, "output_bounds")
        unknown = [key for key in by_name if key not in names]
        if unknown:
            raise ValueError(
                f"output_bounds has the keys {unknown}, which are not outputs; expected any of "
                f"{list(names)}."
            )
        return [by_name.get(name, "auto") for name in names]
    if not is_list_of_bounds(given):
        return [given] * len(names)
    if len(given) != len(names):
        raise ValueError(
            f"output_bounds has {len(given)} elements for {len(names)} outputs; expected one pair "
            "(lower, upper) for all outputs, one element for each output, or a dict with output "
            "names as keys."
        )
    return list(given)


def is_list_of_bounds(given: Any) -> bool:
    """Tell whether this is a list with bounds for each output, and not a single pair.

    >>> is_list_of_bounds((0, 100)), is_list_of_bounds((0, None)), is_list_of_bounds([(0, 1), None])
    (False, False, True)
    """
    if not isinstance(given, list | tuple | np.ndarray):
        return False
    is_pair = len(given) == 2 and all(end is None or isinstance(end, Real) for end in given)
    return not is_pair or all(end is None for end in given)


def _interval(pair: Sequence[Any]) -> Interval:
    lower, upper = pair
    return (
        -np.inf if lower is None else float(lower),
        np.inf if upper is None else float(upper),
    )
