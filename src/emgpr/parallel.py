"""Parallel execution with joblib.

The work runs in this process, in other processes, or on the backend chosen by the user with
`joblib.parallel_config` (such as Dask or Ray). Work for a Dask cluster is submitted without joblib,
which would wait forever for the results of workers that died.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from numbers import Real
from threading import local
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.utils import check_random_state

from emgpr.arrays import NumericalError, allowed_threads, limit_threads
from emgpr.checkpoint import NO_CHECKPOINT, Checkpoint, digest
from emgpr.progress import progress_counter

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREAD = local()  # its attribute `single` is True in threads that must not start others

RandomState = int | np.integer | np.random.RandomState | np.random.Generator | None


@dataclass(frozen=True)
class Execution:
    """How a computation runs: its device, number of processes, progress bars and checkpoint.

    On any device except the CPU, a single process is used, whatever `n_jobs` is. Finished pieces of
    work are stored in the checkpoint, if it has a file.
    """

    device: str = "cpu"
    n_jobs: int | None = None
    verbose: int = 0
    checkpoint: Checkpoint = NO_CHECKPOINT

    @property
    def processes(self) -> int | None:
        """Number of processes, in the form of joblib's `n_jobs`."""
        return self.n_jobs if self.device == "cpu" else 1

    def quiet(self) -> "Execution":
        """Return the same settings without progress bars."""
        return replace(self, verbose=0)

    def serial(self) -> "Execution":
        """Return the same settings for one process, without progress bars."""
        return replace(self, n_jobs=1, verbose=0)


def check_verbose(verbose: Any) -> int:
    """Return `verbose` as an integer; raise ValueError unless it is a number of at least 0.

    >>> check_verbose(True)
    1
    """
    if not isinstance(verbose, Real) or not 0 <= float(verbose) < np.inf:
        raise ValueError(f"verbose={verbose!r}; expected 0, or 1 to show progress.")
    return int(float(verbose))


DEFAULT_EXECUTION = Execution()


@dataclass(frozen=True)
class Failure:
    """Replacement for the result of an item that failed."""

    error: Exception


def parallel_map(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    execution: Execution = DEFAULT_EXECUTION,
    *,
    label: str = "",
) -> list[Result]:
    """Apply a function to every item, and return the results in order.

    Results that are stored in the checkpoint are not computed again. An item is tried again
    if it fails for numerical reasons or lack of memory, or if its process is killed. If it still
    fails, its error is raised.

    >>> parallel_map(abs, [-1, 2])
    [1, 2]
    """
    results: list[Result] = []
    for result in parallel_map_or_failure(function, items, execution, label=label):
        if isinstance(result, Failure):
            raise result.error
        results.append(result)
    return results


def parallel_map_or_failure(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    execution: Execution = DEFAULT_EXECUTION,
    *,
    label: str = "",
) -> list[Result | Failure]:
    """Apply a function as `parallel_map` does, but return a `Failure` for each failed item."""
    checkpoint = execution.checkpoint
    stored = checkpoint.path is not None
    keys = [f"{label} {digest(item)}" for item in items] if stored else []
    found = {i: piece for i, key in enumerate(keys) if (piece := checkpoint.find(key)) is not None}
    results: dict[int, Any] = dict(found)
    with progress_counter(len(items), label, execution.verbose) as count:
        for _ in found:
            count()
        for one_by_one in (False, False, True):
            todo = [
                i
                for i in range(len(items))
                if i not in results or _try_again(results[i], one_by_one)
            ]
            # An item that runs alone has the most memory, and no other item can kill its process.
            for run in [[i] for i in todo] if one_by_one else [todo] if todo else []:
                isolated = any(i in results for i in run)
                batch = [items[i] for i in run]
                with closing(_run(function, batch, execution.processes, isolated=isolated)) as work:
                    for i, result in zip(run, work, strict=True):
                        results[i] = result
                        if not isinstance(result, Failure):
                            count()
                            if stored:
                                checkpoint.keep(keys[i], result)
    if stored:
        checkpoint.flush()
    return [results[i] for i in range(len(items))]


