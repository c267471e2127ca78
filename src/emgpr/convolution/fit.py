"""The fit of convolved processes: maximum likelihood, or a weak prior, from several starts."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from emgpr.arrays import JitterWarning, NumericalError, limit_threads
from emgpr.convolution.density import PosteriorDensity
from emgpr.convolution.likelihood import ReadingPairs
from emgpr.convolution.parameters import ConvolutionParameters, ConvolutionVector
from emgpr.convolution.starts import starting_points
from emgpr.latents import (
    Latent,
    SiteDistances,
    choose_learner,
    describe_bound,
    fit_latents,
    learner_by_name,
    search_space,
)
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.scoring import maximise_by_scoring

Array = np.ndarray

MAX_READINGS = 5000  # with more, an evaluation of the likelihood takes more than ten seconds
# With more readings than this, all starting points are tried on a subsample, and only the best of
# them are continued with all readings.
SEARCH_READINGS, CONTINUED = 1000, 2
TOLERANCE = 1e-6  # expected gain in log density for each reading, at which a search has converged
MIN_WIDTH = 1e-3  # lower bound of widths, relative to that of the length-scales
MIN_SHARE = 0.01  # of an output's variance; smaller processes have no well-defined length-scale


@dataclass(frozen=True)
class SearchResult:
    """Where a search ended: parameters, log density of the posterior, and log-likelihood."""

    x: Float[Array, " p"]
    log_density: float
    log_likelihood: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class FittedConvolution:
    """Fitted parameters, and the results of the searches from all starting points.

    `message` says why the best search did not converge inside its bounds; it is empty if it did.
    """

    parameters: ConvolutionParameters
    latents: Sequence[Latent]  # of each output alone
    searches: Sequence[SearchResult]
    best: SearchResult
    message: str = ""


def fit_convolution(
    observations: Observations,
    n_latents: int,
    *,
    own_processes: bool,
    kernel: RBF | None = None,
    weak_prior: bool = False,
    n_restarts: int = 5,
    max_iter: int = 200,
    rng: np.random.Generator,
    names: Sequence[str] = (),
    execution: Execution = DEFAULT_EXECUTION,
) -> FittedConvolution:
    """Fit all parameters to standardised readings, from `n_restarts` starting points.

    The length-scale of `kernel`, if it is not 1, is that of the latent processes at one more
    starting point, and its bounds are theirs.
    """
    kernel = RBF() if kernel is None else kernel
    D, P = observations.n_outputs, observations.x.shape[1]
    vector = ConvolutionVector(D, n_latents, P, own_processes)
    with limit_threads(observations.n_readings):
        latents = fit_alone(observations, weak_prior, n_restarts, max_iter, rng, execution)
        starts = starting_points(observations, latents, vector, n_restarts, rng)
        bounds = parameter_bounds(observations, latents, vector, kernel)
        if kernel.length_scale != 1.0:
            given = starts[:1].copy()
            given[:, vector.parts[0]] = np.log(kernel.length_scale)
            starts = np.concatenate([starts, given])
        search = partial(search_maximum, vector, bounds, weak_prior, max_iter)
        small = _subsample(observations)
        label = "Convolved processes: starting points"
        searches = parallel_map(partial(search, small), list(starts), execution, label=label)
        ends = searches
        if small is not observations:
            order = sorted(searches, key=lambda end: -end.log_density)[:CONTINUED]
            label = "Convolved processes: all readings"
            ends = parallel_map(
                partial(search, observations), [end.x for end in order], execution, label=label
            )
    best = max(ends, key=lambda end: end.log_density)
    if not np.isfinite(best.log_density):
        raise NumericalError(
            "The likelihood could not be evaluated at any starting point. Check for inputs or "
            "outputs that are not finite, and for duplicated sites without noise."
        )
    parameters = vector.unpack(best.x)
    message = describe_end(best, vector, bounds, max_iter, names or [str(d) for d in range(D)])
    return FittedConvolution(parameters, latents, searches, best, message)


def fit_alone(
    observations: Observations,
    weak_prior: bool,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    execution: Execution,
) -> list[Latent]:
    """Fit an RBF kernel and a noise variance to each output alone."""
    learner = learner_by_name(choose_learner("auto", observations))
    with warnings.catch_warnings():
        # Warnings are given only for the later searches, which use the result as a start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", JitterWarning)
        return fit_latents(
            observations, [RBF()] * observations.n_outputs, learner, n_restarts=n_restarts,
            max_iter=max_iter, rng=rng, weak_prior=weak_prior, execution=execution,
        )  # fmt: skip


def search_maximum(
    vector: ConvolutionVector,
    bounds: Float[Array, "p 2"],
    weak_prior: bool,
    max_iter: int,
    observations: Observations,
    start: Float[Array, " p"],
) -> SearchResult:
    """Search for a maximum of the posterior density, from one starting point."""
    density = PosteriorDensity(ReadingPairs(observations), vector, weak_prior)
    n = observations.n_readings
    end = maximise_by_scoring(
        density, density.information, start, bounds=bounds, scale=float(n), tolerance=TOLERANCE,
        max_iter=max_iter,
    )  # fmt: skip
    likelihood = density.log_likelihood(end.x)
    return SearchResult(end.x, end.value, likelihood, end.n_iter, end.converged)


def parameter_bounds(
    observations: Observations, latents: Sequence[Latent], vector: ConvolutionVector, kernel: RBF
) -> Float[Array, "p 2"]:
    """Return the bounds of all parameters; weights have none, unless their output is constant."""
    rng, distances = np.random.default_rng(0), SiteDistances.in_table(observations)
    automatic = search_space(RBF(), None, distances, 1, rng).bounds[0]
    of_latents = search_space(kernel, None, distances, 1, rng).bounds[0]
    if kernel.hyperparameter_length_scale.fixed:
        of_latents = np.log(np.full(2, float(kernel.length_scale)))
    widths = np.array([automatic[0] + np.log(MIN_WIDTH), automatic[1]])
    noise = np.log([latent.noise_bounds for latent in latents])
    constant = observations.constant
    noise[constant] = np.log([latent.noise for latent in latents])[constant, None]
    weights = np.where(constant[:, None], 0.0, [-np.inf, np.inf])
    n_own = vector.sizes[2]
    return np.concatenate(
        [
            np.tile(of_latents, (vector.Q, 1)),
            np.tile(widths, (vector.D, 1)),
            np.tile(automatic, (n_own, 1)),
            noise,
            np.tile(weights, (vector.Q, 1)),
            weights[:n_own],
        ]
    )


def describe_end(
    end: SearchResult,
    vector: ConvolutionVector,
    bounds: Float[Array, "p 2"],
    max_iter: int,
    names: Sequence[str],
) -> str:
    """Describe why a search did not converge or which bounds it reached ("" if neither).

    The bounds of widths are not mentioned, because a width of nearly zero means that an output is
    not smoothed. Nor are those of the length-scales of processes without influence.
    """
    parts = []
    if not end.converged:
        parts.append(f"the search did not converge within max_iter={max_iter}; increase max_iter")
    low, high = bounds.T
    at_bound = (low < high) & ((end.x <= low) | (end.x >= high))
    shares = vector.unpack(end.x).shares
    indices = np.arange(len(end.x))
    of_latents, _, of_own, of_noise, _, _ = (indices[part] for part in vector.parts)
    scales = [
        *(
            (i, f"the length-scale of latent process {q}")
            for q, i in enumerate(of_latents)
            if end.x[i] >= high[i] and shares[:, q].max() > MIN_SHARE
        ),
        *(
            (i, f"the length-scale of the own process of output {names[d]!r}")
            for d, i in enumerate(of_own)
            if shares[d, vector.Q] > MIN_SHARE
        ),
    ]
    noise = [(i, f"the noise of output {names[d]!r}") for d, i in enumerate(of_noise)]
    for kind, found in (("length_scale", scales), ("noise", noise)):
        parts += [
            describe_bound(name, kind, float(end.x[i]), bounds[i], "the process")
            for i, name in found
            if at_bound[i]
        ]
    return "; ".join(parts)


def _subsample(observations: Observations) -> Observations:
    """Return a table of sites with about `SEARCH_READINGS` readings, or the whole table."""
    n = observations.n_readings
    if n <= SEARCH_READINGS:
        return observations
    n_sites = max(1, round(SEARCH_READINGS * observations.n_sites / n))
    return observations.at(observations.subsample(n_sites))
