"""Storage of the training table in a model file: inputs, standardised readings and rows."""

from typing import Any

import numpy as np
import pandas as pd

from emgpr.inputs import InputSpec
from emgpr.model_files.checks import (
    check_feature_names,
    check_scaler,
    check_settings,
    expect,
    expect_array,
    expect_type,
)
from emgpr.observations import Observations
from emgpr.transforms import OutputScaler

Array = np.ndarray

TABLE_FIELDS = frozenset(
    ["settings", "feature_names", "input_scales", "index", "measured", "x", "y", "scaler"]
)
TABLE_SHAPES = {"x": "N P", "y": "D N", "shift": "D", "scale": "D"}


def table_state(
    settings: dict[str, Any], inputs: InputSpec, scaler: OutputScaler, observations: Observations
) -> dict[str, Any]:
    """Return the parameters of an estimator and its training table as a dict."""
    measured = np.zeros(len(inputs.index), bool)
    measured[inputs.rows] = True
    return {
        "settings": settings,
        "feature_names": None if inputs.feature_names is None else list(inputs.feature_names),
        "input_scales": inputs.scales,
        "index": inputs.index,
        "measured": None if measured.all() else measured,
        "x": observations.x,
        "y": observations.table.T,
        "scaler": scaler,
    }


def check_table_state(state: dict[str, Any], shapes: dict[str, str]) -> dict[str, int]:
    """Raise `ModelFileError` if a field is invalid; return the length of each axis.

    `shapes` are those of other arrays in the state.
    """
    scaler = expect_type(state, "scaler", OutputScaler)
    arrays = {**state, "shift": scaler.shift, "scale": scaler.scale}
    axes: dict[str, int] = {}
    for name, shape in {**TABLE_SHAPES, **shapes}.items():
        expect_array(name, arrays[name], shape.split(), axes)
    expect(min(axes[axis] for axis in "NPD") > 0, f"an axis is empty: {axes}")
    check_settings(expect_type(state, "settings", dict))
    check_scaler(scaler, axes["D"])
    expect_type(state, "feature_names", list, type(None))
    check_feature_names(state["feature_names"], axes["P"], state["settings"]["crs"])
    if state["input_scales"] is not None:
        expect_array("input_scales", state["input_scales"], ["P"], axes)
        expect(bool((state["input_scales"] > 0).all()), "an input scale is not positive")
    _check_rows(state, axes["N"])
    observed = ~np.isnan(state["y"])
    expect(bool(observed.any(axis=1).all()), "an output has no readings")
    expect(bool(observed.any(axis=0).all()), "a site has no readings")
    return axes


def table_from_state(state: dict[str, Any], estimator: str) -> tuple[InputSpec, Observations]:
    """Rebuild the inputs and the readings from a state that has been checked."""
    x, index, measured = state["x"], state["index"], state["measured"]
    rows = np.arange(len(index)) if measured is None else np.flatnonzero(measured)
    names, crs = state["feature_names"], state["settings"]["crs"]
    inputs = InputSpec(
        estimator,
        None if names is None else tuple(names),
        check_feature_names(names, x.shape[1], crs),
        crs,
        index,
        rows,
        state["input_scales"],
    )
    return inputs, Observations.from_table(x, state["y"].T)


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
