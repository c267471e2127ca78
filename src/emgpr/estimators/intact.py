"""Whether what a file holds can be a fitted model: sizes that agree, and values that are possible.

A checksum tells damage from what was written, not good from evil: whoever changes a file on
purpose writes a new one. So nothing is taken for granted here that predictions rely on.
"""

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from emgpr.estimators.settings import Settled
from emgpr.geo import columns_given
from emgpr.kernels import matrix
from emgpr.persistence import ModelFileError
from emgpr.transforms import Fitted, Map, Marginals, NormalScore, YeoJohnson

Array = np.ndarray

FIELDS = frozenset(
    [
        "settings", "feature_names", "output_names", "flat", "index", "measured", "x", "y", "scale",
        "transforms", "settled", "sites", "batches", "kernels", "noise", "weights", "own_kernels",
        "own_noise", "own_bounds", "lost", "history", "log_likelihood", "n_iter", "converged",
        "conditioning",
    ]
)  # fmt: skip
HUGE = 1e154  # whose square is still a number; what the door lets in is below it
WHOLE = ("batches", "top", "waves", "strides")  # numbers
UNBOUNDED = ("own_bounds", "noise_bounds")  # a bound may be none
SHAPES = {
    "x": "N P",
    "y": "D N",
    "weights": "L Q D k",
    "noise": "D D",
    "own_noise": "D",
    "own_bounds": "D 2",
    "batches": "L",
    "shift": "D",
    "scale": "D",
}


