"""Where work runs and how it is shown: one map over joblib, one progress bar.

joblib decides where: in this process, in others, or on the engine of a
surrounding `joblib.parallel_config` (Dask, Ray, …). A Dask cluster that joblib
names is asked directly: joblib waits for ever for a task whose workers died.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from emgpr.arrays import NumericalError
from emgpr.checkpoint import NOTHING_KEPT, Ledger, digest

Item = TypeVar("Item")
Answer = TypeVar("Answer")

SMALL = 2000  # rows of a matrix that one thread factors in a tenth of a second

RandomState = int | np.integer | np.random.RandomState | np.random.Generator | None


@dataclass(frozen=True)
class Failed:
    """What stands for the answer of an item that has none, after it was tried again."""

    why: Exception


def each(
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    label: str = "",
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[Answer]:
    """The function of every item, in order; from the ledger where it is finished.

    An item for which numbers or memory fail, or whose process is killed, is tried once more.

    >>> each(abs, [-1, 2])
    [1, 2]
    """
    answers = each_if_possible(
        function, items, n_jobs=n_jobs, label=label, verbose=verbose, ledger=ledger
    )
    done: list[Answer] = []
    for answer in answers:
        if isinstance(answer, Failed):
            raise answer.why
        done.append(answer)
    return done


def each_if_possible(
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    label: str = "",
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[Answer | Failed]:
    """As `each`, with `Failed` in the place of what failed again."""
    keys = [] if ledger.path is None else [f"{label} {digest(item)}" for item in items]
    found = {i: piece for i, key in enumerate(keys) if (piece := ledger.find(key)) is not None}
    answers: dict[int, Any] = dict(found)
    with counter(len(items), label, verbose) as count:
        for _ in found:
            count()
        for alone in (False, False, True):
            todo = [i for i in range(len(items)) if i not in answers or _again(answers[i], alone)]
            # One at a time there is memory for it, if ever, and we know who is killed.
            for run in [[i] for i in todo] if alone else [todo] if todo else []:
                again = any(i in answers for i in run)
                worked = _answers(function, [items[i] for i in run], n_jobs, guarded=again)
                with closing(worked):
                    for i, answer in zip(run, worked, strict=True):
                        answers[i] = answer
                        if not isinstance(answer, Failed):
                            count()
                            if keys:
                                ledger.keep(keys[i], answer)
    ledger.settle()
    return [answers[i] for i in range(len(items))]


def _again(answer: Any, alone: bool) -> bool:
    """Whether to try again; alone, only what may have failed because of what ran beside it."""
    if not isinstance(answer, Failed):
        return False
    if _is_given_up(answer.why):  # which Dask tried on several workers
        return alone
    return not alone or isinstance(answer.why, MemoryError | BrokenProcessPool)


def _is_given_up(error: Exception) -> bool:
    """Whether Dask says that every worker died that it gave a task to."""
    return type(error).__name__ == "KilledWorker"


def _answers(
    function: Callable[[Item], Answer], items: Sequence[Item], n_jobs: int | None, *, guarded: bool
) -> Generator[Answer | Failed, None, None]:
    """The answers in order; `guarded`, a single item too is left to another process, if any."""
    if n_jobs == 1 or (len(items) == 1 and not guarded):
        yield from (_tried(function, item) for item in items)
        return
    backend, _ = get_active_backend()
    if _is_cluster(backend):
        yield from _of_cluster(backend, function, items)
        return
    jobs = (joblib.delayed(_tried)(function, item) for item in items)
    if not getattr(backend, "supports_return_generator", True):  # Ray's: all at the end
        yield from joblib.Parallel(n_jobs=n_jobs)(jobs)
        return
    done = 0
    try:
        with closing(joblib.Parallel(n_jobs=n_jobs, return_as="generator")(jobs)) as answers:
            for answer in answers:
                done += 1
                yield answer
    except BrokenProcessPool as error:
        yield from [Failed(error)] * (len(items) - done)


def _is_cluster(backend: Any) -> bool:
    """Whether joblib was told to use Dask; not within a task of Dask's, which has its one place."""
    if type(backend).__module__ != "joblib._dask":
        return False
    try:
        import_module("distributed").get_worker()
    except ValueError:
        return True
    return False


def _of_cluster(
    backend: Any, function: Callable[[Item], Answer], items: Sequence[Item]
) -> Generator[Answer | Failed, None, None]:
    """As `_answers`, from the workers of Dask; what dies with a worker is given to another."""
    client = backend.client
    # All of a job is in its task: what is scattered beside it would be lost with its worker.
    jobs = [
        client.submit(
            partial(_tried_elsewhere, function, item), pure=False, **backend.submit_kwargs
        )
        for item in items
    ]
    try:
        for job in jobs:
            try:
                answer = job.result()
            except Exception as error:
                if not _is_given_up(error):
                    raise
                answer = Failed(error)
            yield answer
    finally:
        client.cancel([job for job in jobs if not job.done()])
        for job in jobs:  # or the cluster keeps its answer for as long as a traceback names it
            job.release()


def _tried_elsewhere(function: Callable[[Item], Answer], item: Item) -> Answer | Failed:
    """As `_tried`, with a thread for each place that a worker has."""
    with threads_for(0):
        return _tried(function, item)


def _tried(function: Callable[[Item], Answer], item: Item) -> Answer | Failed:
    """The answer, or why numbers or memory failed; other errors would come again, and pass."""
    try:
        return function(item)
    except (MemoryError, ArithmeticError, np.linalg.LinAlgError, NumericalError) as error:
        return Failed(error.with_traceback(None))
    except RuntimeError as error:
        if type(error).__name__ == "OutOfMemoryError":  # of a GPU, as torch says
            return Failed(MemoryError(str(error)))
        raise


def end_workers(n_jobs: int | None) -> None:
    """Stop the processes that joblib keeps for the next call, if there were any; no cluster's."""
    backend, _ = get_active_backend()
    if isinstance(backend, BACKENDS["loky"]) and joblib.effective_n_jobs(n_jobs) > 1:
        get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)


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


@contextmanager
def threads_for(n: int) -> Iterator[None]:
    """A context in which BLAS and torch use one thread if the largest matrix, n × n, is small.

    On small matrices threads wait for one another longer than they work, and where other
    processes run beside, up to forty times longer. Large matrices get all the threads there are.
    """
    with _ONE_THREAD if n < SMALL else nullcontext():
        yield


class _OneThread:
    """The limit is of the process: who comes first sets it, who leaves last takes it away."""

    def __init__(self) -> None:
        self._lock, self._within = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._limits = _pools("torch" in sys.modules).limit(limits=1)
            self._within += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limits.restore_original_limits()


@cache
def _pools(with_torch: bool) -> ThreadpoolController:
    """Who has threads in this process. To look takes as long as a small fit, and torch may come."""
    return ThreadpoolController()


_ONE_THREAD = _OneThread()
_pools("torch" in sys.modules)  # now, not in the first fit


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
