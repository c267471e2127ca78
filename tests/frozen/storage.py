"""Frozen answers in files, and how others are compared with them.

An .npz file holds all numbers of a case one after another, and as JSON their names and shapes and
the texts: an array of its own for each answer would take more bytes than its numbers.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from .answers import REMOVED, Answers, Number

DATA = Path(__file__).parent / "data"
AFRESH = DATA / "refitted"  # answers of models fitted by a later version, where these differ
ROUNDING = 1e-14  # of the largest value of an array, whatever the tolerance
STORED = 1e-9  # tolerance for a model that was loaded
REFITTED = float(os.environ.get("EMGPR_FROZEN_TOLERANCE", "1e-3"))  # for what was learned anew

Frozen = dict[str, np.ndarray | str]


def write(path: Path, found: Mapping[str, Number | str]) -> None:
    numbers = {name: one for name, one in found.items() if isinstance(one, Number)}
    layout = {
        "shapes": {name: one.value.shape for name, one in numbers.items()},
        "texts": {name: one for name, one in found.items() if isinstance(one, str)},
    }
    parts = [one.value.ravel() for one in numbers.values()]
    values = np.concatenate(parts) if parts else np.empty(0)
    text = np.frombuffer(json.dumps(layout).encode(), np.uint8)
    np.savez_compressed(path, values=values, layout=text)


def read(path: Path) -> Frozen:
    with np.load(path) as file:
        values, layout = file["values"], json.loads(file["layout"].tobytes())
    found: Frozen = dict(layout["texts"])
    start = 0
    for name, shape in layout["shapes"].items():
        size = int(np.prod(shape))
        found[name] = values[start : start + size].reshape(shape)
        start += size
    return {name: one for name, one in found.items() if name not in REMOVED}


def of_refitted(name: str) -> Frozen:
    """The answers that a model fitted anew must give."""
    later = AFRESH / f"{name}.npz"
    return read(later if later.exists() else DATA / f"{name}.npz")


def differences(
    found: Answers,
    frozen: Frozen,
    tolerance: float,
    wanted: Callable[[str], bool] = lambda name: True,
) -> list[str]:
    """What is not as it was, a line for each frozen answer; of all, or of those that are wanted."""
    names = [name for name in frozen if wanted(name)]
    assert names
    return [line for name in names if (line := _difference(name, found, frozen, tolerance))]


def _difference(name: str, found: Answers, frozen: Frozen, tolerance: float) -> str:
    if name not in found:
        return f"{name}: not answered"
    new, old = found[name], frozen[name]
    if isinstance(new, str) or isinstance(old, str):
        return "" if new == old else f"{name}: {new} was {old}"
    if new.value.shape != old.shape:
        return f"{name}: of shape {new.value.shape}, was {old.shape}"
    if not np.array_equal(np.isfinite(new.value), np.isfinite(old)):
        return f"{name}: not finite at other places"
    far = distance(new, old)
    return "" if far <= tolerance else f"{name}: {far:.2g} away, allowed {tolerance:.2g}"


def distance(new: Number, old: np.ndarray) -> float:
    """The largest difference, in units, beyond rounding."""
    finite = np.isfinite(old)
    if not finite.any():
        return 0.0
    unit = np.broadcast_to(new.unit, old.shape)[finite]
    apart = np.abs(new.value[finite] - old[finite])
    apart = np.maximum(apart - ROUNDING * np.abs(old[finite]).max(), 0.0)
    return float(
        np.max(np.divide(apart, unit, out=np.where(apart > 0, np.inf, 0.0), where=unit > 0))
    )