def check_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` with the first thing that is not as a fitted model has it."""
    check_fields(state.keys() - {"n_failed"}, FIELDS)
    scale = kind(state, "scale", Marginals)
    arrays = {**state, "shift": scale.shift, "scale": scale.scale}
    axes = {"2": 2}
    for name, shape in SHAPES.items():
        bind(name, arrays[name], shape.split(), axes)
    N, D = axes["N"], axes["D"]
    expect(min(axes[axis] for axis in "NPDLk") > 0, f"an axis is empty: {axes}")
    check_settings(kind(state, "settings", dict))
    _check_results(state)
    check_names(state, axes)
    _check_rows(state, N)
    _check_readings(state)
    _check_batches(state["sites"], state["batches"], N)
    check_noise(state["noise"], state["own_noise"])
    expect(len(state["lost"]) in (0, 2), "'lost' is not by site and by output")
    for by, lost in state["lost"].items():
        expect(by in ("site", "output"), f"'lost' is by {by!r}")
        _check_numbers(f"lost by {by}", lost, D)
    check_scale(scale, D)
    check_kernels("kernels", state["kernels"], axes["Q"], state["x"])
    check_kernels("own_kernels", state["own_kernels"], D, state["x"])


def check_fields(found: Set[str], known: Set[str]) -> None:
    """All of them, and no others."""
    if found != known:
        raise ModelFileError(f"{sorted(found ^ known)} are missing from it, or are not known")


def check_scale(scale: Marginals, D: int) -> None:
    """A map for each output, whose shift and scale were found to be arrays of D numbers."""
    expect(isinstance(scale.maps, tuple) and len(scale.maps) == D, f"there are not {D} maps")
    expect(bool((scale.scale > 0).all()), "a scale is not positive")
    for d, of in enumerate(scale.maps):
        _check_map(of, float(scale.shift[d]))


def expect(holds: bool, otherwise: str) -> None:
    """Raise with what is the matter if it does not hold."""
    if not holds:
        raise ModelFileError(otherwise)


def _said(value: Any) -> str:
    """The value if it is short, else what it is: a file may hold what takes long to write out."""
    plain = value is None or isinstance(value, bool | int | float)
    return repr(value) if plain else f"{type(value).__name__}"


def kind(state: dict[str, Any], name: str, *kinds: type) -> Any:
    """What is under a name, if it is of one of these types."""
    value = state[name]
    # bool is a kind of int to Python; a count of True is not one to us.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ModelFileError(f"{name!r} is {_said(value)}; expected {expected}")
    return value


def bind(name: str, array: Any, shape: Sequence[str], axes: dict[str, int]) -> None:
    """An array of finite numbers whose axes are as long as those of the same letter before."""
    expect(isinstance(array, Array), f"{name!r} is not an array")
    kinds = "iu" if name in WHOLE else "f"
    expect(array.dtype.kind in kinds, f"{name!r} holds {array.dtype}")
    known = [axes.get(axis, axis) for axis in shape]
    if array.ndim != len(shape) or any(
        axes.setdefault(axis, n) != n for axis, n in zip(shape, array.shape, strict=True)
    ):
        raise ModelFileError(f"{name!r} has shape {array.shape}; expected {tuple(known)}")
    expect(array.itemsize == 8 or kinds == "iu", f"{name!r} holds {array.dtype}")
    least, most = (np.fmin, np.fmax) if name == "y" else (np.minimum, np.maximum)  # NaN or not
    low, high = (end.reduce(array, axis=None, initial=0) for end in (least, most))
    most_allowed = np.inf if name in UNBOUNDED else HUGE
    expect(low > -HUGE and high <= most_allowed, f"{name!r} holds NaN, infinity or near to it")


def check_settings(settings: dict[str, Any]) -> None:
    """Those that `check_choices` leaves to the libraries that they are passed to."""
    for name, value in settings.items():
        expect(name == "transform" or not isinstance(value, Array), f"{name!r} is an array")
    settings.setdefault("crs", None)  # files of before there was one
    kind(settings, "crs", str, type(None))
    kind(settings, "verbose", int, bool, np.integer)
    kind(settings, "n_jobs", int, np.integer, type(None))
    # Or fitting a forged model again would write to a file of the forger's choice.
    expect(settings.get("checkpoint") is None, "'checkpoint' is set")


def _check_results(state: dict[str, Any]) -> None:
    settled = kind(state, "settled", Settled)
    expect(isinstance(settled.correlated, bool), "'settled.correlated' is neither true nor false")
    kind(state, "flat", bool)
    kind(state, "converged", bool)
    kind(state, "n_iter", int)
    kind(state, "log_likelihood", float)
    check_history(state)
    how = kind(state, "conditioning", str, int)
    expect(how in ("all", "batch") or (isinstance(how, int) and how > 0), f"conditioning {how!r}")
    kind(state, "lost", dict)
    expect(kind({"n_failed": 0, **state}, "n_failed", int) >= 0, "'n_failed' is negative")


def check_history(state: dict[str, Any]) -> None:
    """Stages of an ascent: what was learned, and a log-likelihood."""
    for stage in kind(state, "history", list, type(None)) or []:
        whole = isinstance(stage, tuple) and len(stage) == 2
        expect(whole and isinstance(stage[0], str), f"'history' holds {_said(stage)}")
        expect(isinstance(stage[1], float), f"'history' holds {_said(stage)}")


def check_names(state: dict[str, Any], axes: dict[str, int]) -> None:
    """A name for every column, and a transform for every output."""
    crs = state["settings"]["crs"]
    P = columns_given(axes["P"], crs)
    expect(crs is None or P >= 2, "places lack a coordinate")
    axes = axes | {"P": P}
    for name, axis in (("feature_names", "P"), ("output_names", "D")):
        names = kind(state, name, list, *([type(None)] if axis == "P" else []))
        if names is not None:
            expect(all(isinstance(one, str) for one in names), f"{name!r} are not texts")
            expect(len(names) == axes[axis], f"{len(names)} {name} for {axes[axis]} columns")
    expect(len(kind(state, "transforms", list)) == axes["D"], "not every output has a transform")
    expect(axes["D"] == 1 or not state["flat"], "several outputs cannot be of a 1-D y")


def _check_rows(state: dict[str, Any], N: int) -> None:
    index, measured = kind(state, "index", pd.Index), state["measured"]
    if measured is None:
        expect(len(index) == N, f"the index has {len(index)} rows for {N} sites")
        return
    # A byte a row in the file: an index cannot claim rows that would not fit in memory.
    rows = isinstance(measured, Array) and measured.dtype == bool and measured.ndim == 1
    expect(rows and len(measured) == len(index), "the index and the rows measured differ")
    expect(int(measured.sum()) == N, f"{int(measured.sum())} rows were measured, of {N} sites")


def _check_readings(state: dict[str, Any]) -> None:
    there = ~np.isnan(state["y"])
    expect(bool(there.any(axis=1).all()), "an output was never measured")
    expect(bool(there.any(axis=0).all()), "there is a site where nothing was measured")


def _check_batches(sites: Any, batches: Array, N: int) -> None:
    _check_numbers("sites", sites, N)
    sizes = batches.astype(int)  # one number a member: few
    expect(bool((sizes > 0).all() and (sizes <= N).all()), "a batch has no sites")
    expect(int(sizes.sum()) == len(sites), "the batches do not have the sites that there are")


def _check_numbers(name: str, numbers: Any, n: int) -> None:
    """Different whole numbers from 0 to n − 1."""
    whole = isinstance(numbers, Array) and numbers.ndim == 1 and numbers.dtype.kind in "iu"
    expect(whole and len(numbers) <= n, f"{name!r} are not at most {n} whole numbers")
    inside = bool((numbers >= 0).all() and (numbers < n).all())
    expect(inside and len(np.unique(numbers)) == len(numbers), f"{name!r} are not those of {n}")


def check_noise(noise: Array, own: Array) -> None:
    """A covariance, and variances."""
    expect(bool((np.diagonal(noise) >= 0).all() and (own >= 0).all()), "a noise is negative")
    rounding = 1e-8 * noise.max()
    expect(bool((np.abs(noise - noise.T) <= rounding).all()), "the noise is not symmetric")
    expect(bool(np.linalg.eigvalsh(noise).min() >= -rounding), "the noise is no covariance")


def _check_map(of: Any, u: float) -> None:
    """A map that has a value for u, the mean of its readings, and back."""
    expect(isinstance(of, Map), f"{_said(of)} is no map of an output")
    if isinstance(of, YeoJohnson):
        expect(of.spread > 0 and 0 <= of.power <= 2, f"{of} is no map of an output")
    if isinstance(of, NormalScore):
        for name, knots in (("values", of.values), ("scores", of.scores)):
            bind(f"normal-score {name}", knots, ["J"], {"J": len(of.values)})
            expect(len(knots) > 1 and bool((np.diff(knots) > 0).all()), f"{name} do not increase")
    if isinstance(of, Fitted):
        expect(of.unit > 0 and abs(of.sign) == 1, "the sign of a map is none")
        u = float(np.clip(u, of.low, of.high))
    there = of.back(np.array([u]))
    possible = np.isfinite(there) & np.isfinite(of.forward(there))
    expect(bool(possible.all()), f"{of} gives no value for the mean of its readings")


def check_kernels(name: str, kernels: Any, n: int, x: Array) -> None:
    """As many as there should be, each a covariance of the inputs there are."""
    expect(isinstance(kernels, list) and len(kernels) == n, f"there are not {n} {name}")
    some = x[:3]
    for kernel in kernels:
        expect(isinstance(kernel, Kernel), f"{_said(kernel)} is no kernel")
        with np.errstate(all="ignore"):
            K, variance = matrix(kernel, some), kernel.diag(some)
        whole = K.shape == (len(some), len(some)) and variance.shape == (len(some),)
        expect(whole and bool(np.isfinite(K).all()), f"{kernel} gives no covariance")
        expect(bool((variance >= 0).all()), f"{kernel} has a negative variance")
