"""Conversion and validation of tables, and warnings about suspicious values."""

from emgpr.inputs.convert import as_table, is_lazy
from emgpr.inputs.data_warnings import DataWarning, observed_warnings
from emgpr.inputs.rows import match_rows
from emgpr.inputs.training import TrainingTable, read_training_table
from emgpr.inputs.validate import (
    InputSpec,
    is_plain,
    order_outputs,
    validate_observed,
    validate_outputs,
)

__all__ = [
    "DataWarning",
    "InputSpec",
    "TrainingTable",
    "as_table",
    "is_lazy",
    "is_plain",
    "match_rows",
    "observed_warnings",
    "order_outputs",
    "read_training_table",
    "validate_observed",
    "validate_outputs",
]
