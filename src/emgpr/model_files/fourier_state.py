"""Storage of a fit with Fourier features, including the sums needed to continue the fit.

Complex numbers are stored as pairs of real numbers. The posterior is computed when the file is
read, which raises an error if the sums are invalid.
"""

from typing import Any

import numpy as np
import pandas as pd

from emgpr.declared_parameters import with_new_names
from emgpr.fourier.accumulate import Columns
from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.fit import FourierFit, affordable_resolution
from emgpr.fourier.grid import FourierSums, FrequencyGrid, PatternSums
from emgpr.fourier.settings import FourierSettings
from emgpr.inputs import InputSpec
from emgpr.model_files.checks import (
    MAX_VALUE,
    check_feature_names,
    check_history,
    check_kernels,
    check_noise,
    check_scaler,
    check_settings,
    expect,
    expect_array,
    expect_fields,
    expect_type,
)
from emgpr.model_files.lmc_state import upgrade_scaler
from emgpr.noise import NoiseParameters
from emgpr.transforms import OutputScaler
from emgpr.weights import LMCParameters, ParameterVector, Stage

Array = np.ndarray

MAX_SITES = 1e15  # The number of sites is stored as a floating-point number.
# `waves` holds the frequencies, and `top` the highest harmonics of their grid. `read` lists the
# sets of outputs measured together. For each set, `places` and `signals` hold the Fourier sums over
# sites and over readings, and `power` holds the sums of products of readings.
FIELDS = frozenset(
    [
        "settings", "feature_names", "scaler", "kernels", "noise", "weights", "noise_bounds",
        "free", "bounds", "parameter_names", "box", "ranges", "low", "period", "top", "waves",
        "strides", "read", "places", "signals", "power", "warned_share", "history", "n_iter",
        "converged",
    ]
)  # fmt: skip
SHAPES = {
    "box": "2 P",
    "ranges": "2 D",
    "noise": "D D",
    "weights": "Q D k",
    "noise_bounds": "D 2",
    "low": "P",
    "period": "P",
    "top": "P",
    "waves": "K P",
    "strides": "Q",
    "shift": "D",
    "scale": "D",
}


def fourier_state(settings: dict[str, Any], fit: FourierFit) -> dict[str, Any]:
    """Return everything that is needed to continue a fit, as a dict."""
    parameters, features, vector = fit.parameters, fit.features, fit.vector
    names = fit.columns.inputs.feature_names
    patterns = list(fit.sums.patterns.values())
    return {
        "settings": settings,
        "feature_names": None if names is None else list(names),
        "scaler": fit.scaler,
        "kernels": list(parameters.kernels),
        "noise": parameters.noise,
        "weights": parameters.W,
        "noise_bounds": parameters.noise_bounds,
        "free": parameters.free,
        "bounds": vector.bounds,
        "parameter_names": list(vector.names),
        "box": fit.box,
        "ranges": fit.ranges,
        "low": np.array(features.grid.low),
        "period": np.array(features.grid.period),
        "top": np.array(features.grid.max_harmonic),
        "waves": features.m,
        "strides": np.array(features.strides),
        "read": [list(outputs) for outputs in fit.sums.patterns],
        "places": _as_pairs(np.stack([sums.sites for sums in patterns])),
        "signals": _as_pairs(np.concatenate([sums.readings for sums in patterns])),
        "power": np.concatenate([sums.products.ravel() for sums in patterns]),
        "warned_share": fit.warned_share,
        "history": None if fit.history is None else [tuple(stage) for stage in fit.history],
        "n_iter": fit.n_iter,
        "converged": fit.converged,
    }


def upgrade_fourier_state(state: dict[str, Any]) -> dict[str, Any]:
    """Convert the state in a file of version 1 to version 2."""
    new = dict(state)
    for old, name in (("named", "parameter_names"), ("told_of", "warned_share")):
        new[name] = new.pop(old)
    new["settings"] = with_new_names(expect_type(new, "settings", dict))
    new["scaler"] = upgrade_scaler(new)
    n = len(new["bounds"]) - len(new["parameter_names"])  # Version 1 did not name correlations.
    new["parameter_names"] += ["a correlation between noises"] * n
    return new


