"""What emgpr costs beside the linear algebra that it cannot do without.

Each measurement is a function that returns numbers with a name; one that breaks, as internals
change, says so in its place. Times are of the processor, on one core and one thread.
"""

import cProfile
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.data import PROBLEMS, Problem, simulated
from emgpr import EMGPR
from emgpr.covariance import log_likelihood, log_likelihood_in_span, span_of
from emgpr.observations import Observations

Numbers = dict[str, float | str]


def measure(core: int, say: Callable[[str], None]) -> dict[str, Numbers]:
    """Every measurement by its name."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    results = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in MEASUREMENTS.items():
            try:
                results[name] = function()
            except Exception as error:  # whatever it is, the others are still worth having
                results[name] = {"failed": f"{type(error).__name__}: {error}"}
            say(f"{name}: {results[name]}")
    return results


def evaluation(n: int, D: int = 4) -> Numbers:
    """One likelihood and gradient of n readings, over potrf + potri of that size."""
    table, W, noise, K = state(simulated(n // D, D))
    A = np.asfortranarray(np.eye(n) + 0.5)
    return {
        "potrf_+_potri_s": (own := _seconds(lambda: _factor_and_invert(A), 5)),
        "weights_÷_potrf_+_potri": _seconds(lambda: log_likelihood(table, W, noise, K), 5) / own,
        "weights_and_kernels_÷_potrf_+_potri": _seconds(
            lambda: log_likelihood(table, W, noise, K, of_kernels=True), 5
        )
        / own,
    }


def span_against_dense() -> Numbers:
    """Step 2 on 800 sites × 10 outputs: an evaluation in the span, and with all 8000 readings.

    Smoother kernels have fewer columns; these have about as many as an ATMS granule's.
    """
    table, W, noise, K = state(simulated(800, 10))
    span = span_of(table, noise, K, 1)
    if span is None:
        raise RuntimeError("the span was not thought worth it")
    quick = _seconds(lambda: log_likelihood_in_span(span, W, noise), 5)
    dense: list[Any] = []
    slow = _seconds(lambda: dense.append(log_likelihood(table, W, noise, K)), 1)
    value, _ = log_likelihood_in_span(span, W, noise)
    return {
        "columns_of_the_span": float(span.n_columns),
        "dense_s": slow,
        "span_s": quick,
        "times_faster": slow / quick,
        "difference_of_log_likelihoods": abs(value - float(dense[0].value)),
    }


def predictions_by_either() -> Numbers:
    """Weights learned in the span and densely, 400 sites × 5: how far predictions are apart.

    Of searches that go on to the end, and of the search in the span as it stops.
    """
    problem = simulated(400, 5)
    to_the_end = {"CLOSE": 1e-11, "FLAT": 1e-13}
    spans: list[Any] = []

    def watched(*args: Any) -> Any:
        spans.append(span_of(*args))
        return spans[-1]

    def predicted(span: Callable[..., Any] = watched, **settings: float) -> Any:
        model = EMGPR.paper(batch_size=None, max_iter=2000, random_state=0)
        with mock.patch.multiple("emgpr.weights.fit", span_of=span, **settings):
            model.fit(problem.X, problem.Y)
        return model.predict(problem.X_new, return_std=True)

    stopped, _ = predicted()
    mean, _ = predicted(**to_the_end)
    if not any(spans):
        raise RuntimeError("the span was not thought worth it")
    dense, std = predicted(lambda *_: None, **to_the_end)
    return {
        "largest_difference_in_sd": float((np.abs(mean - dense) / std).max()),
        "of_the_default's_stop_(rms)": float(np.sqrt(np.mean(((stopped - dense) / std) ** 2))),
    }


def many_places(places: int = 100_000) -> Numbers:
    """Predictions with standard deviations from 16 neighbours of each output, Jura's D = 3."""
    problem = PROBLEMS["jura"]()
    model = EMGPR.paper(batch_size=None, conditioning=16, random_state=0).fit(problem.X, problem.Y)
    low, high = problem.X.min(axis=0), problem.X.max(axis=0)
    new = np.random.default_rng(0).uniform(low, high, size=(places, 2))
    return {"seconds": _seconds(lambda: model.predict(new, return_std=True), 1)}


