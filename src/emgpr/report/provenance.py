"""Where a report comes from: versions, seed, time, and checksums that others can make again."""

import hashlib
import os
from dataclasses import dataclass
from math import ceil, log10
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

from emgpr.estimators import load
from emgpr.estimators.base import MultiOutputGP
from emgpr.estimators.stored import FORMAT, VERSION, circumstances
from emgpr.io.files import existing
from emgpr.persistence import read
from emgpr.report.tables import Table, name, number, words

DIGITS = (
    9  # of a column's largest value: what is lost on the way to standard units and back is less
)


@dataclass(frozen=True)
class Source:
    """A model, and the file it came from if there was one."""

    model: Any
    path: Path | None = None
    sha256: str = ""
    size: int = 0
    created: str = ""
    writer: str = ""

    @classmethod
    def of(cls, given: Any) -> "Source":
        """The model itself, or the one in a file."""
        if isinstance(given, MultiOutputGP):
            return cls(given)
        if not isinstance(given, str | os.PathLike):
            raise TypeError(
                f"a report is of a fitted estimator of emgpr, or of the path of a model file; "
                f"got a {type(given).__name__}."
            )
        path = existing(given)
        model = load(path)
        if not isinstance(model, MultiOutputGP):
            raise TypeError(
                f"{path} holds a model of class {type(model).__name__}, which keeps no readings; "
                "a report shows them. Report on an estimator that does, such as EMGPR."
            )
        header, _ = read(path, FORMAT, VERSION)
        content = path.read_bytes()
        return cls(
            model,
            path,
            hashlib.sha256(content).hexdigest(),
            len(content),
            str(header.get("created", "")),
            str(dict(header.get("versions") or {}).get("emgpr", "")),
        )


def checksum(X: Any, Y: Any) -> str:
    """SHA-256 of a table of inputs and outputs, to see whether a model was fitted to it.

    Of what `training_data` gives, and of the table that went into `fit`, it is the same: values
    count to nine digits of the largest in their column, rows without a reading and the names of
    columns do not. The order of rows and columns does.

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


def _rounded(column: np.ndarray) -> np.ndarray:
    """To so many digits of the largest."""
    largest = np.nanmax(np.abs(column), initial=0.0)
    decimals = DIGITS - ceil(log10(largest)) if largest > 0 else 0
    return np.round(column, decimals) + 0.0  # no −0


def provenance(source: Source) -> Table:
    """A row for everything that one needs to know to make the same again."""
    now = circumstances()
    X, Y = source.model.training_data()
    rows = [
        ("Report made", words(now["created"])),
        *((package, words(version)) for package, version in now["versions"].items()),
        ("matplotlib", words(matplotlib.__version__)),
        ("Seed (random_state)", words(repr(source.model.random_state), "code")),
        ("Training data, SHA-256", words(checksum(X, Y), "code hash")),
    ]
    if source.path is not None:
        rows += [
            ("Model file", words(source.path.name, "code")),
            ("Model file, written", words(f"{source.created} by emgpr {source.writer}")),
            ("Model file, bytes", number(source.size)),
            ("Model file, SHA-256", words(source.sha256, "code hash")),
        ]
    return Table(
        "Where this report comes from",
        ("", ""),
        [(name(what), value) for what, value in rows],
        "The checksum of the training data is that of emgpr.report.checksum(X, Y): of the table "
        "that went into the fit it gives the same.",
    )
