"""Rows: what was asked and what came of it, a JSON line each, kept as soon as it is known.

A job is plain JSON: which model to fit, on what, from which start. Its row is the job with the
results added. So a table needs nothing but rows, and a run that was stopped goes on where it was.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from emgpr.estimators.standing import LEFT_BEHIND, EnsembleWarning
from emgpr.execution import each

Job = dict[str, Any]
Row = dict[str, Any]


def complete(
    jobs: Sequence[Job],
    work: Callable[[Job], Row],
    path: Path,
    *,
    n_jobs: int | None = None,
    label: str = "",
    verbose: int = 0,
) -> list[Row]:
    """The row of every job, in order: from the file where it is there, else worked out and kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _cut_torn_line(path)
    todo = missing(jobs, read(path))
    each(partial(_keep, work, path), todo, n_jobs=n_jobs, label=label, verbose=verbose)
    rows = read(path)
    asked = [next(row for row in rows if answers(row, job)) for job in jobs]
    _tell_of_members_that_failed(asked)
    return asked


def missing(jobs: Sequence[Job], rows: Sequence[Row]) -> list[Job]:
    """The jobs that no row answers."""
    return [job for job in jobs if not any(answers(row, job) for row in rows)]


def answers(row: Row, job: Job) -> bool:
    """Whether this is the row of that very job, settings and all.

    >>> answers({"method": "GP", "fold": 1, "mae": 0.1}, {"method": "GP", "fold": 1})
    True
    """
    return all(key in row and row[key] == value for key, value in job.items())


def read(path: Path) -> list[Row]:
    """Every whole line of the file; none if there is no file."""
    rows = []
    for number, line in enumerate(_whole_lines(path).splitlines(), start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}, is not JSON ({error}). Delete that line, and its row is "
                "worked out again; or delete the file to start afresh."
            ) from error
    return rows


def append(path: Path, row: Row) -> None:
    """One more line, in one write: whole or not at all, whoever else is writing."""
    line = json.dumps(row, allow_nan=False) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())


def by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each method, in the order in which methods first come."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    return groups


def count_notes(rows: Sequence[Row]) -> dict[str, int]:
    """What fits warned of, and in how many rows."""
    return dict(Counter(note for row in rows for note in row["notes"]))


def spread(values: Sequence[float]) -> float | None:
    """Standard deviation over repetitions; None of a single one.

    >>> spread([1.0, 3.0, 5.0]), spread([1.0])
    (2.0, None)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _keep(work: Callable[[Job], Row], path: Path, job: Job) -> None:
    append(path, job | work(job))


def _tell_of_members_that_failed(rows: Sequence[Row]) -> None:
    """From the notes: a warning in a process of its own, or of an earlier run, is heard by none."""
    notes = {note for row in rows for note in row.get("notes", ())}
    for note in sorted(notes):
        if LEFT_BEHIND.match(note):
            warnings.warn(note, EnsembleWarning, stacklevel=3)


def _whole_lines(path: Path) -> bytes:
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def _cut_torn_line(path: Path) -> None:
    """A machine that lost power may leave half a line, which the next row must not join."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(len(_whole_lines(path)))