def check_fourier_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` if a field is invalid."""
    expect_fields(state.keys(), FIELDS)
    scaler = expect_type(state, "scaler", OutputScaler)
    arrays, axes = {**state, "shift": scaler.shift, "scale": scaler.scale}, {"2": 2}
    for name, shape in SHAPES.items():
        expect_array(name, arrays[name], shape.split(), axes)
    expect(min(axes.values()) > 0, f"an axis is empty: {axes}")
    check_settings(expect_type(state, "settings", dict))
    check_scaler(scaler, axes["D"])
    expect_type(state, "feature_names", list, type(None))
    check_feature_names(state["feature_names"], axes["P"], state["settings"]["crs"])
    check_noise(state["noise"], np.diagonal(state["noise"]))
    check_kernels("kernels", state["kernels"], axes["Q"], state["box"])
    check_history(state)
    is_fitted = state["history"] is not None
    expect_type(state, "n_iter", int if is_fitted else type(None))
    expect_type(state, "converged", bool if is_fitted else type(None))
    share = expect_type(state, "warned_share", float)
    expect(0 <= share < MAX_VALUE, "'warned_share' is not a share of variance")
    _check_parameters(state)
    _check_features(state)
    _check_sums(state, axes["D"])


def fit_from_state(state: dict[str, Any], estimator: str, settings: FourierSettings) -> FourierFit:
    """Rebuild a fit from a state that has been checked."""
    names, scaler = state["feature_names"], state["scaler"]
    n = check_feature_names(names, state["box"].shape[1], settings.crs)
    inputs = InputSpec(
        estimator, None if names is None else tuple(names), n, settings.crs, pd.RangeIndex(0),
        np.arange(0),
    )  # fmt: skip
    parameters = LMCParameters(
        tuple(state["kernels"]), state["noise"], state["weights"], state["noise_bounds"],
        state["free"],
    )  # fmt: skip
    D = len(state["noise"])
    noise = NoiseParameters(D, settings.noise == "correlated" and D > 1)
    size = sum(kernel.n_dims for kernel in state["kernels"]) + noise.size
    expect(len(state["bounds"]) == size, "the number of 'bounds' does not match the parameters")
    vector = ParameterVector(parameters, noise, state["bounds"], tuple(state["parameter_names"]))
    grid = _grid(state)
    features = FourierFeatures(grid, state["waves"].astype(int), tuple(state["strides"].tolist()))
    history = state["history"]
    fit = FourierFit(
        Columns(inputs, scaler.names, scaler.one_dimensional),
        scaler,
        state["box"],
        state["ranges"],
        vector,
        features,
        affordable_resolution(settings, parameters),
        FourierSums(grid, _patterns(state)),
        state["warned_share"],
        None if history is None else [Stage(*stage) for stage in history],
        state["n_iter"],
        state["converged"],
    )
    solution = fit.posterior.solution
    expect(all(np.isfinite(part).all() for part in solution), "the sums have no solution")
    return fit


def _as_pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


def _as_complex(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def _grid(state: dict[str, Any]) -> FrequencyGrid:
    return FrequencyGrid(*(tuple(state[name].tolist()) for name in ("low", "period", "top")))


def _patterns(state: dict[str, Any]) -> dict[tuple[int, ...], PatternSums]:
    """Return the Fourier sums for each set of outputs measured together."""
    sizes = np.array([len(outputs) for outputs in state["read"]])
    readings = np.split(_as_complex(state["signals"]), np.cumsum(sizes)[:-1])
    products = np.split(state["power"], np.cumsum(sizes**2)[:-1])
    sums = zip(state["read"], _as_complex(state["places"]), readings, products, strict=True)
    return {
        tuple(outputs): PatternSums(c, h, yy.reshape(len(outputs), -1))
        for outputs, c, h, yy in sums
    }


def _check_parameters(state: dict[str, Any]) -> None:
    free, bounds = state["free"], state["bounds"]
    is_mask = isinstance(free, Array) and free.dtype == bool
    matches = is_mask and free.shape == state["weights"].shape
    expect(free is None or matches, "'free' is not a mask of the weights")
    is_table = isinstance(bounds, Array) and bounds.dtype == np.float64 and bounds.ndim == 2
    expect(is_table and bounds.shape[1] == 2, "'bounds' are not pairs of numbers")
    expect(bool((bounds[:, 0] <= bounds[:, 1]).all()), "a lower bound exceeds its upper bound")
    low, high = state["noise_bounds"].T
    expect(bool((low >= 0).all() and (low <= high).all()), "'noise_bounds' are not ordered")
    names = expect_type(state, "parameter_names", list)
    expect(all(isinstance(name, str) for name in names), "'parameter_names' are not strings")
    expect(len(names) == len(bounds), "the number of 'parameter_names' differs from the bounds")


def _check_features(state: dict[str, Any]) -> None:
    """Raise unless box and grid are valid, with distinct frequencies of which the first is zero."""
    top, waves = state["top"].astype(int), state["waves"].astype(int)
    expect(bool((state["box"][0] < state["box"][1]).all()), "the box has no extent")
    expect(bool((state["period"] > 0).all()), "a period is not positive")
    expect(bool((top >= 0).all() and (state["strides"] > 0).all()), "the grid is invalid")
    shortest = state["period"] / state["strides"].max()
    wide_enough = bool((shortest >= np.ptp(state["box"], axis=0)).all())
    expect(wide_enough, "the features repeat within the box")
    inside = bool((np.abs(waves) <= top).all() and (waves[:, 0] >= 0).all())
    expect(inside and not waves[0].any(), "the frequencies do not belong to their grid")
    expect(len(np.unique(waves, axis=0)) == len(waves), "a frequency occurs twice")


def _check_sums(state: dict[str, Any], D: int) -> None:
    """Check the Fourier sums, and that every output has readings."""
    read = expect_type(state, "read", list)
    for outputs in read:
        integers = isinstance(outputs, list) and all(type(d) is int for d in outputs)
        expect(integers and len(outputs) > 0, "'read' does not contain lists of outputs")
        inside = sorted(set(outputs)) == outputs and outputs[0] >= 0 and outputs[-1] < D
        expect(inside, f"'read' contains a list that is not a sorted subset of {D} outputs")
    expect(len(set(map(tuple, read))) == len(read), "a set of outputs occurs twice in 'read'")
    expect({d for outputs in read for d in outputs} == set(range(D)), "an output has no readings")
    grid, sizes = _grid(state), [len(outputs) for outputs in read]
    shapes = {
        "places": (len(read), *grid.doubled.shape, 2),
        "signals": (sum(sizes), *grid.shape, 2),
        "power": (sum(size**2 for size in sizes),),
    }
    for name, shape in shapes.items():
        expect_array(name, state[name], shape, {})
    zero = (0, *(size // 2 for size in shapes["places"][2:-1]), 0)
    counts = state["places"][:, *zero]
    valid = bool((counts > 0.5).all() and (counts < MAX_SITES).all())
    expect(valid, "a set of outputs in 'read' has no sites")
