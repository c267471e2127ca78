"""Storage of a fitted linear model of coregionalisation in a model file."""

from dataclasses import replace
from typing import Any

import numpy as np

from emgpr.declared_parameters import with_new_names
from emgpr.fitting.defaults import ResolvedParams
from emgpr.fitting.fit import FitSummary, FittedLMC, independent_model
from emgpr.inputs import InputSpec
from emgpr.latents import Latent, choose_learner
from emgpr.model_files.checks import (
    check_history,
    check_integers,
    check_kernels,
    check_noise,
    expect,
    expect_array,
    expect_fields,
    expect_type,
)
from emgpr.model_files.stack_state import (
    stack_from_state,
    stack_of_earlier_version,
    stack_state,
)
from emgpr.model_files.table_state import (
    TABLE_FIELDS,
    check_table_state,
    table_from_state,
    table_state,
)
from emgpr.prediction import LMCModel, LMCPosterior, ParameterDirections
from emgpr.stacking import CandidateWeights, Stack, StackedPosterior
from emgpr.transforms import OutputScaler
from emgpr.weights import Stage

Array = np.ndarray

FIELDS = frozenset(
    [
        *TABLE_FIELDS, "resolved_params", "sites", "batches", "kernels", "noise", "weights",
        "own_kernels", "own_noise", "stack", "history", "log_likelihood", "n_iter",
        "converged", "conditioning", "n_failed", "directions", "own_directions",
    ]
)  # fmt: skip
SHAPES = {"weights": "L Q D k", "noise": "D D", "own_noise": "D", "batches": "L"}


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
    history = summary.history
    # A complete fit needs no checkpoint.
    settings = {k: None if k == "checkpoint" else value for k, value in settings.items()}
    return {
        **table_state(settings, inputs, scaler, posterior.observations),
        "resolved_params": params,
        "sites": _smallest_integers(np.concatenate(batches)),
        "batches": _smallest_integers(np.array([len(batch) for batch in batches])),
        "kernels": list(model.kernels),
        "noise": model.noise,
        "weights": model.weights,
        "own_kernels": list(own.kernels),
        "own_noise": np.diagonal(own.noise),
        "stack": stack_state(posterior.stack) if isinstance(posterior, StackedPosterior) else None,
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


def upgrade_state(state: dict[str, Any], version: int, couples_outputs: bool) -> dict[str, Any]:
    """Convert the state in a file of an earlier version to the present version."""
    if version < 2:
        state = _with_names_of_version_2(state)
    return _with_stack(state, couples_outputs) if version < 3 else state


def _with_names_of_version_2(state: dict[str, Any]) -> dict[str, Any]:
    new = {"n_failed": 0, **state}
    new.pop("own_bounds")
    for old, name in (("settled", "resolved_params"), ("lost", "without_gain")):
        new[name] = new.pop(old)
    settings = expect_type(new, "settings", dict)
    new["settings"] = with_new_names(settings)
    new["scaler"] = upgrade_scaler(new)
    return new


def _with_stack(state: dict[str, Any], couples_outputs: bool) -> dict[str, Any]:
    """Convert a state of version 2 to version 3, with the weights of candidates.

    Earlier versions listed the outputs that are predicted with and without transfer. Regressions on
    known outputs were of another kind; they are fitted again when they are first needed.
    """
    new = {**state}
    without_gain = expect_type(new, "without_gain", dict)
    del new["without_gain"]
    N, D = len(expect_type(new, "x", Array)), len(expect_type(new, "own_noise", Array))
    for by, outputs in without_gain.items():
        expect(by in ("site", "output"), f"'without_gain' has the key {by!r}")
        check_integers(f"outputs without gain by {by}", outputs, D)
    regression = new.pop("regression_settings", None)
    new.pop("regressions", None)
    new["stack"] = None
    if not couples_outputs and isinstance(regression, dict):
        own = (CandidateWeights.of_one("own"),) * D
        new["stack"] = {
            **stack_state(Stack(N, own, couples_outputs=False)),
            "kernel": regression.get("residual_kernel"),
            "varying": regression.get("varying_coefficients"),
        }
    elif any(len(outputs) for outputs in without_gain.values()):
        new["stack"] = stack_state(stack_of_earlier_version(without_gain, N, D))
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
    axes = check_table_state(state, SHAPES)
    N, D = axes["N"], axes["D"]
    expect(min(axes[axis] for axis in "Lk") > 0, f"an axis is empty: {axes}")
    _check_results(state)
    _check_batches(state["sites"], state["batches"], N)
    check_noise(state["noise"], state["own_noise"])
    check_kernels("kernels", state["kernels"], axes["Q"], state["x"])
    check_kernels("own_kernels", state["own_kernels"], D, state["x"])
    _check_directions(state, "directions", "kernels", axes)
    _check_directions(state, "own_directions", "own_kernels", {"D": D, "Q": D, "k": 1})


def lmc_from_state(
    state: dict[str, Any], estimator: str, combine: Any, latent_learner: Any
) -> tuple[InputSpec, FittedLMC]:
    """Rebuild the inputs and the fitted model from a state that has been checked."""
    inputs, observations = table_from_state(state, estimator)
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
    )
    if state["stack"] is not None:
        N, D = observations.n_sites, observations.n_outputs
        stack = stack_from_state(state["stack"], N, D)
        posterior = StackedPosterior.extending(posterior, stack)
    return inputs, FittedLMC(state["resolved_params"], state["scaler"], posterior, summary)


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


def _check_batches(sites: Any, batches: Array, N: int) -> None:
    check_integers("sites", sites, N)
    sizes = batches.astype(int)
    expect(bool((sizes > 0).all() and (sizes <= N).all()), "the size of a batch is invalid")
    expect(int(sizes.sum()) == len(sites), "the batch sizes do not sum to the number of sites")
