"""Step 1 by stochastic variational inference, at a cost per iteration independent of n.

In every iteration, a random batch of readings gives estimates of the bound of `variational_bound`
and of its gradient. The hyper-parameters move along the gradient (Adam, Kingma & Ba 2015), and the
distribution q(u) of the signal at the inducing points along the natural gradient. Both steps become
shorter. The search ends if the means of the log hyper-parameters over two successive windows of
iterations agree; the last of these means is the result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.base import BaseLearner, Evaluations, Latent, Work
from emgpr.latents.inducing import inducing_points
from emgpr.latents.inducing_sums import PartTask, combine, factorise_inner, likelihood_sums
from emgpr.latents.maximum_likelihood import (
    search_work,
    split_signal_kernel,
)
from emgpr.latents.residual_covariance import PenalisedResidual
from emgpr.latents.search_end import describe_end, white_noise_log_likelihood
from emgpr.latents.search_space import SearchSpace, SiteDistances, search_space
from emgpr.latents.sparse import SITES_PER_BLOCK
from emgpr.latents.starts import find_starting_points
from emgpr.latents.variational_bound import BatchBound, Sites, batch_bound, whitened_posterior
from emgpr.observations import Observations
from emgpr.optimize import LBFGSMemory, OptimizeResult

Array = np.ndarray

N_STARTS = 5  # number of starting values for length-scales
START_ITERATIONS = 10  # maximum number of iterations on the subsample
LEARNING_RATE, DECAY = 0.1, 50.0  # of Adam: first step of a log parameter; iterations to halve it
FIRST_DECAY, SECOND_DECAY = 0.9, 0.99  # weights of the past in the moments of the gradient
POWER = 0.8  # the length of step t of the natural gradient is t^-POWER, or 1 without mini-batches
FIRST_ITERATIONS = 10  # iterations before the hyper-parameters change
WINDOW = 50  # iterations over which hyper-parameters are averaged
# The means of a log parameter in successive windows agree if they differ by at most TOLERANCE, or
# if the difference, multiplied by the mean gradient, is a gain of at most MIN_GAIN in the bound.
TOLERANCE, MIN_GAIN = 0.02, 0.1
MAX_EVALUATED = 20_000  # readings for which the final bound is computed
# Values for planning, fitted to measured times: the number of iterations, of floating-point
# operations for each reading and pair of inducing points, of factorisations of matrices of the size
# of K_mm, and of arrays with a row for each reading in a batch and a column for each point.
ITERATIONS, OPERATIONS, FACTORISATIONS, ARRAYS = 150, 12.0, 6, 10.0


@dataclass
class SVI(BaseLearner):
    """Learner that maximises a lower bound on the log-likelihood, one mini-batch at a time.

    The bound is that of `VFE`. The inducing points are sites chosen using k-means++, and are not
    optimised.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 60, 400)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> latent = SVI(n_inducing=80, batch_size=100).learn(x, y, RBF())
    >>> 0.8 < latent.noise**0.5 / 0.1 < 1.25, latent.message
    (True, '')
    """

    n_inducing: int = 300  # maximum number of inducing points
    batch_size: int = 1000  # number of readings in a mini-batch
    n_epochs: int = 400  # maximum number of passes over the readings
    random_state: int = 0

    min_settings: ClassVar[Mapping[str, int]] = {"random_state": 0}

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to readings y at sites x."""
        self.check_settings()
        signal, white = split_signal_kernel(kernel)
        rng = np.random.default_rng(self.random_state)
        search = search_space(signal, white, SiteDistances(x), N_STARTS, rng)
        table, points = Observations.of_one_output(x, y), inducing_points(x, self.n_inducing)
        starts = find_starting_points(
            table, signal, search, START_ITERATIONS, weak_prior=False, device="cpu"
        )
        evaluated = np.sort(rng.permutation(len(x))[:MAX_EVALUATED])
        problem = _Problem(signal, points, x, y, search, self.batch_size, self.n_epochs)
        ends = [_maximise(problem, start, evaluated, rng) for start in starts.x]
        end = min(ends, key=lambda end: end.value[0])
        only_noise = -float(end.value[0]) < white_noise_log_likelihood(y[evaluated], search)
        return Latent(
            signal.clone_with_theta(end.x[0, :-1]),
            float(np.exp(end.x[0, -1])),
            -float(end.value[0]),
            search.noise_bounds,
            int(end.n_iter[0]),
            describe_end(end, search, self.n_epochs, only_noise=only_noise, setting="n_epochs"),
            len(evaluated),
        )

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        m, size = min(n, self.n_inducing), min(n, self.batch_size)
        n_evaluated = min(n, MAX_EVALUATED)
        times = min(ITERATIONS, self.n_epochs * -(-n // size))
        start, iterations = search_work(
            n,
            times,
            likelihoods=FACTORISATIONS,
            n_readings=m,
            kernel_values=float(size * m),
            operations=OPERATIONS * size * m**2,
            calls=2.0,
        )
        last = Evaluations(
            1, kernel_values=float(n_evaluated * m), operations=4.0 * n_evaluated * m**2
        )
        entries = ARRAYS * max(size, min(n, SITES_PER_BLOCK)) * m
        parts = (start, iterations, last)
        return Work("svi, mini-batches", m, 1, times, parts, ((m, 1),), entries)

    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact.

        >>> print(SVI(n_inducing=200, batch_size=100).describe_approximation(900))
        a lower bound from 200 inducing points on the likelihood of 900 readings, in batches of 100
        """
        if n <= min(self.n_inducing, self.batch_size):
            return ""
        batches = f", in batches of {self.batch_size}" if n > self.batch_size else ""
        points = f"a lower bound from {min(n, self.n_inducing)} inducing points"
        return f"{points} on the likelihood of {n} readings{batches}"


@dataclass(frozen=True)
class _Problem:
    """The readings of an output, the inducing points and the settings of the search."""

    kernel: Kernel
    points: Float[Array, "m P"]
    x: Float[Array, "n P"]
    y: Float[Array, " n"]
    search: SearchSpace
    batch_size: int
    n_epochs: int

    def bound(
        self, params: Float[Array, " p"], sites: Sites, batch: Int[Array, " c"]
    ) -> BatchBound | None:
        """Return estimates from a batch; None if the bound is not defined."""
        inner = factorise_inner(self.kernel, params, self.points)
        q = None if inner is None else whitened_posterior(inner, sites)
        if inner is None or q is None:
            return None
        found = batch_bound(inner, q, self.x[batch], self.y[batch], len(self.y))
        return found if np.isfinite(found.gradient).all() else None

    def highest_bound(self, params: Float[Array, " p"], chosen: Int[Array, " c"]) -> float:
        """Return the bound on the log-likelihood of the chosen readings for the best q(u)."""
        inner = factorise_inner(self.kernel, params, self.points)
        if inner is None:
            return -np.inf
        blocks = np.array_split(chosen, -(-len(chosen) // SITES_PER_BLOCK))
        part = [(self.x[block], self.y[block]) for block in blocks]
        combined = combine(likelihood_sums(PartTask(inner.points, PenalisedResidual, part)))
        return -np.inf if combined is None else combined.value


class Adam(NamedTuple):
    """Moments of the gradient after a number of steps.

    >>> step, _ = Adam(np.zeros(1), np.zeros(1)).step(np.array([1e6]))
    >>> step.round(3)
    array([0.098])
    """

    first: Float[Array, " p"]
    second: Float[Array, " p"]
    n_steps: int = 0

    def step(self, gradient: Float[Array, " p"]) -> tuple[Float[Array, " p"], "Adam"]:
        """Return the next step of an ascent, and the moments after it."""
        t = self.n_steps + 1
        first = FIRST_DECAY * self.first + (1 - FIRST_DECAY) * gradient
        second = SECOND_DECAY * self.second + (1 - SECOND_DECAY) * gradient**2
        scale = np.sqrt(second / (1 - SECOND_DECAY**t))
        direction = np.divide(first, scale, out=np.zeros_like(first), where=scale > 0)
        rate = LEARNING_RATE / (1 + t / DECAY) / (1 - FIRST_DECAY**t)
        return rate * direction, Adam(first, second, t)


def random_batches(n: int, size: int, rng: np.random.Generator) -> Iterator[Int[Array, " c"]]:
    """Yield batches of the numbers 0, …, n − 1, each of which occurs once in every epoch.

    >>> batches = random_batches(4, 2, np.random.default_rng(0))
    >>> sorted([*next(batches), *next(batches)])
    [np.int64(0), np.int64(1), np.int64(2), np.int64(3)]
    """
    if size >= n:
        while True:
            yield np.arange(n)
    order = np.empty(0, int)
    while True:
        if len(order) < size:
            order = np.concatenate([order, rng.permutation(n)])
        yield order[:size]
        order = order[size:]


def _maximise(
    problem: _Problem,
    start: Float[Array, " p"],
    evaluated: Int[Array, " c"],
    rng: np.random.Generator,
) -> OptimizeResult:
    """Maximise the bound from one starting point, and compute it for the evaluated readings."""
    n, bounds = len(problem.y), problem.search.bounds
    size = min(n, problem.batch_size)
    n_first = FIRST_ITERATIONS if size < n else 1
    max_steps = problem.n_epochs * -(-n // size)
    params, sites, adam = start, Sites.empty(len(problem.points)), Adam(0 * start, 0 * start)
    path, gradients = [start], [0 * start]
    converged = failed = False
    for t, batch in zip(range(n_first + max_steps), random_batches(n, size, rng), strict=False):
        found = problem.bound(params, sites, batch)
        if found is None:
            failed, params, adam = True, path[0], adam._replace(first=0 * start)
            continue
        # The gradient is that for q(u) before this batch, which would otherwise fit the batch.
        sites = sites.towards(found.sites, (1 + t) ** -POWER if size < n else 1.0)
        if t >= n_first:
            step, adam = adam.step(found.gradient)
            params = np.clip(params + step, *bounds.T)
            path.append(params)
            gradients.append(found.gradient)
            converged = adam.n_steps % WINDOW == 0 and _has_converged(path, gradients)
            if converged:
                break
    return _result(problem, path, evaluated, converged=converged, failed=failed)


def _has_converged(path: list[Float[Array, " p"]], gradients: list[Float[Array, " p"]]) -> bool:
    """Tell whether the means of all parameters in the last two windows agree."""
    if len(path) <= 2 * WINDOW:
        return False
    change = np.mean(path[-WINDOW:], axis=0) - np.mean(path[-2 * WINDOW : -WINDOW], axis=0)
    gain = change * np.mean(gradients[-WINDOW:], axis=0)
    return bool(np.all((np.abs(change) <= TOLERANCE) | (np.abs(gain) <= MIN_GAIN)))


def _result(
    problem: _Problem,
    path: list[Float[Array, " p"]],
    evaluated: Int[Array, " c"],
    *,
    converged: bool,
    failed: bool,
) -> OptimizeResult:
    """Return the mean of the last window, moved to a bound if it is close to the bound."""
    low, high = problem.search.bounds.T
    mean = np.mean(path[-WINDOW:], axis=0)
    mean = np.where(mean < low + TOLERANCE, low, np.where(mean > high - TOLERANCE, high, mean))
    none = np.zeros((1, 0, len(mean)))
    return OptimizeResult(
        x=mean[None],
        value=np.array([-problem.highest_bound(mean, evaluated)]),
        converged=np.array([converged]),
        at_bound=((mean == low) | (mean == high))[None],
        n_iter=np.array([len(path) - 1]),
        memory=LBFGSMemory(none, none, np.zeros(1, int)),
        nonfinite=np.array([failed]),
    )
