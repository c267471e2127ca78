"""Storage of a fitted linear model of coregionalisation in a model file."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from emgpr.declared_parameters import with_new_names
from emgpr.fitting.defaults import ResolvedParams
from emgpr.fitting.fit import FitSummary, FittedLMC, independent_model, restrict_transfer
from emgpr.inputs import InputSpec
from emgpr.latents import Latent, choose_learner
from emgpr.model_files.checks import (
    check_feature_names,
    check_history,
    check_integers,
    check_kernels,
    check_noise,
    check_scaler,
    check_settings,
    expect,
    expect_array,
    expect_fields,
    expect_type,
)
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, LMCPosterior, ParameterDirections
from emgpr.transforms import OutputScaler
from emgpr.weights import Stage

Array = np.ndarray

FIELDS = frozenset(
    [
        "settings", "feature_names", "input_scales", "index", "measured", "x", "y", "scaler",
        "resolved_params", "sites", "batches", "kernels", "noise", "weights", "own_kernels",
        "own_noise", "without_gain", "history", "log_likelihood", "n_iter", "converged",
        "conditioning", "n_failed", "directions", "own_directions",
    ]
)  # fmt: skip
SHAPES = {
    "x": "N P",
    "y": "D N",
    "weights": "L Q D k",
    "noise": "D D",
    "own_noise": "D",
    "batches": "L",
    "shift": "D",
    "scale": "D",
}


DIRECTIONS = {"theta": "r t", "W": "r Q D k", "noise": "r D D", "mean": "r D", "inflation": "D"}


def lmc_state(
    settings: dict[str, Any],
    inputs: InputSpec,
    scaler: OutputScaler,
    params: ResolvedParams,
    posterior: LMCPosterior,
    summary: FitSummary,
) -> dict[str, Any]:
    """Return everything that is needed to rebuild a fitted model, as a dict."""
    model, own, batches = posterior.model, posterior.independent, posterior.batches
    assert own is not None
    measured = np.zeros(len(inputs.index), bool)
    measured[inputs.rows] = True
    history = summary.history
    return {
        "settings": settings | {"checkpoint": None},  # A complete fit needs no checkpoint.
        "feature_names": None if inputs.feature_names is None else list(inputs.feature_names),
        "input_scales": inputs.scales,
        "index": inputs.index,
        "measured": None if measured.all() else measured,
        "x": posterior.observations.x,
        "y": posterior.observations.table.T,
        "scaler": scaler,
        "resolved_params": params,
        "sites": _smallest_integers(np.concatenate(batches)),
        "batches": _smallest_integers(np.array([len(batch) for batch in batches])),
        "kernels": list(model.kernels),
        "noise": model.noise,
        "weights": model.weights,
        "own_kernels": list(own.kernels),
        "own_noise": np.diagonal(own.noise),
        "without_gain": summary.without_gain,
        "history": None if history is None else [tuple(stage) for stage in history],
        "log_likelihood": summary.log_likelihood,
        "n_iter": int(summary.n_iter),
        "converged": bool(summary.converged),
        "conditioning": posterior.conditioning,
        "n_failed": summary.n_members_failed,
        "directions": _directions_state(posterior.directions),
        "own_directions": _directions_state(posterior.independent_directions),
    }


def _directions_state(directions: ParameterDirections | None) -> dict[str, Array] | None:
    if directions is None:
        return None
    return {name: getattr(directions, name) for name in DIRECTIONS}


def upgrade_state(state: dict[str, Any]) -> dict[str, Any]:
    """Convert the state in a file of version 1 to version 2."""
    new = {"n_failed": 0, **state}
    new.pop("own_bounds")
    for old, name in (("settled", "resolved_params"), ("lost", "without_gain")):
        new[name] = new.pop(old)
    settings = expect_type(new, "settings", dict)
    new["settings"] = with_new_names(settings)
    new["scaler"] = upgrade_scaler(new)
    return new


def upgrade_scaler(state: dict[str, Any]) -> OutputScaler:
    """Remove the scaler's fields from a state of version 1, and return the scaler."""
    scaler = expect_type(state, "scale", OutputScaler)
    names, specs = (expect_type(state, name, list) for name in ("output_names", "transforms"))
    del state["scale"], state["output_names"], state["transforms"]
    one_dimensional = state.pop("flat")
    return replace(scaler, names=tuple(names), specs=tuple(specs), one_dimensional=one_dimensional)


