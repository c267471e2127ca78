"""Where work runs and how it is shown: one map over joblib, one progress bar.

joblib decides where: in this process, in others, or on the engine of a
surrounding `joblib.parallel_config` (Dask, Ray, …).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import joblib
import numpy as np
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Answer = TypeVar("Answer")

SMALL = 2000  # rows of a matrix that one thread factors in a tenth of a second

RandomState = int | np.integer | np.random.RandomState | np.random.Generator | None


def each(
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    label: str = "",
    verbose: int = 0,
) -> list[Answer]:
    """The function of every item, in order.

    >>> each(abs, [-1, 2])
    [1, 2]
    """
    work = joblib.Parallel(n_jobs=n_jobs if len(items) > 1 else 1, return_as="generator")
    answers = work(joblib.delayed(function)(item) for item in items)
    return list(track(answers, len(items), label, verbose))


def track(items: Iterable[Item], total: int, label: str, verbose: int = 1) -> Iterator[Item]:
    """The items, with a bar on stderr (rate and time left) while they come."""
    with counter(total, label, verbose) as count:
        for item in items:
            yield item
            count()


@contextmanager
def counter(total: int, label: str, verbose: int = 1) -> Iterator[Callable[[], None]]:
    """A bar on stderr (rate and time left) that moves on at every call; silent if not verbose."""
    if not verbose:
        yield lambda: None
        return
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(f"{task.speed:.2g}/s" if task.speed else "")

    # A log file gets one line at the end, not a bar: rich sees that stderr is no terminal.
    with progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        Rate(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def threads_for(n: int) -> threadpool_limits:
    """A context in which BLAS and torch use one thread if the largest matrix, n × n, is small.

    On small matrices threads wait for one another longer than they work, and where other
    processes run beside, up to forty times longer. Large matrices get all the threads there are.
    """
    return threadpool_limits(1 if n < SMALL else None)


def chunks(n: int, bytes_each: float, n_jobs: int | None, budget: float = 256e6) -> list[range]:
    """n problems in consecutive runs that fit the budget and give every worker some.

    >>> chunks(5, bytes_each=1.0, n_jobs=2, budget=2.0)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    most = max(1, int(budget // max(bytes_each, 1.0)))
    workers = max(1, joblib.effective_n_jobs(n_jobs))
    size = min(most, -(-n // workers))
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from whatever scikit-learn's users pass as `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
