"""Storage of the result of each job as a line of JSON, called a row, as soon as it is computed.

A job is a JSON object that specifies a model, its training data and the seed. Its row is the same
object with the results added. All tables are computed from the rows. If a run is interrupted, the
next run computes only the missing rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from emgpr import __version__
from emgpr.declared_parameters import with_new_names
from emgpr.ensemble.failed_members import FAILED_MEMBERS, EnsembleWarning
from emgpr.parallel import Execution, parallel_map
from emgpr.user_warnings import warn

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
    """Run the jobs that have no row in the file yet, and return the rows in the order of the jobs.

    Rows written by other versions of the package are ignored.
    """
    jobs = _of_this_version(jobs)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_partial_line(path)
    new_jobs = missing(jobs, read(path))
    store, execution = partial(_store, work, path), Execution("cpu", n_jobs, verbose)
    parallel_map(store, new_jobs, execution, label=label)
    stored = read(path)
    rows = [next(row for row in stored if is_row_of(row, job)) for job in jobs]
    _warn_failed_members(rows)
    return rows


def missing(jobs: Sequence[Job], rows: Sequence[Row]) -> list[Job]:
    """Return the jobs whose results are not among the rows."""
    return [job for job in jobs if not any(is_row_of(row, job) for row in rows)]


def count_finished(jobs: Sequence[Job], path: Path) -> int:
    """Return the number of jobs that `complete` would not run again."""
    return len(jobs) - len(missing(_of_this_version(jobs), read(path)))


def is_row_of(row: Row, job: Job) -> bool:
    """Tell whether a row is the result of this job.

    >>> is_row_of({"method": "GP", "fold": 1, "mae": 0.1}, {"method": "GP", "fold": 1})
    True
    """
    return all(key in row and row[key] == value for key, value in job.items())


def read(path: Path) -> list[Row]:
    """Return all complete rows in a file, or an empty list if there is no file."""
    rows = []
    for number, line in enumerate(_complete_lines(path).splitlines(), start=1):
        try:
            row = _parse(line)
        except ValueError as error:
            raise ValueError(
                f"Line {number} of {path} is {error}. Delete the line to compute its row again, or "
                "delete the file to start from the beginning."
            ) from error
        if "settings" in row:
            row["settings"] = with_new_names(row["settings"])
        rows.append(row)
    return rows


def _parse(line: bytes) -> Row:
    """Return a line as a row; raise ValueError with a phrase that says what it is instead."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


def append(path: Path, row: Row) -> None:
    """Append a row in a single write, so that rows from parallel processes are not interleaved."""
    line = (json.dumps(row, allow_nan=False) + "\n").encode()
    with path.open("ab", buffering=0) as file:
        written = file.write(line)
        if written < len(line):  # The disk is nearly full; this write says why, as an OSError.
            file.write(line[written:])


def group_rows(
    rows: Iterable[Row], key: Callable[[Row], Any] = itemgetter("method")
) -> dict[Any, list[Row]]:
    """Group rows by method or by another key, with the groups in order of first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def by_name(names: Sequence[str], values: np.ndarray) -> dict[str, Any]:
    """Return a dict of values with output names as keys, which can be stored as JSON."""
    return dict(zip(names, values.tolist(), strict=True))


def count_notes(rows: Sequence[Row]) -> dict[str, int]:
    """Return the number of rows in which each warning occurs."""
    return dict(Counter(note for row in rows for note in row["notes"]))


def standard_deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of the values, or None for a single value.

    >>> standard_deviation([1.0, 3.0, 5.0]), standard_deviation([1.0])
    (2.0, None)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _of_this_version(jobs: Sequence[Job]) -> list[Job]:
    return [job | {"version": __version__} for job in jobs]


def _store(work: Callable[[Job], Row], path: Path, job: Job) -> None:
    append(path, job | work(job))


def _warn_failed_members(rows: Sequence[Row]) -> None:
    """Repeat stored warnings about failed members, which other processes or earlier runs raised."""
    for note in sorted({note for row in rows for note in row.get("notes", ())}):
        if FAILED_MEMBERS.match(note):
            warn(note, EnsembleWarning)


def _complete_lines(path: Path) -> bytes:
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def _remove_partial_line(path: Path) -> None:
    """Remove an incomplete last line, which an interrupted write can leave."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(len(_complete_lines(path)))