def imports() -> Numbers:
    """emgpr's import over scikit-learn's, each in five fresh interpreters.

    `import emgpr` puts its work off until an estimator is asked for, so that is timed too.
    """
    yardstick, usual, bare = (
        "import sklearn.gaussian_process",
        "from emgpr import EMGPR",
        "import emgpr",
    )
    times: dict[str, list[float]] = {yardstick: [], usual: [], bare: []}
    for _ in range(5):
        for statement, seconds in times.items():
            seconds.append(-_children())
            subprocess.run([sys.executable, "-c", statement], check=True)
            seconds[-1] += _children()
    medians = {statement: float(np.median(seconds)) for statement, seconds in times.items()}
    code = f"{usual}; import sys; print(*{{'torch', 'xarray', 'matplotlib'}} & set(sys.modules))"
    heavy = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
    return {
        f"{usual}_÷_sklearn.gaussian_process": medians[usual] / medians[yardstick],
        f"{bare}_÷_sklearn.gaussian_process": medians[bare] / medians[yardstick],
        f"seconds_of_{usual}": medians[usual],
        "torch,_xarray_or_matplotlib_imported": heavy or "none",
    }


def _children() -> float:
    """Processor time of the processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def profile(**settings: Any) -> Numbers:
    """Where a fit of Jura spends its time, and how fast its factors and inverses are made."""
    problem = PROBLEMS["jura"]()

    def fit() -> None:
        EMGPR.paper(random_state=0, **settings).fit(problem.X, problem.Y)

    potrf, potri = Meter(lapack.dpotrf, 1 / 3), Meter(lapack.dpotri, 2 / 3)
    with mock.patch.object(lapack, "dpotrf", potrf), mock.patch.object(lapack, "dpotri", potri):
        total = _seconds(fit, 1)
    seconds, flops = potrf.seconds + potri.seconds, potrf.flops + potri.flops
    A = np.asfortranarray(np.eye(1000) + 0.5)
    profiler = cProfile.Profile()
    profiler.runcall(fit)
    own: dict[str, float] = defaultdict(float)
    for entry in profiler.getstats():
        code = entry.code
        own[_package(code if isinstance(code, str) else code.co_filename)] += entry.inlinetime
    return {
        "fit_s": total,
        "factors_and_inverses_s": seconds,
        "their_Gflop": flops / 1e9,
        "their_Gflop/s": flops / 1e9 / max(seconds, 1e-9),
        "Gflop/s_of_potrf_+_potri_at_n_=_1000": 1 / _seconds(lambda: _factor_and_invert(A), 3),
        "own_time_by_module": ", ".join(
            f"{name} {own[name] / sum(own.values()):.0%}"
            for name in sorted(own, key=lambda name: -own[name])[:6]
        ),
    }


class Meter:
    """A LAPACK function that counts its processor time and its flops, a share of n³."""

    def __init__(self, function: Callable[..., Any], share: float) -> None:
        self.function, self.share = function, share
        self.seconds = self.flops = 0.0

    def __call__(self, a: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        """The function's own answer."""
        start = time.process_time()
        result = self.function(a, *args, **kwargs)
        self.seconds += time.process_time() - start
        self.flops += self.share * len(a) ** 3
        return result


MEASUREMENTS: dict[str, Callable[[], Numbers]] = {
    **{
        f"evaluation of {n} readings": lambda n=n: evaluation(n)  # type: ignore[misc]
        for n in (600, 1000, 2000, 3000)
    },
    "span against dense": span_against_dense,
    "predictions by either": predictions_by_either,
    "100,000 places": many_places,
    "imports": imports,
    "profile of the ensemble": profile,
    "profile of two steps": lambda: profile(batch_size=None),
    "profile of joint": lambda: profile(batch_size=None, refine="joint"),
}


def state(problem: Problem) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray]:
    """A problem's table, and weights, noise and kernels as they are on the way to an optimum."""
    D, rng = problem.Y.shape[1], np.random.default_rng(0)
    W = np.eye(D)[:, :, None] + 0.3 * rng.normal(size=(D, D, 1))
    K = np.stack([RBF(scale)(problem.X) for scale in np.linspace(0.07, 0.28, D)])
    return Observations.from_table(problem.X, problem.Y), W, 0.1 * np.eye(D), K


def _factor_and_invert(A: np.ndarray) -> np.ndarray:
    lower, _ = lapack.dpotrf(A, lower=1)
    inverse, _ = lapack.dpotri(lower, lower=1, overwrite_c=1)
    return inverse


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median processor time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def _package(file: str) -> str:
    """emgpr's module, or whose code it is otherwise."""
    parts = Path(file).parts
    if "emgpr" in parts:
        return ".".join(parts[len(parts) - parts[::-1].index("emgpr") - 1 :]).removesuffix(".py")
    for name in ("numpy", "scipy", "sklearn", "joblib"):
        if name in parts:
            return name
    return "builtins"
