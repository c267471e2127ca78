"""Summary of a table before a fit: its contents, missing readings and suspicious values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from emgpr.inputs import DataWarning, TrainingTable
from emgpr.parameter_checks import is_auto
from emgpr.transforms import OutputScaler, candidates, transform_per_output


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

    @classmethod
    def build(cls, table: TrainingTable, output_transform: Any) -> "TableSummary":
        """Summarise a table; raise if the requested transform cannot be applied to an output."""
        X, Y = table.inputs.to_user(table.x), table.Y
        locations = pd.DataFrame(X)
        ranges = {"least": X.min(axis=0), "greatest": X.max(axis=0)}
        n_readings = (~np.isnan(Y)).sum(axis=0)
        outputs = {
            "readings": n_readings,
            "missing": table.n_rows - n_readings,
            "least": np.nanmin(Y, axis=0),
            "median": np.nanmedian(Y, axis=0),
            "greatest": np.nanmax(Y, axis=0),
            "transform": _transforms(table, output_transform),
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
            f"{name} {row['least']:g} to {row['greatest']:g}"
            for name, row in self.inputs.iterrows()
        )
        table = self.outputs.rename_axis(None).to_string(float_format="{:g}".format)
        return f"{rows}; {locations}\n{ranges}\n{table}"


def _transforms(table: TrainingTable, output_transform: Any) -> list[str]:
    """Return the transform of each output; raise if one cannot be applied."""
    given = transform_per_output(output_transform, table.output_names)
    fixed = [None if is_auto(spec) else spec for spec in given]
    OutputScaler.fit(table.Y, fixed, names=table.output_names).standardise(table.Y)
    return [
        f"{candidates(values[~np.isnan(values)])[0] or 'none'} (first guess)"
        if is_auto(spec)
        else "none" if spec is None else str(spec)
        for values, spec in zip(table.Y.T, given, strict=True)
    ]  # fmt: skip
