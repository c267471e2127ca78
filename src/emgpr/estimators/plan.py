"""What a fit is going to do, as a plan with times and memory, and how fast this machine is."""

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from emgpr.arrays import factor, fetch, namespace, put

WITHIN = 3  # the factor by which a plan may be wrong: searches end when they end
SIDE = 700  # of the matrix that is timed: 0.1 s for all,
SIDE_ON_DEVICE = 3000  # on a GPU, which is idle with less
TIMES = 5  # of which the quickest counts: others waited for what else runs
PASSES = 530.0  # operations for each entry of a matrix, in the time of a pass over it


@dataclass(frozen=True)
class Step:
    """A part of the work: how it is done, on how many readings, in which time and memory.

    `side` is that of the largest matrix that is factored, of which there are `n_matrices`, each
    about `evaluations` times. `seconds` is None where that cannot be known: a learner of the
    user's own. `approximation` says what stands for something else in it; nothing if it is exact.
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
    """What a fit will do, step by step; rough, within a factor of 3 as a rule.

    `seconds` are those of the steps one after another on this machine, if little else runs on it,
    less those of steps of which they are not known; `bytes` is the most memory at a time, beside
    what Python and its libraries have taken: the first step, that of the table, keeps its own.
    `prediction` is the step of predicting 1000 places afterwards, which is not in the sum.
    """

    n_sites: int
    n_outputs: int
    n_readings: int
    device: str
    n_processes: int
    steps: tuple[Step, ...]
    prediction: Step

    @property
    def seconds(self) -> float:
        """Of the fit, as far as is known."""
        return sum(step.seconds or 0.0 for step in self.steps)

    @property
    def bytes(self) -> float:
        """At the peak of the fit."""
        table, *others = self.steps
        return table.bytes + max((step.bytes for step in others), default=0.0)

    @property
    def unknown(self) -> list[str]:
        """The steps whose time is not known."""
        return [step.name for step in self.steps if step.seconds is None]

    @property
    def approximations(self) -> list[str]:
        """Step by step, what stands for something else; empty if all is exact."""
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
                "unknown" if step.seconds is None else duration(step.seconds),
                size(step.bytes),
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
        return "\n".join([*lines, f"The fit{where}: {self.in_short()}.", self.honestly()])

    def in_short(self) -> str:
        """The sum, in words."""
        beside = f", beside {' and '.join(self.unknown)}, whose time is not known"
        return (
            f"about {duration(self.seconds)} and {size(self.bytes)} of memory, within a factor of "
            f"{WITHIN}{beside if self.unknown else ''}"
        )

    def honestly(self) -> str:
        """What is approximated, a line for each step of which something is."""
        if not self.approximations:
            return "Nothing is approximated."
        return "\n".join(["Approximated:", *(f"  {line}" for line in self.approximations)])


class Speed(NamedTuple):
    """Operations a second in factoring and inverting a matrix, and seconds of a kernel value."""

    operations: float
    value: float

    def factoring(self, n: float) -> float:
        """Seconds of a factor and an inverse of n × n: n³ operations, and passes over n²."""
        return (n**3 + PASSES * n**2) / self.operations


def measured(device: str) -> Speed:
    """How fast it is here, by trying."""
    on_device = device.startswith("cuda")
    n = SIDE_ON_DEVICE if on_device else SIDE
    at = np.linspace(0.0, 1.0, n)[:, None]
    apart = put(np.abs(at - at.T), device)
    xp = namespace(apart)
    factoring, evaluating = [], []
    for _ in range(TIMES):
        start = perf_counter()
        K = xp.exp(-10.0 * apart)
        float(fetch(K[0, 0]))  # a GPU is waited for
        between = perf_counter()
        inverse = factor(K).inverse_triangle()
        float(fetch(inverse[0, 0]))
        evaluating.append(between - start)
        factoring.append(perf_counter() - between)
    once = Speed(1.0, 0.0).factoring(n)
    return Speed(once / min(factoring), min(evaluating) / n**2)


def duration(seconds: float) -> str:
    """In a unit that suits it, without digits that are not known.

    >>> duration(0.04), duration(3.4), duration(95), duration(9000), duration(4e5)
    ('0.1 s', '3 s', '2 min', '2.5 h', '4.6 days')
    """
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36 * 3600 else f"{seconds / 86400:.1f} days"


def size(n: float) -> str:
    """Bytes in a unit that suits them.

    >>> size(3e5), size(4.2e7), size(2.5e9)
    ('1 MB', '42 MB', '2.5 GB')
    """
    return f"{n / 1e9:.1f} GB" if n >= 9.5e8 else f"{max(n / 1e6, 1):.0f} MB"
