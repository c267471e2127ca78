"""Step 2: maximum-likelihood estimates of the weights of all ensemble members (eq. 7)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import chunk_bytes, chunks, to_device_of, to_numpy
from emgpr.covariance import (
    LowRankTable,
    log_likelihood,
    low_rank_log_likelihood,
    low_rank_table,
)
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.optimize import Objective, ObjectiveWithCurvature, minimize
from emgpr.parallel import DEFAULT_EXECUTION, Execution, Failure, parallel_map_or_failure
from emgpr.weights.parameters import LMCParameters

Array = np.ndarray
Batches = Sequence[Int[Array, " _"]]

# An optimisation starts on a subsample with at least this many readings in total and for each
# parameter: with fewer, the optimum on the subsample is far from that on the whole table.
SUBSAMPLE_READINGS, SUBSAMPLE_READINGS_PER_PARAMETER = 400, 20
# Stop when two steps in a row raise the log-likelihood by less than this for each reading. The
# second value applies if the joint optimisation continues from the result.
MIN_GAIN, MIN_GAIN_BEFORE_JOINT = 1e-6, 3e-5
# Stop when the expected gain of the next step for each reading is less than this: on one table, a
# large table, a small batch or subsample, and a large batch. The larger values for batches save
# four fifths of the time, and increase the prediction errors on AMSU-A, simulated and ATMS data by
# less than 1%.
EXPECTED_GAIN, EXPECTED_GAIN_LARGE_TABLE = 1e-5, 1e-4
EXPECTED_GAIN_SUBSAMPLE, EXPECTED_GAIN_LARGE_BATCH = 3e-4, 2e-3
LARGE_TABLE = 2000  # readings
# For batches with fewer readings, computing the dense form for all members together is faster than
# computing the low-rank form for each member: on the CPU, and on a GPU.
LOW_RANK_READINGS, LOW_RANK_READINGS_ON_DEVICE = 100, 2000
# With fewer readings per weight, computing the curvature takes longer than the likelihood itself.
CURVATURE_READINGS_PER_WEIGHT = 2

PER_MEMBER = ("W", "log_likelihood", "converged", "n_iter")  # arrays with an entry for each member


@dataclass(frozen=True)
class FittedWeights:
    """Weights of every member, the log-likelihood of its batch, and how the search ended.

    A member whose optimisation failed has a log-likelihood of −inf. `message` gives the reason for
    such a failure, if it is known.
    """

    W: Float[Array, "L Q D k"]
    log_likelihood: Float[Array, " L"]
    converged: Bool[Array, " L"]
    n_iter: Int[Array, " L"]
    message: str = ""

    @property
    def succeeded(self) -> Bool[Array, " L"]:
        """Mask of the members whose optimisation did not fail."""
        return np.isfinite(self.log_likelihood)

    def select(self, members: Bool[Array, " L"]) -> "FittedWeights":
        """Return the results of the selected members."""
        return replace(self, **{name: getattr(self, name)[members] for name in PER_MEMBER})

    @classmethod
    def fixed(cls, W: Float[Array, "L Q D k"], log_likelihood: float = 0.0) -> "FittedWeights":
        """Create a result for weights that were given, not optimised."""
        L = len(W)
        return cls(W, np.full(L, log_likelihood), np.ones(L, bool), np.zeros(L, int))

    @classmethod
    def concatenate(cls, parts: Sequence["FittedWeights"], message: str = "") -> "FittedWeights":
        """Join the results of several groups of members."""
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_MEMBER
        }
        return cls(**arrays, message=message)


@dataclass(frozen=True)
class _StoppingRule:
    """Conditions that end a search; gains are increases in the log-likelihood per reading."""

    max_iter: int
    min_gain: float
    expected_gain: float
    curvature: bool  # use Newton's method where the curvature is available

    def for_readings(self, n: float, expected_gain: float = 0.0) -> dict[str, Any]:
        """Return arguments of `minimize`; the larger of the two expected gains applies."""
        gain = n * max(expected_gain, self.expected_gain)
        return {
            "max_iter": self.max_iter,
            "ftol": self.min_gain,
            "value_scale": n,
            "expected_gain": gain,
        }


@dataclass(frozen=True)
class _Problem:
    """Members that are optimised together, with their tables, weights and stopping rule."""

    subsample: Observations | None
    tables: Observations
    start: LMCParameters
    W: Float[Array, "l Q D k"]
    n_readings_subsample: float
    n_readings: float
    rule: _StoppingRule
    device: str


def fit_weights(
    observations: Observations,
    batches: Batches,
    start: LMCParameters,
    *,
    W: Float[Array, "L Q D k"] | None = None,
    max_iter: int,
    before_joint: bool = False,
    execution: Execution = DEFAULT_EXECUTION,
) -> FittedWeights:
    """Maximise the likelihood of each batch over the weights, with kernels and noise fixed.

    Every member starts from the weights in `start` or, if `W` is given, from its own weights in
    `W`. With `before_joint`, the search stops earlier, because the joint optimisation continues
    from its result. If several members are optimised together and this fails twice, each of them
    is optimised separately.
    """
    subsample = batches
    if W is None:
        subsample = subsample_batches(observations, batches, start.W.size)
        W = np.broadcast_to(start.W, (len(batches), *start.W.shape))
    n = start.W.shape[1] * max(map(len, batches))
    # If there are several optima of similar likelihood, the starting point decides which of them
    # the joint optimisation finds. Before the joint optimisation of one table, Newton's method is
    # not used: it would move far away from the model without transfer, to weights that fit the
    # initial kernels.
    rule = _StoppingRule(
        max_iter,
        MIN_GAIN_BEFORE_JOINT if before_joint else MIN_GAIN,
        _expected_gain(n, len(batches)),
        curvature=len(batches) > 1 or not before_joint,
    )
    device = execution.device
    reduced = sum(map(len, subsample)) < sum(map(len, batches))
    # The mean is taken over all members, so that the result of a member does not depend on the
    # members with which it is optimised.
    n_subsample, n_readings = (
        _n_readings(observations, sites) / len(batches) for sites in (subsample, batches)
    )

    def fit(runs: list[range]) -> dict[range, FittedWeights | Failure]:
        problems = [
            _Problem(
                observations.batches([subsample[i] for i in run]) if reduced else None,
                observations.batches([batches[i] for i in run]),
                start,
                W[list(run)],
                n_subsample,
                n_readings,
                rule,
                device,
            )
            for run in runs
        ]
        fitted = parallel_map_or_failure(_fit, problems, execution, label="Step 2: members")
        return dict(zip(runs, fitted, strict=True))

    runs = chunks(len(batches), 32.0 * n * n, execution.processes, chunk_bytes(device))
    fitted = fit(runs)
    failed = [run for run, part in fitted.items() if isinstance(part, Failure) and len(run) > 1]
    if failed:
        fitted |= fit([range(i, i + 1) for run in failed for i in run])
    return _in_order({run: part for run, part in fitted.items() if run not in failed}, W)


def _in_order(fitted: dict[range, FittedWeights | Failure], W: Array) -> FittedWeights:
    """Join the results of all members in order; failed members keep their initial weights."""
    parts, message = [], ""
    for run in sorted(fitted, key=lambda run: run.start):
        part = fitted[run]
        if isinstance(part, Failure):
            message = f"{type(part.error).__name__}: {part.error}".rstrip(": ")
            zeros = np.zeros(len(run))
            part = FittedWeights(W[list(run)], zeros - np.inf, zeros > 0, zeros.astype(int))
        parts.append(part)
    return FittedWeights.concatenate(parts, message)


def subsample_batches(
    observations: Observations, batches: Batches, n_parameters: int
) -> list[Int[Array, " _"]]:
    """Reduce each batch to a subsample of its sites, which is used to start an optimisation."""
    n_readings = max(SUBSAMPLE_READINGS, SUBSAMPLE_READINGS_PER_PARAMETER * n_parameters)
    reduced = []
    for batch in batches:
        share = n_readings / max(1, int(observations.observed[:, batch].sum()))
        size = len(batch) if share > 0.7 else max(1, int(share * len(batch)))
        reduced.append(batch[observations.at(batch).subsample(size)])
    return reduced


def _n_readings(observations: Observations, batches: Batches) -> int:
    return sum(int(observations.observed[:, batch].sum()) for batch in batches)


def _expected_gain(n: int, n_members: int) -> float:
    """Return the expected gain per reading below which a search on n readings ends."""
    if n_members > 1:
        return EXPECTED_GAIN_LARGE_BATCH if n > SUBSAMPLE_READINGS else EXPECTED_GAIN_SUBSAMPLE
    return EXPECTED_GAIN_LARGE_TABLE if n > LARGE_TABLE else EXPECTED_GAIN


def _fit(problem: _Problem) -> FittedWeights:
    """Optimise the weights on the subsample, if there is one, then continue on all readings."""
    L, rule, n = len(problem.W), problem.rule, problem.n_readings
    x0 = problem.W.reshape(L, -1)
    loss = _loss(problem.tables, problem)
    result = None
    if problem.subsample is not None:
        n_subsample = problem.n_readings_subsample
        first = minimize(
            _loss(problem.subsample, problem),
            x0,
            **rule.for_readings(n_subsample, EXPECTED_GAIN_SUBSAMPLE),
        )
        memory = first.memory.select(range(L), n / n_subsample)
        result = minimize(loss, first.x, memory=memory, **rule.for_readings(n))
    if result is None or not np.isfinite(result.value).all():
        result = minimize(loss, x0, **rule.for_readings(n))
    W = result.x.reshape(L, *problem.start.W.shape)
    return FittedWeights(W, -result.value, result.converged, result.n_iter)


def _loss(tables: Observations, problem: _Problem) -> Objective | ObjectiveWithCurvature:
    """Return the negative log-likelihood of each table as a function of its weights."""
    start, device = problem.start, problem.device
    tables = tables.to(device)
    L, shape = len(tables.x), start.W.shape
    K = kernel_matrices(start.kernels, tables.x)
    single = tables.batch_item(0) if L == 1 else None
    free = None if start.free is None else start.free.ravel()
    kronecker = shape[0] == 1 and tables.complete  # this form has no curvature
    n = tables.n_outputs * tables.n_sites
    affordable = CURVATURE_READINGS_PER_WEIGHT * start.W.size <= n
    curvature = problem.rule.curvature and not kronecker and affordable
    low_rank: list[LowRankTable | None] = [None]
    if n > (LOW_RANK_READINGS if device == "cpu" else LOW_RANK_READINGS_ON_DEVICE):
        low_rank = [_low_rank(tables.batch_item(i), start, K[i]) for i in range(L)]

    def low_rank_loss(flat: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        W = flat.reshape(-1, *shape)
        fits = [
            low_rank_log_likelihood(table, w, start.noise)
            for w, i in zip(W, which, strict=True)
            if (table := low_rank[i]) is not None
        ]
        of_weights = np.stack([gradient for _, gradient in fits])
        value = np.array([value for value, _ in fits])
        return -value, -start.mask_gradient(of_weights).reshape(flat.shape)

    def dense_loss(flat: Float[Array, "b p"], which: Int[Array, " b"]) -> Any:
        W, noise = to_device_of(flat.reshape(-1, *shape), K), to_device_of(start.noise, K)
        if single is not None:  # no batch axis, so no rows for missing readings
            fit = log_likelihood(single, W[0], noise, K[0], curvature=curvature)
        else:
            rows = slice(None) if len(which) == L else to_device_of(which, K)
            fit = log_likelihood(tables.batch_item(rows), W, noise, K[rows], curvature=curvature)
        of_weights = start.mask_gradient(to_numpy(fit.of_weights))
        loss = -np.atleast_1d(to_numpy(fit.value)), -of_weights.reshape(flat.shape)
        if fit.curvature is None:
            return loss
        second = to_numpy(fit.curvature).reshape(*flat.shape, -1)
        return *loss, second if free is None else second * np.outer(free, free)

    return low_rank_loss if all(table is not None for table in low_rank) else dense_loss


def _low_rank(
    table: Observations, start: LMCParameters, K: Float[Any, "Q N N"]
) -> LowRankTable | None:
    """Return the low-rank form of a table, without the empty sites that pad it in a batch."""
    sites = np.flatnonzero(to_numpy(table.observed).any(axis=0))
    if len(sites) < table.n_sites:
        at = to_device_of(sites, K)
        table, K = table.at(sites), K[:, at[:, None], at]
    return low_rank_table(table, start.noise, K, start.W.shape[2])
