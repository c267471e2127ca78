"""Storage of a fitted variogram model and of the readings for co-kriging in a model file."""

from typing import Any

import numpy as np

from emgpr.cokriging import VariogramModel
from emgpr.fitting.cokriging import CoKrigingSummary, FittedCoKriging, cokriging_posterior
from emgpr.inputs import InputSpec
from emgpr.model_files.checks import (
    check_kernels,
    check_noise,
    expect,
    expect_fields,
    expect_type,
)
from emgpr.model_files.table_state import (
    TABLE_FIELDS,
    check_table_state,
    table_from_state,
    table_state,
)
from emgpr.parameter_checks import is_auto
from emgpr.prediction import LMCPosterior
from emgpr.transforms import OutputScaler

SHAPES = {"weights": "Q D D", "nugget": "D D", "mean_variances": "D"}
RESULTS = frozenset(["misfit", "n_iter", "converged", "conditioning"])
FIELDS = TABLE_FIELDS | SHAPES.keys() | RESULTS | {"kernels"}


def cokriging_state(
    settings: dict[str, Any],
    inputs: InputSpec,
    scaler: OutputScaler,
    model: VariogramModel,
    posterior: LMCPosterior,
    summary: CoKrigingSummary,
) -> dict[str, Any]:
    """Return everything that is needed to rebuild a fitted model, as a dict."""
    return {
        **table_state(settings, inputs, scaler, posterior.observations),
        "kernels": list(model.kernels),
        "weights": model.weights,
        "nugget": model.nugget,
        "misfit": float(summary.misfit),
        "n_iter": int(summary.n_iter),
        "converged": bool(summary.converged),
        "mean_variances": summary.mean_variances,
        "conditioning": posterior.conditioning,
    }


def check_cokriging_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` if a field is invalid."""
    expect_fields(state.keys(), FIELDS)
    axes = check_table_state(state, SHAPES)
    expect(axes["Q"] > 0, "there is no structure")
    check_kernels("kernels", state["kernels"], axes["Q"], state["x"])
    check_noise(state["nugget"], np.diagonal(state["nugget"]))
    expect_type(state, "misfit", float)
    expect_type(state, "n_iter", int)
    expect_type(state, "converged", bool)
    expect(bool((state["mean_variances"] >= 0).all()), "'mean_variances' are negative")
    conditioning = expect_type(state, "conditioning", str, int)
    is_count = isinstance(conditioning, int) and conditioning > 0
    expect(conditioning == "all" or is_count, f"'conditioning' is {conditioning!r}")


def cokriging_from_state(
    state: dict[str, Any], estimator: str
) -> tuple[InputSpec, FittedCoKriging]:
    """Rebuild the inputs and the fitted model from a state that has been checked."""
    inputs, observations = table_from_state(state, estimator)
    model = VariogramModel(tuple(state["kernels"]), state["weights"], state["nugget"])
    posterior = cokriging_posterior(
        observations, model, state["mean_variances"], state["conditioning"],
        automatic=is_auto(state["settings"].get("conditioning", "auto")),
    )  # fmt: skip
    summary = CoKrigingSummary(
        state["misfit"], state["converged"], state["n_iter"], state["mean_variances"]
    )
    return inputs, FittedCoKriging(state["scaler"], model, posterior, summary)
