"""Training tables: the inputs and outputs at all sites where something was measured."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.inputs.convert import as_tables
from emgpr.inputs.data_warnings import (
    DataWarning,
    input_warnings,
    output_warnings,
    table_warnings,
)
from emgpr.inputs.numeric import date_columns
from emgpr.inputs.rows import match_rows
from emgpr.inputs.units import units_of
from emgpr.inputs.validate import (
    InputSpec,
    check_each_output_observed,
    column_names,
    float_spacing,
    is_plain,
    string_names,
    validate_inputs,
    validate_outputs,
)
from emgpr.latents import MAX_COLUMNS, column_scales
from emgpr.user_warnings import warn

Array = np.ndarray


@dataclass(frozen=True)
class TrainingTable:
    """Inputs in kernel coordinates and outputs in original units, for all rows with readings."""

    inputs: InputSpec
    x: Float[Array, "N P"]
    Y: Float[Array, "N D"]
    output_names: tuple[str, ...]
    one_dimensional: bool
    warnings: tuple[DataWarning, ...]
    dates: tuple[int, ...] = ()  # columns of inputs that were converted from dates to days

    @property
    def n_rows(self) -> int:
        """Number of rows in the user's table, including rows without readings."""
        return len(self.inputs.index)

    @property
    def Y_of_all_rows(self) -> Float[Array, "n_rows D"]:
        """Outputs in all rows of the user's table, for messages with numbers of rows."""
        Y = np.full((self.n_rows, self.Y.shape[1]), np.nan)
        Y[self.inputs.rows] = self.Y
        return Y

    def warn(self) -> None:
        """Issue the warnings about suspicious values."""
        for message in self.warnings:
            warn(message)


def read_training_table(
    X: Any,
    y: Any,
    *,
    estimator: str,
    crs: str | None = None,
    centred: bool = True,
    standardise_many: bool = False,
) -> TrainingTable:
    """Return a validated training table, together with warnings about its contents.

    `estimator` is the name used in error messages; `centred` tells whether outputs are modelled as
    deviations from their mean. With `standardise_many`, more than `MAX_COLUMNS` input columns,
    which share a length-scale, are divided by their standard deviations.
    """
    units = units_of(X, y, crs)
    if not (is_plain(X) and is_plain(y)):
        X, y = as_tables(X, y)
    y = match_rows(X, y, "y")
    numbers = validate_inputs(X, estimator)
    Y, output_names, one_dimensional = validate_outputs(y, len(numbers))
    check_each_output_observed(Y, len(Y), output_names)
    # Rows in which nothing was measured carry no information.
    rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
    P, D = numbers.shape[1], Y.shape[1]
    index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(numbers))
    inputs = InputSpec(estimator, string_names(X), P, crs, index, rows, units=units)
    warnings = (
        *input_warnings(numbers[rows], column_names(X, P), float_spacing(X, P), crs),
        *output_warnings(Y, output_names, float_spacing(y, D), centred=centred),
        *table_warnings(numbers, Y),
    )
    x = inputs.to_kernel(numbers[rows])
    if standardise_many and x.shape[1] > MAX_COLUMNS:
        inputs = replace(inputs, scales=column_scales(x))
        x = inputs.to_kernel(numbers[rows])
    return TrainingTable(
        inputs, x, Y[rows], output_names, one_dimensional, warnings, date_columns(X)
    )
