"""The fit of a linear model of coregionalisation, from a training table to a posterior."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from emgpr.arrays import limit_threads
from emgpr.checkpoint import NO_CHECKPOINT
from emgpr.ensemble import drop_failed_members, split_sites, warn_failed_members
from emgpr.fitting.defaults import (
    MIN_SITES_PER_WEIGHT_VECTOR,
    FitSettings,
    ResolvedParams,
    resolve_params,
)
from emgpr.fitting.nested_structures import (
    better_of_nested_structures,
    tries_nested_structures,
)
from emgpr.fitting.output_order import OutputOrder
from emgpr.fitting.parameter_uncertainty import (
    independent_directions,
    with_parameter_uncertainty,
)
from emgpr.fitting.prune import prune_latents
from emgpr.fitting.stacking import stack_candidates
from emgpr.fitting.standardise import standardise
from emgpr.fitting.step_1 import fit_step_1
from emgpr.inputs import TrainingTable
from emgpr.latents import (
    Latent,
)
from emgpr.noise import noise_prior, output_variances
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import is_auto
from emgpr.prediction import (
    LMCModel,
    LMCPosterior,
    affordable_conditioning,
    bounded_conditioning,
)
from emgpr.transforms import (
    OutputScaler,
)
from emgpr.user_warnings import warn
from emgpr.weights import (
    FittedWeights,
    LMCParameters,
    RefinedModel,
    Stage,
    add_information,
    decouple_constant_outputs,
    fit_weights,
    independent_parameters,
    initial_parameters,
    refine,
    refine_with_vecchia,
    starting_points,
    subsample_batches,
    with_output_variances,
)

Array = np.ndarray
Batches = list[Int[Array, " _"]]

NOISE_FREE = 1e-4  # below this variance, the noise of a standardised output is negligible


@dataclass(frozen=True)
class FitSummary:
    """Learner, likelihood, convergence and history of a fit."""

    latent_learner: Any
    log_likelihood: float
    converged: bool
    n_iter: int
    history: list[Stage] | None = None  # None if no optimisation followed step 1
    n_members_failed: int = 0


def summary_attribute(name: str, doc: str) -> Any:
    """Return a property of estimators that reads a field of `fit_summary_`."""

    def value(estimator: BaseEstimator) -> Any:
        summary = vars(estimator).get("fit_summary_")
        found = getattr(summary, name, None)
        if found is None:
            raise AttributeError(f"This {type(estimator).__name__} has no attribute {name!r}.")
        return found

    return property(value, doc=doc)


@dataclass(frozen=True)
class FittedLMC:
    """A fitted linear model of coregionalisation."""

    params: ResolvedParams
    scaler: OutputScaler
    posterior: LMCPosterior
    summary: FitSummary


def fit_lmc(
    table: TrainingTable, settings: FitSettings, rng: np.random.Generator, execution: Execution
) -> FittedLMC:
    """Fit output transforms, latent processes, weights and noise, in this order."""
    order = OutputOrder.of_readings(table.Y, settings)
    scaler, observations = standardise(table, settings, order, execution)
    table, settings = order.table(table), order.settings(settings)
    params = resolve_params(settings, observations)
    batches = partition(observations, params, settings, rng)
    largest = max(observations.n_sites, observations.n_outputs * max(map(len, batches)))
    local = params.n_neighbours is not None and settings.latent_learner in ("auto", "vecchia")
    with limit_threads(0 if local else largest):  # Vecchia's likelihood has only small matrices
        learner, latents = fit_step_1(
            observations, table.inputs, params, settings, order, scaler, rng, execution
        )
        params, start = initialise(latents, observations, params, settings)
        fit = fit_independent if not settings.couples_outputs else fit_step_2
        batches, refined, n_failed = fit(
            observations, batches, start, latents, params, settings, order, scaler.names, execution
        )
        summary = FitSummary(
            learner,
            float(refined.members.log_likelihood.sum()),
            not refined.message and not any(latent.message for latent in latents),
            max(1, *(latent.n_iter for latent in latents), int(refined.members.n_iter.max())),
            refined.history or None,
            n_failed,
        )
    posterior = condition_on_readings(observations, batches, refined, latents, settings)
    with limit_threads(0):  # derivatives from neighbours, or from some of the sites
        posterior = _with_uncertain_parameters(posterior, refined, settings, execution)
    if settings.transfer == "auto" and observations.n_outputs > 1:
        # Left-out predictions are not stored in checkpoints.
        quiet = replace(execution, checkpoint=NO_CHECKPOINT)
        posterior = stack_candidates(posterior, refined, settings, scaler, quiet)
    scaler, posterior = order.restored_scaler(scaler), order.restored_posterior(posterior)
    return FittedLMC(params, scaler, posterior, summary)


def _with_uncertain_parameters(
    posterior: LMCPosterior, refined: RefinedModel, settings: FitSettings, execution: Execution
) -> LMCPosterior:
    """Return a posterior whose predictions include the uncertainty of the parameters."""
    known_means = not settings.normalize_y
    if settings.parameter_uncertainty and not settings.couples_outputs:
        directions = independent_directions(
            posterior.observations, posterior.model, execution, known_means=known_means
        )
        return replace(posterior, directions=directions, independent_directions=directions)
    if settings.parameter_uncertainty:
        return with_parameter_uncertainty(
            posterior, refined.information, refined.vector, execution, known_means=known_means
        )
    return posterior


def partition(
    observations: Observations,
    params: ResolvedParams,
    settings: FitSettings,
    rng: np.random.Generator,
) -> Batches:
    """Divide the sites among the members of the ensemble."""
    if params.batch_size is None:
        return [np.arange(observations.n_sites)]
    batches = split_sites(
        observations.x, params.batch_size, settings.partition, rng, params.n_members
    )
    smallest, n = min(map(len, batches)), params.n_weights
    sufficient = MIN_SITES_PER_WEIGHT_VECTOR * n
    if params.refine and len(batches) > 1 and smallest < sufficient:
        warn(
            f"Batches of {smallest} sites are too small to fit kernels and noise in addition to "
            f"{n} weights of every output; the noise may be underestimated. Set "
            f"batch_size={sufficient} or more, batch_size=None to use all sites, or refine=0 to "
            "stop after the two steps of the paper."
        )
    return batches


def initialise(
    latents: list[Latent],
    observations: Observations,
    params: ResolvedParams,
    settings: FitSettings,
) -> tuple[ResolvedParams, LMCParameters]:
    """Return the parameters of the fit, and the model from which step 2 starts."""
    start = initial_parameters(
        latents, observations, params.n_latents, params.rank, own_kernels=settings.lists_kernels
    )
    if settings.output_variances:
        start = with_output_variances(start)
    if not settings.couples_outputs:
        return params, start
    start = decouple_constant_outputs(start, observations.constant)
    variances = np.diagonal(start.noise)[~observations.constant]
    if settings.noise == "auto" and variances.min(initial=np.inf) < NOISE_FREE:
        params = replace(params, correlated=False)  # there is hardly any noise to be correlated
    return params, start


def fit_independent(
    observations: Observations,
    batches: Batches,
    start: LMCParameters,
    latents: list[Latent],
    *_: Any,
) -> tuple[Batches, RefinedModel, int]:
    """Return the independent models of step 1 as the result, without running step 2."""
    log_likelihood = sum(latent.log_likelihood for latent in latents)
    return batches, RefinedModel(start, FittedWeights.fixed(start.W[None], log_likelihood), []), 0


def fit_step_2(
    observations: Observations,
    batches: Batches,
    start: LMCParameters,
    latents: list[Latent],
    params: ResolvedParams,
    settings: FitSettings,
    order: OutputOrder,
    names: tuple[str, ...],
    execution: Execution,
) -> tuple[Batches, RefinedModel, int]:
    """Run step 2 and the optimisation that follows it; leave out members that fail."""
    if params.n_neighbours is not None:
        refined = fit_with_vecchia(observations, start, params, settings, order, names, execution)
        if refined.message:
            warn(refined.message, ConvergenceWarning)
        return batches, refined, 0
    joint = params.refine == "joint"
    # A subsample of the sites is sufficient if a joint optimisation follows.
    sites = subsample_batches(observations, batches, start.W.size) if joint else batches
    members = fit_weights(
        observations, sites, start, max_iter=settings.max_iter, before_joint=joint,
        execution=execution,
    )  # fmt: skip
    L, message = len(batches), members.message
    if not members.succeeded.all():
        batches, members = drop_failed_members(batches, members, L)

    def improve(parameters: LMCParameters, members: FittedWeights) -> RefinedModel:
        return refine_weights(
            observations, batches, parameters, members, params, settings, order, names, execution
        )

    def refit(parameters: LMCParameters, W: Float[Array, "L Q D k"]) -> RefinedModel:
        members = FittedWeights.fixed(W)
        if not joint:
            members = fit_weights(
                observations, batches, parameters, W=W, max_iter=settings.max_iter,
                execution=execution.quiet(),
            )  # fmt: skip
        return improve(parameters, members)

    refined = improve(start, members)
    if is_auto(settings.n_latents):
        refined = prune_latents(observations, refined, refit, device=execution.device)
    members = refined.members
    if not members.succeeded.all():
        batches, members = drop_failed_members(batches, members, L)
    n_failed = L - len(batches)
    if n_failed:
        warn_failed_members(len(batches), L, message or members.message)
    if refined.message:
        warn(refined.message, ConvergenceWarning)
    return batches, replace(refined, members=members), n_failed


def fit_with_vecchia(
    observations: Observations,
    start: LMCParameters,
    params: ResolvedParams,
    settings: FitSettings,
    order: OutputOrder,
    names: tuple[str, ...],
    execution: Execution,
) -> RefinedModel:
    """Optimise all parameters jointly with Vecchia's likelihood, which replaces step 2."""
    assert params.n_neighbours is not None
    optimise = partial(
        refine_with_vecchia,
        observations,
        n_neighbours=params.n_neighbours,
        correlated=params.correlated,
        weak_prior=settings.prior == "weak",
        max_iter=settings.max_iter,
        with_information=settings.parameter_uncertainty,
        output_names=names,
        latent_numbers=order.latent_numbers(len(start.kernels)),
        execution=execution,
    )

    def refit(parameters: LMCParameters, W: Float[Array, "1 Q D k"]) -> RefinedModel:
        # Latent processes have been removed, so the numbers of the others are unknown.
        return optimise({"": replace(parameters, W=W[0])}, latent_numbers=None)

    points = starting_points(
        start, observations, correlated=params.correlated, own_kernels=settings.lists_kernels
    )
    refined = optimise(points)
    if tries_nested_structures(observations, settings):
        refined = better_of_nested_structures(refined, observations, optimise)
    if is_auto(settings.n_latents):
        refined = prune_latents(observations, refined, refit, device=execution.device)
    message = f"Joint optimisation: {refined.message}." if refined.message else ""
    return replace(refined, message=message)


