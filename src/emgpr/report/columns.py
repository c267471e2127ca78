"""The columns of the tables in the report. To add a column, add a line here.

A column consists of a header and a function that takes a row, a dict, and returns a cell. The
comment above each table lists the keys of this dict. Columns with only empty cells are not shown.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from emgpr.report.cells import (
    MISSING,
    Cell,
    Columns,
    code,
    measured,
    name,
    number,
    percent,
    plus_minus,
    words,
)

NOMINAL_COVERAGE = 0.95  # of the prediction intervals in cross-validation
VERDICT_STYLES = {"gains": "verdict good", "loses": "verdict bad"}


def missing(n: int, n_rows: int) -> Cell:
    """Return a cell with the number and share of missing readings."""
    text = f"{number(n).text} ({percent(n / n_rows).text})" if n else "none"
    return Cell(text, float(n), "number")


def calibration(coverage: float, n: float) -> Cell:
    """Return a verdict on the intervals: "calibrated" if coverage is within two s.e. of 95%."""
    error = 2 * np.sqrt(NOMINAL_COVERAGE * (1 - NOMINAL_COVERAGE) / max(n, 1))
    if not np.isfinite(coverage) or abs(coverage - NOMINAL_COVERAGE) <= error:
        return words("calibrated", "verdict good")
    if coverage < NOMINAL_COVERAGE:
        return words("too narrow", "verdict bad")
    return words("too wide", "verdict")


def location(coordinates: Iterable[float]) -> Cell:
    """Return a cell with the coordinates of a location."""
    return words(", ".join(measured(value, 4).text for value in coordinates))


def length_scale(kernel: Kernel) -> Cell:
    """Return a cell with the length-scale of a kernel, or with its length-scale for each input."""
    scale = kernel.get_params().get("length_scale")
    if scale is None:
        return words(MISSING, "number")
    if np.ndim(scale) == 0:
        return number(scale)
    return words(" × ".join(number(value).text for value in scale), "number")


# Keys: output, unit, values (readings of the output), n_rows (of the training table), transform
OUTPUTS: Columns = {
    "output": lambda row: name(row["output"]),
    "unit": lambda row: words(row["unit"]),
    "readings": lambda row: number(len(row["values"])),
    "missing": lambda row: missing(row["n_rows"] - len(row["values"]), row["n_rows"]),
    "lowest": lambda row: measured(row["values"].min()),
    "median": lambda row: measured(row["values"].median()),
    "highest": lambda row: measured(row["values"].max()),
    "transform": lambda row: words(row["transform"]),
}

# Keys: input, unit, values
INPUTS: Columns = {
    "input": lambda row: name(row["input"]),
    "unit": lambda row: words(row["unit"]),
    "lowest": lambda row: measured(row["values"].min()),
    "highest": lambda row: measured(row["values"].max()),
    "distinct values": lambda row: number(row["values"].nunique()),
}

# Keys: output, unit, and the columns of CrossValidation.summary()
ERRORS: Columns = {
    "output": lambda row: name(row["output"]),
    "unit": lambda row: words(row["unit"]),
    "readings": lambda row: number(row["n"]),
    "MAE": lambda row: number(row["mae"]),
    "RMSE": lambda row: number(row["rmse"]),
    "variance explained": lambda row: percent(1 - row["smse"]),
    "CRPS": lambda row: number(row["crps"]),
    "NLPD": lambda row: number(row["nlpd"]),
    "95% coverage": lambda row: percent(row["coverage"]),
    "95% intervals": lambda row: calibration(row["coverage"], row["n"]),
}

# Keys: output, unit, and the columns of TransferReport.table
TRANSFER: Columns = {
    "output": lambda row: name(row["output"]),
    "unit": lambda row: words(row["unit"]),
    "MAE independent": lambda row: number(row["mae_alone"]),
    "MAE joint": lambda row: number(row["mae"]),
    "gain": lambda row: percent(row["gain_percent"] / 100),
    "difference ± s.e.": lambda row: plus_minus(row["difference"], row["standard_error"]),
    "NLPD independent": lambda row: number(row["nlpd_alone"]),
    "NLPD joint": lambda row: number(row["nlpd"]),
    "verdict": lambda row: words(row["verdict"], VERDICT_STYLES.get(row["verdict"], "verdict")),
}

# Keys: output, centre and std (at every node), at (coordinates of the nodes)
EXTREMES: Columns = {
    "output": lambda row: name(row["output"]),
    "lowest": lambda row: number(row["centre"].min()),
    "lowest at": lambda row: location(row["at"][row["centre"].argmin()]),
    "highest": lambda row: number(row["centre"].max()),
    "highest at": lambda row: location(row["at"][row["centre"].argmax()]),
    "median SD": lambda row: number(np.median(row["std"])),
    "largest SD": lambda row: number(row["std"].max()),
}

# Keys: name, value, default, is_changed, resolved (the value used for "auto" or None)
PARAMETERS: Columns = {
    "parameter": lambda row: name(row["name"]),
    "value": lambda row: code(row["value"], "changed" if row["is_changed"] else ""),
    "default": lambda row: code(row["default"]),
    "resolved to": lambda row: words(row["resolved"]),
}


def latent_columns(outputs: Sequence[str], unit: str) -> Columns:
    """Return the columns of the table of latent processes.

    Its rows have the keys process, kernel (None for noise) and shares (a Series by output).
    """
    no_kernel = words("")
    head = f"length-scale ({unit})" if unit else "length-scale"
    columns: Columns = {
        "process": lambda row: name(row["process"]),
        "kernel": lambda row: code(repr(row["kernel"])) if row["kernel"] else no_kernel,
        head: lambda row: length_scale(row["kernel"]) if row["kernel"] else no_kernel,
    }
    shares: Columns = {
        f"share of {output}": lambda row, output=output: percent(row["shares"][output])  # type: ignore[misc]
        for output in outputs
    }
    return {**columns, **shares}