def thread_map(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results of a function for every item, in order, computed in threads.

    There are as many threads as BLAS would use, and BLAS uses one thread in each of them. If many
    small arrays are processed, this takes less time than several threads for each operation. There
    are no threads within threads, nor in the workers of a cluster, where each has one.

    >>> list(thread_map(abs, [-1, 2]))
    [1, 2]
    """
    n = 1 if getattr(_THREAD, "single", False) else min(len(items), allowed_threads())
    with limit_threads(0):
        if n <= 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(n, initializer=setattr, initargs=(_THREAD, "single", True)) as pool:
            yield from pool.map(function, items)


def uses_workers(execution: Execution) -> bool:
    """Tell whether `parallel_map` would run several items in other processes.

    >>> uses_workers(Execution(n_jobs=1))
    False
    """
    if execution.processes == 1:
        return False
    backend, _ = get_active_backend()
    if type(backend).__module__ == "joblib._dask":
        return _is_dask_cluster(backend)
    return bool(joblib.effective_n_jobs(execution.processes) > 1)


def _try_again(result: Any, one_by_one: bool) -> bool:
    """Tell whether an item failed and should run again; in the last round, `one_by_one` is True."""
    if not isinstance(result, Failure):
        return False
    if _is_killed_worker(result.error):  # Dask has already tried several workers
        return one_by_one
    return not one_by_one or isinstance(result.error, MemoryError | BrokenProcessPool)


def _is_killed_worker(error: Exception) -> bool:
    """Tell whether an error means that every Dask worker to which an item was assigned died."""
    return type(error).__name__ == "KilledWorker"


def _run(
    function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None, *, isolated: bool
) -> Generator[Result | Failure, None, None]:
    """Yield the results in order; with `isolated`, even a single item runs in another process."""
    if n_jobs == 1 or (len(items) == 1 and not isolated):
        yield from (_attempt(function, item) for item in items)
        return
    backend, _ = get_active_backend()
    if _is_dask_cluster(backend):
        yield from _run_on_cluster(backend, function, items)
        return
    jobs = (joblib.delayed(_attempt)(function, item) for item in items)
    if not getattr(backend, "supports_return_generator", True):  # such as Ray's backend
        yield from joblib.Parallel(n_jobs=n_jobs)(jobs)
        return
    done = 0
    try:
        with closing(joblib.Parallel(n_jobs=n_jobs, return_as="generator")(jobs)) as results:
            for result in results:
                done += 1
                yield result
    except BrokenProcessPool as error:
        yield from [Failure(error)] * (len(items) - done)


def _is_dask_cluster(backend: Any) -> bool:
    """Tell whether joblib uses Dask and this process is not itself a Dask worker."""
    if type(backend).__module__ != "joblib._dask":
        return False
    try:
        import_module("distributed").get_worker()
    except ValueError:
        return True
    return False


def _run_on_cluster(
    backend: Any, function: Callable[[Item], Result], items: Sequence[Item]
) -> Generator[Result | Failure, None, None]:
    """Run the items on Dask workers. If a worker dies, Dask repeats its items on another one."""
    client = backend.client
    # Each job contains its data, because data scattered separately would be lost with a worker.
    jobs = [
        client.submit(
            partial(_attempt_with_one_thread, function, item), pure=False, **backend.submit_kwargs
        )
        for item in items
    ]
    try:
        for job in jobs:
            try:
                result = job.result()
            except Exception as error:
                if not _is_killed_worker(error):
                    raise
                result = Failure(error)
            yield result
    finally:
        client.cancel([job for job in jobs if not job.done()])
        for job in jobs:  # otherwise a traceback would keep the results on the cluster
            job.release()


def _attempt_with_one_thread(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    """Call `_attempt` with one thread, because a worker may run several items concurrently."""
    before, _THREAD.single = getattr(_THREAD, "single", False), True
    try:
        with limit_threads(0):
            return _attempt(function, item)
    finally:
        _THREAD.single = before


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    """Return the result, or a `Failure` if there was a numerical error or too little memory."""
    try:
        return function(item)
    except (MemoryError, ArithmeticError, np.linalg.LinAlgError, NumericalError) as error:
        return Failure(error.with_traceback(None))
    except RuntimeError as error:
        if type(error).__name__ == "OutOfMemoryError":  # raised by torch on a GPU
            return Failure(MemoryError(str(error)))
        raise


def stop_workers(n_jobs: int | None) -> None:
    """Stop the local worker processes that joblib keeps for later calls."""
    backend, _ = get_active_backend()
    if isinstance(backend, BACKENDS["loky"]) and joblib.effective_n_jobs(n_jobs) > 1:
        get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for any `random_state` that scikit-learn accepts."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