def refine_weights(
    observations: Observations,
    batches: Batches,
    start: LMCParameters,
    members: FittedWeights,
    params: ResolvedParams,
    settings: FitSettings,
    order: OutputOrder,
    names: tuple[str, ...],
    execution: Execution,
) -> RefinedModel:
    """Continue the optimisation after step 2 unless `refine` is 0."""
    weak_prior = settings.prior == "weak"
    if params.refine:
        refined = refine(
            observations, batches, start, members, sweeps=params.refine,
            correlated=params.correlated, weak_prior=weak_prior, max_iter=settings.max_iter,
            output_names=names, latent_numbers=order.latent_numbers(len(start.kernels)),
            output_columns=order.columns, execution=execution,
        )  # fmt: skip
        if settings.parameter_uncertainty and refined.vector is not None:
            refined = add_information(
                observations, refined, weak_prior=weak_prior, execution=execution
            )
        message = f"Refinement: {refined.message}." if refined.message else ""
        return replace(refined, message=message)
    n_unconverged = int((~members.converged).sum())
    message = (
        f"Step 2: {n_unconverged} of {len(batches)} members did not converge within "
        f"max_iter={settings.max_iter}; increase max_iter."
    )
    log_prior = noise_prior(output_variances(observations), weak_prior)(start.noise)[0]
    stage = Stage("weights", float(members.log_likelihood.sum() + log_prior))
    return RefinedModel(start, members, [stage], message if n_unconverged else "")


def condition_on_readings(
    observations: Observations,
    batches: Batches,
    refined: RefinedModel,
    latents: list[Latent],
    settings: FitSettings,
) -> LMCPosterior:
    """Return the posterior of the fitted model given the readings."""
    parameters = refined.parameters
    model = LMCModel(tuple(parameters.kernels), refined.members.W, parameters.noise)
    conditioning = settings.conditioning
    automatic = is_auto(conditioning)
    if automatic:
        conditioning = affordable_conditioning(observations, model)
    else:
        conditioning = bounded_conditioning(conditioning, observations)
    return LMCPosterior(
        observations,
        model,
        tuple(batches),
        conditioning,
        settings.combine,
        automatic,
        independent_model(latents, observations),
    )


def independent_model(latents: list[Latent], observations: Observations) -> LMCModel:
    """Return the model without transfer that was fitted in step 1."""
    start = independent_parameters(latents, observations.n_outputs)
    start = decouple_constant_outputs(start, observations.constant)
    return LMCModel(start.kernels, start.W[None], start.noise)
