"""Joint optimisation of kernels, noise and weights with Vecchia's likelihood of all readings."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.scoring import as_optimize_result
from emgpr.weights.fit import FittedWeights
from emgpr.weights.joint import RefinedModel, Stage, is_noise, move_to_noise
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.vecchia_search import (
    COARSE_NEIGHBOURS,
    COARSE_TOLERANCE,
    FIRST_ITERATIONS,
    FIRST_SITES,
    LATE_DAMPING,
    JointFit,
    MakeVector,
    VecchiaSearch,
    automatic_neighbours,
    information_at_end,
    unpack,
)

Array = np.ndarray


def fit_jointly(
    observations: Observations,
    points: dict[str, LMCParameters],
    make_vector: MakeVector,
    *,
    n_neighbours: int,
    weak_prior: bool,
    max_iter: int,
    with_information: bool = True,
    execution: Execution = DEFAULT_EXECUTION,
) -> JointFit:
    """Maximise the log posterior density from the most promising starting point."""
    search = VecchiaSearch(
        observations, make_vector, weak_prior, max_iter, with_information, execution
    )  # fmt: skip
    few = min(COARSE_NEIGHBOURS, n_neighbours)
    parameters = next(iter(points.values()))
    if len(points) > 1:
        parameters = search.choose(points, few)
    if few < n_neighbours:
        parameters = search.improve(parameters, few)
    return search.finish(parameters, n_neighbours)


def refine_with_vecchia(
    observations: Observations,
    points: dict[str, LMCParameters],
    *,
    n_neighbours: int,
    correlated: bool,
    weak_prior: bool,
    max_iter: int,
    with_information: bool = True,
    output_names: Sequence[str] | None = None,
    latent_numbers: Sequence[int] | Int[Array, " Q"] | None = None,
    execution: Execution = DEFAULT_EXECUTION,
) -> RefinedModel:
    """Optimise all parameters jointly, from the best of the starting points.

    If the noise can be correlated, latent processes that turn out to be noise are added to it. With
    `with_information`, the result contains the information matrix, from which predictions derive
    the uncertainty of the parameters.
    """
    make_vector = _vector_maker(
        observations, next(iter(points.values())), correlated=correlated,
        output_names=output_names, latent_numbers=latent_numbers,
    )  # fmt: skip
    fit = fit_jointly(
        observations, points, make_vector, n_neighbours=n_neighbours, weak_prior=weak_prior,
        max_iter=max_iter, with_information=with_information, execution=execution,
    )  # fmt: skip
    if correlated:
        W = fit.parameters.W[None]
        noisy = is_noise(fit.parameters, W, observations)
        if noisy.any():
            parameters, W = move_to_noise(fit.parameters, W, noisy, observations)
            search = VecchiaSearch(
                observations, make_vector, weak_prior, max_iter, with_information, execution
            )
            other = search.finish(replace(parameters, W=W[0]), n_neighbours)
            if other.result.value >= fit.result.value - noisy.sum() * W[0, 0].size:
                fit = other
    return _as_refined_model(fit, max_iter)


def add_information(
    observations: Observations,
    fitted: RefinedModel,
    *,
    weak_prior: bool,
    execution: Execution = DEFAULT_EXECUTION,
) -> RefinedModel:
    """Add the information matrix to the result of a search with the exact likelihood.

    It is that of Vecchia's likelihood, which hardly differs and has a cheap information matrix.
    """
    search = VecchiaSearch.around(observations, fitted, weak_prior, 0, execution)
    N, D = observations.n_sites, observations.n_outputs
    density = search.density(fitted.parameters, automatic_neighbours(N, D))
    x = density.vector.pack(fitted.parameters, fitted.parameters.W)
    return replace(fitted, information=information_at_end(density, x))


def refit_roughly(
    observations: Observations,
    fitted: RefinedModel,
    *,
    weak_prior: bool,
    max_iter: int,
    execution: Execution = DEFAULT_EXECUTION,
) -> LMCParameters:
    """Continue an optimisation with other readings, for a few iterations with few neighbours.

    The search begins close to the maximum and ends at the tolerance of the second stage, so that
    the parameters hardly depend on readings to which only the first model was fitted.
    """
    search = VecchiaSearch.around(observations, fitted, weak_prior, max_iter, execution)
    sites = np.sort(observations.pseudo_random_order[:FIRST_SITES])
    density = search.density(fitted.parameters, COARSE_NEIGHBOURS, sites)
    result, _ = search.run(
        density, fitted.parameters, COARSE_TOLERANCE, "without the readings in gaps",
        max_iter=FIRST_ITERATIONS, damping=LATE_DAMPING,
    )  # fmt: skip
    return unpack(density, result.x)


def _vector_maker(
    observations: Observations,
    first: LMCParameters,
    *,
    correlated: bool,
    output_names: Sequence[str] | None = None,
    latent_numbers: Sequence[int] | Int[Array, " Q"] | None = None,
) -> MakeVector:
    """Return a function that makes a parameter vector; `first` has the noise of step 1."""

    def make_vector(parameters: LMCParameters) -> ParameterVector:
        return ParameterVector.around(
            replace(parameters, noise=first.noise),  # which determines the bounds
            observations,
            correlated=correlated,
            output_names=output_names,
            latent_numbers=latent_numbers,
        )

    return make_vector


def _as_refined_model(fit: JointFit, max_iter: int) -> RefinedModel:
    end, vector, W = fit.result, fit.density.vector, fit.parameters.W
    members = FittedWeights(
        W[None],
        np.array([end.value - fit.density.log_prior(end.x)]),
        np.array([end.converged]),
        np.array([end.n_iter]),
    )
    history = [Stage("start", fit.values[0])]
    history += [Stage("everything", value) for value in fit.values[1:]]
    result = as_optimize_result(end, vector.bounds_around(end.x))
    message = vector.describe_end(result, max_iter)
    return RefinedModel(fit.parameters, members, history, message, vector, fit.information)
