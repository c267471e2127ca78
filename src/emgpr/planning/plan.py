"""The plan of a fit: its steps with their time, memory and approximations."""

from dataclasses import dataclass

from emgpr.progress import format_duration

ACCURACY = 2  # factor by which times can be wrong, because the number of iterations is unknown


@dataclass(frozen=True)
class Step:
    """A step of a fit, with its method, number of readings, time and memory.

    `side` is the number of rows of the largest matrices in the step. There are `n_matrices` of
    this size, and each is factorised about `evaluations` times. `seconds` is None if the time is
    unknown, as for a user-defined learner. `approximation` is empty if the step is exact.
    """

    name: str
    method: str
    n_readings: int
    n_matrices: int
    side: int
    evaluations: int
    seconds: float | None
    bytes: float
    approximation: str = ""


@dataclass(frozen=True)
class Plan:
    """The steps of a fit and estimates of time and memory, usually correct within a factor of 2.

    `seconds` is the total time of the steps whose time is known, on this machine if nothing else
    runs. `bytes` is the peak memory, not counting Python and its libraries. It includes the table,
    which stays in memory throughout. `prediction` describes predictions at 1000 locations after the
    fit, which are not part of the totals.
    `note` names work that the plan does not include; it is empty if there is none.
    """

    n_sites: int
    n_outputs: int
    n_readings: int
    device: str
    n_processes: int
    steps: tuple[Step, ...]
    prediction: Step
    note: str = ""

    @property
    def seconds(self) -> float:
        """Total time in seconds of the steps whose time is known."""
        return sum(step.seconds or 0.0 for step in self.steps)

    @property
    def bytes(self) -> float:
        """Peak memory of the fit in bytes."""
        table, *others = self.steps
        return table.bytes + max((step.bytes for step in others), default=0.0)

    @property
    def unknown(self) -> list[str]:
        """Steps whose time is unknown."""
        return [step.name for step in self.steps if step.seconds is None]

    @property
    def approximations(self) -> list[str]:
        """Descriptions of the approximations in all steps; empty if all steps are exact."""
        return [
            f"{step.name}: {step.approximation}"
            for step in (*self.steps, self.prediction)
            if step.approximation
        ]

    def __str__(self) -> str:
        head = ("step", "readings", "matrices", "time", "memory", "method")
        rows = [
            (
                step.name,
                str(step.n_readings),
                f"{step.n_matrices} of {step.side} × {step.side}" if step.n_matrices else "",
                "unknown" if step.seconds is None else format_duration(step.seconds),
                format_bytes(step.bytes),
                step.method,
            )
            for step in (*self.steps, self.prediction)
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *rows)
        ]
        where = "" if self.device == "cpu" else f" on {self.device}"
        where += f" with {self.n_processes} processes" if self.n_processes > 1 else ""
        total = f"The fit{where}: {self.summary()}."
        notes = [self.note] if self.note else []
        return "\n".join([*lines, total, *notes, self.approximation_summary()])

    def summary(self) -> str:
        """Return a phrase that gives the time and memory of the fit."""
        unknown = f", not counting {' and '.join(self.unknown)}, whose time is unknown"
        return (
            f"about {format_duration(self.seconds)} and {format_bytes(self.bytes)} of memory, "
            f"within a factor of {ACCURACY}{unknown if self.unknown else ''}"
        )

    def approximation_summary(self) -> str:
        """Return the descriptions of the approximations, one line for each step."""
        if not self.approximations:
            return "Nothing is approximated."
        return "\n".join(["Approximated:", *(f"  {line}" for line in self.approximations)])


def format_bytes(n: float) -> str:
    """Return a number of bytes as text in a suitable unit.

    >>> format_bytes(3e5), format_bytes(4.2e7), format_bytes(2.5e9)
    ('1 MB', '42 MB', '2.5 GB')
    """
    return f"{n / 1e9:.1f} GB" if n >= 9.5e8 else f"{max(n / 1e6, 1):.0f} MB"
