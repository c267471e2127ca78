"""Summary of a table before a fit: its contents, missing readings and suspicious values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from emgpr.inputs import DataWarning, TrainingTable
from emgpr.parameter_checks import is_auto
from emgpr.printable import escape_controls
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import OutputScaler, bounds_per_output, transforms_to_fit


@dataclass(frozen=True)
class TableSummary:
    """Summary of a training table.

    `outputs` has one row for each output, with the numbers of readings and of missing readings, the
    smallest, median and largest value, and the transform. If the transform is "auto", the first
    candidate is shown. It is used unless another candidate is better in cross-validation.
    """

    n_rows: int
    n_used: int
    n_places: int  # number of distinct locations
    n_shared: int  # number of rows that share their location with another row
    n_copies: int  # number of rows that are identical to an earlier row
    inputs: pd.DataFrame
    outputs: pd.DataFrame
    warnings: tuple[DataWarning, ...]  # the warnings that `fit` would issue
    dates: tuple[str, ...] = ()  # inputs in days since 1970-01-01

    @classmethod
    def build(
        cls,
        table: TrainingTable,
        output_transform: Any,
        output_bounds: Any = "auto",
        compositions: Any = None,
    ) -> "TableSummary":
        """Summarise a table; raise if the requested transform cannot be applied to an output."""
        X, Y = table.inputs.to_user(table.x), table.Y
        locations = pd.DataFrame(X)
        ranges = {"least": X.min(axis=0), "greatest": X.max(axis=0)}
        n_readings = (~np.isnan(Y)).sum(axis=0)
        with rows_of_table(table.inputs.rows):
            transforms = _transforms(table, output_transform, output_bounds, compositions)
        outputs = {
            "readings": n_readings,
            "missing": table.n_rows - n_readings,
            "least": np.nanmin(Y, axis=0),
            "median": np.nanmedian(Y, axis=0),
            "greatest": np.nanmax(Y, axis=0),
            "transform": transforms,
        }
        return cls(
            table.n_rows,
            len(X),
            len(locations.drop_duplicates()),
            int(locations.duplicated(keep=False).sum()),
            int(pd.DataFrame(np.column_stack([X, Y])).duplicated().sum()),
            pd.DataFrame(ranges, index=pd.Index(table.inputs.names, name="input")),
            pd.DataFrame(outputs, index=pd.Index(table.output_names, name="output")),
            tuple(table.warnings),
            tuple(table.inputs.names[p] for p in table.dates),
        )

    def __str__(self) -> str:
        rows = f"{self.n_rows} rows"
        if self.n_used < self.n_rows:
            rows += f", {self.n_used} used: {self.n_rows - self.n_used} without a reading"
        locations = f"{self.n_places} locations"
        if self.n_shared:
            several = self.n_places - (self.n_used - self.n_shared)
            locations += (
                f", {several} of them with several rows ({self.n_shared} in total), which are "
                "treated as repeated readings"
            )
        if self.n_copies:
            locations += f"; {self.n_copies} rows are identical to another row"
        ranges = ", ".join(
            f"{name} {self._shown(name, row['least'])} to {self._shown(name, row['greatest'])}"
            for name, row in self.inputs.iterrows()
        )
        table = self.outputs.rename_axis(None).to_string(float_format="{:g}".format)
        return escape_controls(f"{rows}; {locations}\n{ranges}\n{table}")

    def _shown(self, name: object, value: float) -> str:
        """Return an input as text, and days as a date."""
        if name not in self.dates:
            return f"{value:g}"
        return str(pd.Timestamp(value, unit="D").date())


def _transforms(
    table: TrainingTable, output_transform: Any, output_bounds: Any, compositions: Any
) -> list[str]:
    """Return the transform of each output; raise if one cannot be applied."""
    given = transforms_to_fit(output_transform, compositions, table.output_names)
    bounds = bounds_per_output(output_bounds, table.output_names, table.Y, given)
    automatic = [None if bound is None else "softplus" for bound in bounds]
    specs = [a if is_auto(spec) else spec for a, spec in zip(automatic, given, strict=True)]
    scaler = OutputScaler.fit(
        table.Y, specs, bounds=output_bounds, compositions=compositions, names=table.output_names
    )
    scaler.standardise(table.Y)
    names = ["none" if spec is None else str(spec) for spec in specs]
    return [
        f"{name} (first guess)" if is_auto(spec) else name
        for name, spec in zip(names, given, strict=True)
    ]
