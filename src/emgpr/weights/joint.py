"""Optimisation of kernels, noise and weights after the two steps, jointly or in sweeps.

Kernels and noise are shared by all members; each member has its own weights. The objective is the
sum of the log-likelihoods of the members' batches, plus the log prior density of the noise if there
is a prior. With a single batch, the sum is the log-likelihood of the whole table. A sweep optimises
kernels and noise for fixed weights, then the weights for fixed kernels and noise. The joint
optimisation changes all parameters together.

If the noise can be correlated between outputs, a latent process whose range is shorter than the
distance between neighbouring sites is indistinguishable from noise. The covariance of such a latent
process is moved to the noise if this reduces the log-likelihood by less than one for each weight
of the process.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import chunk_bytes, chunks, diagonal, to_device_of, to_numpy
from emgpr.checkpoint import digest
from emgpr.covariance import Likelihood, coregionalization, log_likelihood
from emgpr.kernel_stack import KernelStack
from emgpr.kernels import kernel_matrix
from emgpr.latents import SiteDistances, nearest_pairs
from emgpr.noise import noise_prior, output_variances
from emgpr.observations import Observations
from emgpr.optimize import LBFGSMemory, OptimizeResult, OptimizerState, minimize
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.progress import iteration_progress
from emgpr.weights.fit import FittedWeights, fit_weights, subsample_batches
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.sill_prior import SillPrior

Array = np.ndarray
LogPosterior = Callable[[Float[Array, " p"]], tuple[float, Float[Array, " p"]]]

# A latent process whose median correlation between nearest sites is lower is treated as noise.
NOISE_CORRELATION = 0.05
# On a subsample, the lower bounds of length-scales are multiplied by five, which makes them half
# the distance between neighbours. In a sparse table, shorter length-scales would fit the noise.
SUBSAMPLE_MIN_LENGTH_FACTOR = 5.0
# Stop when two steps in a row raise the log-likelihood by less than MIN_GAIN for each reading, or
# when the expected gain of the next step is less than the other values: on all readings, and on a
# subsample.
MIN_GAIN, EXPECTED_GAIN, EXPECTED_GAIN_SUBSAMPLE = 5e-6, 3e-6, 2e-4
LARGE_BATCH = 500  # readings; the CPU evaluates larger batches one at a time


class Stage(NamedTuple):
    """A stage of the optimisation: what was optimised, and the log-likelihood reached.

    With a prior, the log-likelihood includes the log prior density of the noise.
    """

    learned: str
    log_likelihood: float


@dataclass(frozen=True)
class RefinedModel:
    """Optimised parameters, the history of the search, and a message if it did not converge."""

    parameters: LMCParameters
    members: FittedWeights
    history: list[Stage]
    message: str = ""
    # Vector of all parameters and their information matrix, for a model with one member.
    vector: ParameterVector | None = None
    information: Float[Array, "p p"] | None = None


def refine(
    observations: Observations,
    batches: Sequence[Int[Array, " _"]],
    start: LMCParameters,
    fitted: FittedWeights,
    *,
    sweeps: int | Literal["joint"],
    correlated: bool = False,
    weak_prior: bool = False,
    max_iter: int,
    output_names: Sequence[str] | None = None,
    latent_numbers: Sequence[int] | Int[Array, " Q"] | None = None,
    output_columns: Sequence[int] | Int[Array, " D"] | None = None,
    execution: Execution = DEFAULT_EXECUTION,
) -> RefinedModel:
    """Optimise the result of step 2 further, jointly or in the given number of sweeps."""

    def likelihood_of(sites: Sequence[Int[Array, " _"]], **bounds: float) -> EnsembleLikelihood:
        distances = SiteDistances(observations.x[np.concatenate(sites)])
        vector = ParameterVector.around(
            start, observations, distances, correlated=correlated, output_names=output_names,
            latent_numbers=latent_numbers, output_columns=output_columns, **bounds,
        )  # fmt: skip
        return EnsembleLikelihood(observations, sites, vector, weak_prior, execution)

    whole = likelihood_of(batches)
    if sweeps != "joint":
        return _sweep(observations, batches, whole, fitted, sweeps, max_iter)
    parameters, W, memory = start, fitted.W, None
    reduced = subsample_batches(observations, batches, len(whole.vector.bounds) + start.W.size)
    if sum(map(len, reduced)) < sum(map(len, batches)):
        part = likelihood_of(reduced, min_length_factor=SUBSAMPLE_MIN_LENGTH_FACTOR)
        end, _ = part.maximise(
            parameters, W, max_iter, "everything, some sites", EXPECTED_GAIN_SUBSAMPLE
        )
        parameters, W = part.vector.unpack(end.x[0], W)
        memory = end.memory.select([0], whole.n_readings / part.n_readings)
    end, history = whole.maximise(parameters, W, max_iter, "everything", memory=memory)
    parameters, W = whole.vector.unpack(end.x[0], W)
    noisy = np.zeros(len(start.kernels), bool)
    if correlated:
        noisy = is_noise(parameters, W, observations)
    if noisy.any():
        as_noise = move_to_noise(parameters, W, noisy, observations)
        other, other_history = whole.maximise(*as_noise, max_iter, "everything")
        if other.value[0] <= end.value[0] + noisy.sum() * W[0, 0].size:
            end, history = other, other_history
            parameters, W = whole.vector.unpack(end.x[0], W)
    values, _ = whole.evaluate(end.x[0], W)
    L = len(batches)
    members = FittedWeights(W, values, np.repeat(end.converged, L), np.repeat(end.n_iter, L))
    message = whole.vector.describe_end(end, max_iter)
    if L > 1:
        return RefinedModel(parameters, members, history, message)
    return RefinedModel(replace(parameters, W=W[0]), members, history, message, whole.vector)


def _sweep(
    observations: Observations,
    batches: Sequence[Int[Array, " _"]],
    whole: "EnsembleLikelihood",
    fitted: FittedWeights,
    sweeps: int,
    max_iter: int,
) -> RefinedModel:
    """In each sweep, optimise kernels and noise, then the weights."""
    parameters, members, message = whole.vector.start, fitted, ""
    history = [whole.weights_stage(parameters, members)]
    for _ in range(sweeps):
        end, _ = whole.maximise(
            parameters, members.W, max_iter, "kernels and noise", with_weights=False
        )
        parameters, _ = whole.vector.unpack(end.x[0], members.W)
        history.append(Stage("kernels and noise", -float(end.value[0])))
        message = whole.vector.describe_end(end, max_iter)
        members = fit_weights(
            observations, batches, parameters, W=members.W, max_iter=max_iter,
            execution=whole.execution,
        )  # fmt: skip
        history.append(whole.weights_stage(parameters, members))
    n_failed = int((~members.converged).sum())
    if n_failed:
        unconverged = (
            f"the weights of {n_failed} of {len(batches)} members did not converge within "
            f"{max_iter=}"
        )
        message = "; ".join(filter(None, [message, unconverged]))
    return RefinedModel(parameters, members, history, message)


def maximise(
    vector: ParameterVector,
    log_posterior: LogPosterior,
    x0: Float[Array, " p"],
    *,
    n_readings: int,
    max_iter: int,
    min_gain: float,
    expected_gain: float,
    label: str,
    memory: LBFGSMemory | None = None,
    key: Sequence[object] = (),
    execution: Execution = DEFAULT_EXECUTION,
) -> tuple[OptimizeResult, list[float]]:
    """Maximise a log posterior density from x0; also return its values at x0 and after each step.

    The search ends when two steps in a row gain less than `min_gain` per reading, or when the
    next step is expected to gain less than `expected_gain` in total. `key` identifies the search in
    a checkpoint: it holds everything that `log_posterior` depends on except the data and settings
    of the fit.
    """
    bounds = vector.bounds_around(x0)

    def loss(rows: Float[Array, "1 p"], _: Array) -> tuple[Array, Array]:
        value, gradient = log_posterior(rows[0])
        return -np.array([value]), -gradient[None]

    checkpoint = execution.checkpoint
    values: list[float] = []
    name, resume = "", None
    if checkpoint.path is not None:
        name = f"{label} {digest(x0, bounds, max_iter, memory, *key)}"
        resume, values = checkpoint.find(name) or (None, [])
    if not values:
        values.append(float(log_posterior(x0)[0]))
    threshold = max(min_gain * n_readings, expected_gain)
    with iteration_progress(label, max_iter, threshold, execution.verbose) as show:

        def record(losses: Float[Array, " 1"]) -> None:
            values.append(-float(losses[0]))
            show(values)

        def store(state: OptimizerState) -> None:
            if checkpoint.due or not state.active.any():
                checkpoint.keep(name, (state, values))

        result = minimize(
            loss, x0[None], bounds=bounds, max_iter=max_iter, ftol=min_gain,
            value_scale=float(n_readings), expected_gain=expected_gain, memory=memory,
            callback=record, state_callback=store if checkpoint.path is not None else None,
            initial_state=resume,
        )  # fmt: skip
    if checkpoint.path is not None:
        checkpoint.flush()
    return result, values


class EnsembleLikelihood:
    """The log-likelihoods of the members' batches as functions of the parameter vector."""

    def __init__(
        self,
        observations: Observations,
        batches: Sequence[Int[Array, " _"]],
        vector: ParameterVector,
        weak_prior: bool,
        execution: Execution,
    ) -> None:
        self.batches, self.vector, self.execution = batches, vector, execution
        device = execution.device
        n = observations.n_outputs * max(map(len, batches))
        one_by_one = device == "cpu" and n > LARGE_BATCH
        budget = 0.0 if one_by_one else chunk_bytes(device)
        self.runs = chunks(len(batches), 32.0 * n * n, 1, budget)
        # A single table has no batch axis, so that its matrices need no rows for missing readings,
        # and the Kronecker form applies if no reading is missing and there is one latent process.
        single = one_by_one or len(batches) == 1
        self.tables = [
            (
                observations.at(batches[run[0]])
                if single
                else observations.batches([batches[i] for i in run])
            ).to(device)
            for run in self.runs
        ]
        self.n_readings = sum(table.n_readings for table in self.tables)
        self.kernels = [KernelStack(vector.start.kernels, table.x) for table in self.tables]
        variances = output_variances(observations)
        self.prior = noise_prior(variances, weak_prior)
        self.sill_prior = SillPrior(variances, observations.constant) if weak_prior else None

    def weights_stage(self, parameters: LMCParameters, members: FittedWeights) -> Stage:
        """Describe, as a stage of the history, the optimisation of the weights alone."""
        log_likelihood = float(members.log_likelihood[members.succeeded].sum())
        return Stage("weights", log_likelihood + float(self.prior(parameters.noise)[0]))

    def maximise(
        self,
        parameters: LMCParameters,
        W: Float[Array, "L Q D k"],
        max_iter: int,
        label: str,
        expected_gain: float = EXPECTED_GAIN,
        *,
        with_weights: bool = True,
        memory: LBFGSMemory | None = None,
    ) -> tuple[OptimizeResult, list[Stage]]:
        """Maximise the log posterior density from these parameters, with free or fixed weights."""
        vector = self.vector
        # In a sweep, the weights, which determine the sills, are fitted without a prior.
        sill_prior = self.sill_prior if with_weights else None
        first = vector.n_kernel_parameters
        noise_part = slice(first, first + vector.noise.size)

        def log_posterior(x: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
            values, gradient = self.evaluate(x, W, sill_prior)
            log_prior, of_noise = self.prior(vector.noise.matrix(x[noise_part]))
            gradient[noise_part] += vector.noise.pullback(x[noise_part], of_noise)
            return float(values.sum() + log_prior), gradient[: len(x)]

        result, values = maximise(
            vector,
            log_posterior,
            vector.pack(parameters, W if with_weights else None),
            n_readings=self.n_readings,
            max_iter=max_iter,
            min_gain=MIN_GAIN,
            expected_gain=expected_gain * self.n_readings,
            label=f"{'Joint optimisation' if with_weights else 'Refinement'}: {label}",
            memory=memory,
            key=(W, vector.start.kernels, vector.start.free, self.batches, vector.noise),
            execution=self.execution,
        )
        stages = [Stage("start", values[0]), *(Stage(label, value) for value in values[1:])]
        return result, stages

    def evaluate(
        self, x: Float[Array, " p"], W: Float[Array, "L Q D k"], prior: SillPrior | None = None
    ) -> tuple[Array, Array]:
        """Return the log-likelihood of every batch, and the gradient of the sum over batches.

        `W` holds the weights that are used if the vector `x` contains none. With a `prior`, its log
        density for the weights of each member is added.
        """
        vector = self.vector
        _, noise_vector, W = vector.split(x, W)
        noise = vector.noise.matrix(noise_vector)
        values, of_W = [], []
        of_noise = np.zeros_like(noise)
        of_theta = np.zeros(vector.n_kernel_parameters)
        for run, table, kernels in zip(self.runs, self.tables, self.kernels, strict=True):
            K, pullback = kernels.evaluate(x[: len(of_theta)])
            weights = to_device_of(W[list(run)] if table.x.ndim == 3 else W[run[0]], K)
            fit = log_likelihood(table, weights, to_device_of(noise, K), K, of_kernels=True)
            assert fit.of_kernels is not None
            of_kernels = fit.of_kernels
            if prior is not None:
                fit = _with_sill_prior(fit, prior, to_numpy(weights), noise, K)
            gradient = to_numpy(pullback(of_kernels))
            of_theta += gradient.sum(axis=tuple(range(gradient.ndim - 1)))
            values.append(np.atleast_1d(to_numpy(fit.value)))
            of_W.append(vector.start.mask_gradient(to_numpy(fit.of_weights)).reshape(-1))
            of_noise += to_numpy(fit.of_noise).reshape(-1, *noise.shape).sum(0)
        gradients = [of_theta, vector.noise.pullback(noise_vector, of_noise), *of_W]
        return np.concatenate(values), np.concatenate(gradients)


def _with_sill_prior(
    fit: Likelihood, prior: SillPrior, W: Array, noise: Float[Array, "D D"], K: Any
) -> Likelihood:
    """Add the log density of the prior on the sills, and its derivatives, to a likelihood."""
    added = prior(W, noise, to_numpy(diagonal(K)))
    assert fit.of_kernels is not None
    of_diagonals = diagonal(fit.of_kernels)  # a view
    of_diagonals += to_device_of(added.of_diagonals, K)
    return replace(
        fit,
        value=fit.value + to_device_of(added.value, K),
        of_weights=fit.of_weights + to_device_of(added.of_weights, K),
        of_noise=fit.of_noise + to_device_of(added.of_noise, K),
    )


def is_noise(
    parameters: LMCParameters, W: Float[Array, "L Q D k"], observations: Observations
) -> Bool[Array, " Q"]:
    """Mark latents that have non-zero weights but hardly any correlation between nearest sites."""
    sites, nearest = nearest_pairs(observations.x)
    if not len(sites):
        return np.zeros(len(parameters.kernels), bool)
    pairs = np.stack([sites, nearest], axis=1)
    correlation = [
        np.median(kernel_matrix(kernel, pairs)[:, 0, 1] / kernel.diag(sites))
        for kernel in parameters.kernels
    ]
    return (np.array(correlation) < NOISE_CORRELATION) & W.any(axis=(0, 2, 3))


def move_to_noise(
    parameters: LMCParameters,
    W: Float[Array, "L Q D k"],
    noisy: Bool[Array, " Q"],
    observations: Observations,
) -> tuple[LMCParameters, Float[Array, "L Q D k"]]:
    """Add the covariance of the marked latents to the noise and set their weights to zero.

    Weights of zero have a gradient of zero, so they remain zero when optimised.
    """
    B = coregionalization(W).mean(axis=0)
    variance = np.array([kernel.diag(observations.x).mean() for kernel in parameters.kernels])
    noise = parameters.noise + np.einsum("qde,q->de", B[noisy], variance[noisy])
    return replace(parameters, noise=noise), np.where(noisy[:, None, None], 0.0, W)
