"""The provenance section: versions, seed, time, and checksums of the data and the model."""

import hashlib
import os
from dataclasses import dataclass
from math import ceil, log10
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.estimators import MultiOutputGP, ReadingsGP, load
from emgpr.io.files import existing_file
from emgpr.model_files.files import FORMAT, VERSION
from emgpr.model_files.files import provenance as environment
from emgpr.persistence import PathLike, read
from emgpr.report.cells import Cell, Table, code, number, words

# The values of a column are rounded to the ninth significant digit of the largest value.
# Standardising values and transforming them back does not change these digits.
CHECKSUM_DIGITS = 9


@dataclass(frozen=True)
class Source:
    """A fitted model and, if it was loaded from a file, that file's name, size and checksum."""

    model: MultiOutputGP | ReadingsGP
    file_facts: dict[str, Cell]

    @property
    def file_name(self) -> str:
        """The name of the file, or "" if the model was not loaded from a file."""
        return self.file_facts["Model file"].text if self.file_facts else ""

    @classmethod
    def read(cls, model: MultiOutputGP | ReadingsGP | PathLike) -> "Source":
        """Create the source from a fitted model or from the path of a model file."""
        if isinstance(model, MultiOutputGP | ReadingsGP):
            return cls(model, {})
        if not isinstance(model, str | os.PathLike):
            raise TypeError(
                "A report needs a fitted estimator that keeps its training readings (any but "
                f"OnePassGP), or the path of a model file; got {type(model).__name__}."
            )
        path = existing_file(model)
        loaded = load(path)
        if not isinstance(loaded, MultiOutputGP | ReadingsGP):
            raise TypeError(
                f"{path} contains a model of class {type(loaded).__name__}, which does not keep "
                "its training readings, but a report needs them. Use a model that keeps them, "
                "such as EMGPR."
            )
        return cls(loaded, _file_facts(path))


def _file_facts(path: Path) -> dict[str, Cell]:
    header, _ = read(path, FORMAT, VERSION)
    content = path.read_bytes()
    version = dict(header.get("versions") or {}).get("emgpr", "")
    return {
        "Model file": code(path.name),
        "Model file, written": words(f"{header.get('created', '')} by emgpr {version}"),
        "Model file, bytes": number(len(content)),
        "Model file, SHA-256": code(hashlib.sha256(content).hexdigest(), "hash"),
    }


def checksum(X: Any, Y: Any) -> str:
    """Return the SHA-256 of a table, to check whether a model was fitted to it.

    The result is the same for the table passed to `fit` and for `training_data()`. It depends on
    the order of rows and columns, but not on column names or rows without readings. The values of
    each column are rounded to the ninth significant digit of its largest value.

    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([0.1 + 0.2, 1.0, np.nan])
    >>> checksum(X, Y) == checksum(X[:2], [0.3, 1.0]), checksum(X, Y) == checksum(X, 2 * Y)
    (True, False)
    """
    inputs, outputs = (np.asarray(part, dtype=float).reshape(len(part), -1) for part in (X, Y))
    rows = ~np.isnan(outputs).all(axis=1)
    columns = np.column_stack([inputs, outputs])[rows].T
    table = pd.DataFrame({i: _rounded(column) for i, column in enumerate(columns)})
    text = table.to_csv(index=False, header=False, float_format="%.12g", lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def _rounded(column: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    largest = np.nanmax(np.abs(column), initial=0.0)
    decimals = CHECKSUM_DIGITS - ceil(log10(largest)) if largest > 0 else 0
    return np.round(column, decimals) + 0.0  # Adding 0 turns −0 into 0.


def provenance_table(source: Source) -> Table:
    """Return a table of the versions, seed and checksums needed to reproduce the report."""
    now, params = environment(), source.model.get_params(deep=False)
    seed = {"Seed (random_state)": code(repr(params.get("random_state")))}
    seed = seed if "random_state" in params else {}  # other fits are not random
    facts = {
        "Report created": words(now["created"]),
        **{package: words(version) for package, version in now["versions"].items()},
        "matplotlib": words(matplotlib.__version__),
        **seed,
        "Training data, SHA-256": code(checksum(*source.model.training_data()), "hash"),
        **source.file_facts,
    }
    note = (
        "To check whether a model was fitted to a certain table, compute the checksum of the "
        "table with emgpr.report.checksum(X, Y), and compare it with the checksum above."
    )
    return Table.of_facts("Origin of this report", facts, note)
