"""The costs of emgpr relative to the linear algebra that it requires.

Each measurement is a function that returns a dict of numbers. If a measurement fails because
internal functions have changed, the error is stored instead. Times are processor times of one
thread on one core.
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
from emgpr.covariance import log_likelihood, low_rank_log_likelihood, low_rank_table
from emgpr.observations import Observations

Numbers = dict[str, float | str]

# With these constants in emgpr.weights.fit, an optimisation runs until full convergence.
CONVERGED = {"EXPECTED_GAIN": 1e-11, "EXPECTED_GAIN_LARGE_TABLE": 1e-11, "MIN_GAIN": 1e-13}


def measure(core: int, log: Callable[[str], None]) -> dict[str, Numbers]:
    """Run all measurements, and return a dict of their results."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    results = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in MEASUREMENTS.items():
            try:
                results[name] = function()
            except Exception as error:  # The other measurements are still useful.
                results[name] = {"failed": f"{type(error).__name__}: {error}"}
            log(f"{name}: {results[name]}")
    return results


def evaluation(n: int, D: int = 4) -> Numbers:
    """Measure a likelihood evaluation with its gradient for n readings.

    Times are relative to LAPACK's Cholesky factorisation and inverse (potrf + potri).
    """
    table, W, noise, K = parameters(simulated(n // D, D))
    A = np.asfortranarray(np.eye(n) + 0.5)
    return {
        "potrf_+_potri_s": (base := _seconds(lambda: _factor_and_invert(A), 5)),
        "weights_÷_potrf_+_potri": _seconds(lambda: log_likelihood(table, W, noise, K), 5) / base,
        "weights_and_kernels_÷_potrf_+_potri": _seconds(
            lambda: log_likelihood(table, W, noise, K, of_kernels=True), 5
        )
        / base,
    }


def low_rank_against_dense(N: int = 800, D: int = 10) -> Numbers:
    """Compare evaluations of the step-2 likelihood in low-rank and dense form, for 8000 readings.

    The kernels are about as smooth as those fitted to an ATMS granule, so that the low-rank factor
    has about as many columns.
    """
    table, W, noise, K = parameters(simulated(N, D))
    low_rank = low_rank_table(table, noise, K, 1)
    if low_rank is None:
        raise RuntimeError("the low-rank form was not used")
    quick = _seconds(lambda: low_rank_log_likelihood(low_rank, W, noise), 5)
    dense: list[Any] = []
    slow = _seconds(lambda: dense.append(log_likelihood(table, W, noise, K)), 1)
    value, _ = low_rank_log_likelihood(low_rank, W, noise)
    return {
        "columns_of_the_low-rank_factor": float(low_rank.n_columns),
        "dense_s": slow,
        "low-rank_s": quick,
        "times_faster": slow / quick,
        "difference_of_log_likelihoods": abs(value - float(dense[0].value)),
    }


def predictions_after_either(N: int = 400, D: int = 5) -> Numbers:
    """Compare predictions with weights fitted in low-rank form and in dense form.

    Both optimisations run until full convergence. The low-rank form is also run with the default
    stopping rule.
    """
    problem = simulated(N, D)
    tables: list[Any] = []

    def recorded(*args: Any) -> Any:
        tables.append(low_rank_table(*args))
        return tables[-1]

    def predict(form: Callable[..., Any] = recorded, **settings: float) -> Any:
        model = EMGPR.paper(batch_size=None, max_iter=2000, random_state=0)
        with mock.patch.multiple("emgpr.weights.fit", low_rank_table=form, **settings):
            model.fit(problem.X, problem.Y)
        return model.predict(problem.X_new, return_std=True)

    stopped, _ = predict()
    mean, _ = predict(**CONVERGED)
    if not any(table is not None for table in tables):
        raise RuntimeError("the low-rank form was not used")
    dense, std = predict(lambda *_: None, **CONVERGED)
    return {
        "largest_difference_in_sd": float((np.abs(mean - dense) / std).max()),
        "with_the_default_stopping_rule_(rms)": float(
            np.sqrt(np.mean(((stopped - dense) / std) ** 2))
        ),
    }


def many_locations(M: int = 100_000) -> Numbers:
    """Measure predictions and standard deviations from 16 neighbours, for the Jura data."""
    problem = PROBLEMS["jura"]()
    model = EMGPR.paper(batch_size=None, conditioning=16, random_state=0).fit(problem.X, problem.Y)
    low, high = problem.X.min(axis=0), problem.X.max(axis=0)
    new = np.random.default_rng(0).uniform(low, high, size=(M, 2))
    return {"seconds": _seconds(lambda: model.predict(new, return_std=True), 1)}


def imports() -> Numbers:
    """Measure the import time of emgpr relative to scikit-learn, in five new interpreters each.

    `import emgpr` loads few modules until an estimator is used, so importing an estimator is timed
    as well.
    """
    reference, usual, bare = (
        "import sklearn.gaussian_process",
        "from emgpr import EMGPR",
        "import emgpr",
    )
    times: dict[str, list[float]] = {reference: [], usual: [], bare: []}
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
        f"{usual}_÷_sklearn.gaussian_process": medians[usual] / medians[reference],
        f"{bare}_÷_sklearn.gaussian_process": medians[bare] / medians[reference],
        f"seconds_of_{usual}": medians[usual],
        "torch,_xarray_or_matplotlib_imported": heavy or "none",
    }


def _children() -> float:
    """Return the processor time of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def profile(**settings: Any) -> Numbers:
    """Profile a fit to the Jura data, and measure the speed of its Cholesky factorisations."""
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
    """A LAPACK function that records its processor time and operation count, `share` × n³."""

    def __init__(self, function: Callable[..., Any], share: float) -> None:
        self.function, self.share = function, share
        self.seconds = self.flops = 0.0

    def __call__(self, a: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        """Call the LAPACK function."""
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
    "low-rank against dense likelihood": low_rank_against_dense,
    "predictions after low-rank and dense fits": predictions_after_either,
    "predictions at 100,000 locations": many_locations,
    "imports": imports,
    "profile of the ensemble": profile,
    "profile of two steps": lambda: profile(batch_size=None),
    "profile of joint": lambda: profile(batch_size=None, refine="joint"),
}


def parameters(problem: Problem) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray]:
    """Return the table of a problem, with typical weights, noise and kernel matrices."""
    D, rng = problem.Y.shape[1], np.random.default_rng(0)
    W = np.eye(D)[:, :, None] + 0.3 * rng.normal(size=(D, D, 1))
    K = np.stack([RBF(scale)(problem.X) for scale in np.linspace(0.07, 0.28, D)])
    return Observations.from_table(problem.X, problem.Y), W, 0.1 * np.eye(D), K


def _factor_and_invert(A: np.ndarray) -> np.ndarray:
    lower, _ = lapack.dpotrf(A, lower=1)
    inverse, _ = lapack.dpotri(lower, lower=1, overwrite_c=1)
    return inverse


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median processor time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def _package(file: str) -> str:
    """Return the emgpr module or the library to which a file belongs."""
    parts = Path(file).parts
    if "emgpr" in parts:
        return ".".join(parts[len(parts) - parts[::-1].index("emgpr") - 1 :]).removesuffix(".py")
    for name in ("numpy", "scipy", "sklearn", "joblib"):
        if name in parts:
            return name
    return "builtins"
