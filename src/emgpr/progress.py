"""Progress on stderr: bars for work of known size, and lines for optimisations.

The number of iterations of an optimisation is not known in advance. It is extrapolated from the
gains of the last iterations, which decrease until they are smaller than a threshold.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")

# Largest and smallest number of gains from which the number of iterations is extrapolated.
MAX_GAINS, MIN_GAINS = 20, 10


def with_progress(
    items: Iterable[Item], total: int, label: str, verbose: int = 1
) -> Iterator[Item]:
    """Yield the items, with a progress bar on stderr that shows the rate and the time left."""
    with progress_counter(total, label, verbose) as count:
        for item in items:
            yield item
            count()


@contextmanager
def progress_counter(total: int, label: str, verbose: int = 1) -> Iterator[Callable[[], None]]:
    """Show a progress bar on stderr if verbose; each call of the yielded function advances it.

    There is no bar if the total is zero.
    """
    if not verbose or not total:
        yield lambda: None
        return
    from rich import progress
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(f"{task.speed:.2g}/s" if task.speed else "")

    class TimeLeft(progress.ProgressColumn):
        max_refresh = 0.5

        def render(self, task: progress.Task) -> Text:
            left = task.time_remaining
            return Text("" if not left else f"about {format_duration(left)} left")

    columns = [progress.BarColumn(), progress.MofNCompleteColumn(), Rate(), TimeLeft()]
    with _display(*columns) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def iteration_progress(
    label: str, max_iter: int, threshold: float, verbose: int = 1
) -> Iterator[Callable[[Sequence[float]], None]]:
    """Show the iteration, the gain and the time left of an optimisation on stderr if verbose.

    The yielded function is called after each iteration with all values reached so far, the first of
    which is the value at the start. The optimisation ends if the gain of an iteration is less than
    `threshold`, or after `max_iter` iterations.
    """
    if not verbose:
        yield lambda values: None
        return
    with _display() as display:
        task, start, first = display.add_task(label, total=None), perf_counter(), [0]

        def show(values: Sequence[float]) -> None:
            n = len(values) - 1
            first[0] = first[0] or n  # more than 1 if the optimisation was resumed
            seconds = (perf_counter() - start) / (n - first[0] + 1)
            gains = np.diff(values[-MAX_GAINS - 1 :])
            left = describe_time_left(gains.tolist(), threshold, max_iter - n, seconds)
            text = f"{label}, iteration {n}, gain {gains[-1]:.2g}, {left}"
            display.update(task, description=text)

        yield show


def describe_time_left(
    gains: Sequence[float], threshold: float, max_left: int, seconds: float
) -> str:
    """Return the time until gains are below the threshold, at most that of `max_left` iterations.

    >>> halved = [0.5**i for i in range(10)]
    >>> describe_time_left(halved, 0.001 * halved[-1], 100, seconds=2.0)  # 10 more iterations
    'about 20 s left'
    >>> describe_time_left(halved[:3], 0.001, 100, seconds=2.0)  # too few
    'at most 3 min left'
    """
    left = _iterations_left(np.asarray(gains), threshold)
    if left is None or left >= max_left:
        return f"at most {format_duration(max_left * seconds)} left"
    return f"about {format_duration(left * seconds)} left"


def _iterations_left(gains: np.ndarray, threshold: float) -> float | None:
    """Extrapolate the decrease of the gains to the threshold; None if they do not decrease."""
    if len(gains) < MIN_GAINS or gains.min() <= 0:
        return None
    rate, level = np.polyfit(np.arange(1 - len(gains), 1), np.log(gains), 1)
    return None if rate >= 0 else max(1.0, float((np.log(threshold) - level) / rate))


def format_duration(seconds: float) -> str:
    """Return a duration as text in a suitable unit, with few digits.

    >>> [format_duration(seconds) for seconds in (0.04, 3.4, 95, 9000, 4e5)]
    ['0.1 s', '3 s', '2 min', '2.5 h', '4.6 days']
    """
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36 * 3600 else f"{seconds / 86400:.1f} days"


def _display(*columns: Any) -> Any:
    """Return a display of a description and columns on stderr; a file has only its last state."""
    from rich import progress
    from rich.console import Console

    text = progress.TextColumn("{task.description}", markup=False)
    return progress.Progress(text, *columns, console=Console(stderr=True))