def check_lmc_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` if a field is invalid."""
    for name in ("input_scales", "directions", "own_directions"):
        state.setdefault(name, None)  # The first files of version 2 lack these fields.
    expect_fields(state.keys(), FIELDS)
    scaler = expect_type(state, "scaler", OutputScaler)
    arrays = {**state, "shift": scaler.shift, "scale": scaler.scale}
    axes: dict[str, int] = {}
    for name, shape in SHAPES.items():
        expect_array(name, arrays[name], shape.split(), axes)
    N, D = axes["N"], axes["D"]
    expect(min(axes[axis] for axis in "NPDLk") > 0, f"an axis is empty: {axes}")
    check_settings(expect_type(state, "settings", dict))
    _check_results(state)
    check_scaler(scaler, D)
    expect_type(state, "feature_names", list, type(None))
    check_feature_names(state["feature_names"], axes["P"], state["settings"]["crs"])
    if state["input_scales"] is not None:
        expect_array("input_scales", state["input_scales"], ["P"], axes)
        expect(bool((state["input_scales"] > 0).all()), "an input scale is not positive")
    _check_rows(state, N)
    observed = ~np.isnan(state["y"])
    expect(bool(observed.any(axis=1).all()), "an output has no readings")
    expect(bool(observed.any(axis=0).all()), "a site has no readings")
    _check_batches(state["sites"], state["batches"], N)
    check_noise(state["noise"], state["own_noise"])
    expect(len(state["without_gain"]) in (0, 2), "'without_gain' lacks 'site' or 'output'")
    for by, outputs in state["without_gain"].items():
        expect(by in ("site", "output"), f"'without_gain' has the key {by!r}")
        check_integers(f"outputs without gain by {by}", outputs, D)
    check_kernels("kernels", state["kernels"], axes["Q"], state["x"])
    check_kernels("own_kernels", state["own_kernels"], D, state["x"])
    _check_directions(state, "directions", "kernels", axes)
    _check_directions(state, "own_directions", "own_kernels", {"D": D, "Q": D, "k": 1})


def lmc_from_state(
    state: dict[str, Any], estimator: str, combine: Any, latent_learner: Any
) -> tuple[InputSpec, FittedLMC]:
    """Rebuild the inputs and the fitted model from a state that has been checked."""
    x, index, measured = state["x"], state["index"], state["measured"]
    rows = np.arange(len(index)) if measured is None else np.flatnonzero(measured)
    names, crs = state["feature_names"], state["settings"]["crs"]
    n_features = check_feature_names(names, x.shape[1], crs)
    inputs = InputSpec(
        estimator,
        None if names is None else tuple(names),
        n_features,
        crs,
        index,
        rows,
        state["input_scales"],
    )
    observations = Observations.from_table(x, state["y"].T)
    ends = np.cumsum(state["batches"], dtype=int)[:-1]
    own = zip(state["own_kernels"], state["own_noise"], strict=True)
    latents = [Latent(kernel, float(noise), 0.0) for kernel, noise in own]
    posterior = LMCPosterior(
        observations,
        LMCModel(tuple(state["kernels"]), state["weights"], state["noise"]),
        tuple(np.split(state["sites"].astype(int), ends)),
        state["conditioning"],
        combine,
        state["settings"].get("conditioning", "auto") == "auto",
        independent_model(latents, observations),
        *(
            None if state[name] is None else ParameterDirections(**state[name])
            for name in ("directions", "own_directions")
        ),
    )
    history = state["history"]
    summary = FitSummary(
        choose_learner(latent_learner, observations),
        state["log_likelihood"],
        state["converged"],
        state["n_iter"],
        None if history is None else [Stage(*stage) for stage in history],
        state["n_failed"],
        state["without_gain"],
    )
    fitted = FittedLMC(
        state["resolved_params"], state["scaler"], restrict_transfer(posterior, summary), summary
    )
    return inputs, fitted


def _smallest_integers(numbers: Array) -> Array:
    """Convert integers to the smallest integer type that can represent them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def _check_results(state: dict[str, Any]) -> None:
    params = expect_type(state, "resolved_params", ResolvedParams)
    expect(isinstance(params.correlated, bool), "'correlated' is neither true nor false")
    expect_type(state, "converged", bool)
    expect_type(state, "n_iter", int)
    expect_type(state, "log_likelihood", float)
    check_history(state)
    conditioning = expect_type(state, "conditioning", str, int)
    is_count = isinstance(conditioning, int) and conditioning > 0
    expect(conditioning in ("all", "batch") or is_count, f"'conditioning' is {conditioning!r}")
    expect_type(state, "without_gain", dict)
    expect(expect_type(state, "n_failed", int) >= 0, "'n_failed' is negative")


def _check_directions(state: dict[str, Any], name: str, kernels: str, axes: dict[str, int]) -> None:
    if expect_type(state, name, dict, type(None)) is None:
        return
    if "mean" not in state[name] and isinstance(state[name].get("theta"), Array):
        # The first files with directions: means and variances of the signals are known.
        state[name]["mean"] = np.zeros((len(state[name]["theta"]), axes["D"]))
        state[name]["inflation"] = np.ones(axes["D"])
    expect_fields(state[name].keys(), DIRECTIONS.keys())
    expect(axes.get("L", 1) == 1, f"{name!r} requires a single member")
    sizes = {axis: axes[axis] for axis in "QDk"}
    sizes["t"] = sum(kernel.n_dims for kernel in state[kernels])
    for part, shape in DIRECTIONS.items():
        expect_array(f"{name}.{part}", state[name][part], shape.split(), sizes)
    expect(bool((state[name]["inflation"] >= 1).all()), f"{name}.inflation is below 1")
    noise = state[name]["noise"]
    expect(np.array_equal(noise, np.swapaxes(noise, 1, 2)), f"{name!r} is not symmetric")


def _check_rows(state: dict[str, Any], N: int) -> None:
    index, measured = expect_type(state, "index", pd.Index), state["measured"]
    if measured is None:
        expect(len(index) == N, f"the index has {len(index)} rows for {N} sites")
        return
    # The mask has one byte for each row, so an index cannot have more rows than fit in memory.
    valid = isinstance(measured, Array) and measured.dtype == bool and measured.ndim == 1
    expect(valid and len(measured) == len(index), "'measured' and the index differ in length")
    n_measured = int(measured.sum())
    expect(n_measured == N, f"{n_measured} rows are marked as measured, but there are {N} sites")


def _check_batches(sites: Any, batches: Array, N: int) -> None:
    check_integers("sites", sites, N)
    sizes = batches.astype(int)
    expect(bool((sizes > 0).all() and (sizes <= N).all()), "the size of a batch is invalid")
    expect(int(sizes.sum()) == len(sites), "the batch sizes do not sum to the number of sites")
