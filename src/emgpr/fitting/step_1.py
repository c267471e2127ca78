"""Step 1 of a fit: a kernel and a noise variance for each output, fitted separately."""

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from emgpr.fitting.defaults import FitSettings, ResolvedParams
from emgpr.fitting.input_columns import (
    are_coordinates,
    describe_ignored_columns,
    left_out_log_density,
)
from emgpr.fitting.output_order import OutputOrder
from emgpr.inputs import InputSpec
from emgpr.latents import (
    BaseLearner,
    Latent,
    LatentLearner,
    choose_kernels,
    choose_learner,
    fit_external_latents,
    fit_latents,
    is_external,
    learner_by_name,
)
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import kernels_per_output
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn


def fit_step_1(
    observations: Observations,
    inputs: InputSpec,
    params: ResolvedParams,
    settings: FitSettings,
    order: OutputOrder,
    scaler: OutputScaler,
    rng: np.random.Generator,
    execution: Execution,
) -> tuple[Any, list[Latent]]:
    """Run step 1, which fits each output separately; return its learner and latent processes."""
    kernels = kernels_per_output(settings.kernel, params.n_latents, observations)
    learner = choose_learner(settings.latent_learner, observations)
    if is_external(learner):
        if len(kernels) > observations.n_outputs:
            raise ValueError(
                f"latent_learner provides one process for each of {observations.n_outputs} "
                f"outputs, but kernel is a list of {len(kernels)} kernels; pass one kernel, or set "
                "latent_learner='exact'."
            )
        latents = fit_external_latents(
            observations, learner, kernels, scaler.scale, execution=execution
        )
    else:
        fit = partial(
            fit_latents,
            observations,
            learner=seeded_learner(learner, settings.random_state, rng),
            n_restarts=settings.n_restarts,
            max_iter=settings.max_iter,
            rng=rng,
            weak_prior=settings.prior == "weak",
            execution=execution,
        )
        if settings.chooses_kernel:
            latents = choose_kernels(
                observations,
                partial(fit, tables={}),
                coordinates=are_coordinates(inputs, observations.x),
                left_out_density=partial(left_out_log_density, observations),
            )
        else:
            message = describe_ignored_columns(kernels, inputs, observations.x, automatic=True)
            if message:
                warn(message)
            latents = fit(kernels)
    D = len(scaler.names)
    for i in sorted(range(len(latents)), key=lambda i: (i // D, order.columns[i % D])):
        if latents[i].message:
            text = f"Step 1 of output {scaler.names[i % D]!r}: {latents[i].message}."
            warn(text, ConvergenceWarning)
    return learner, latents


def seeded_learner(
    learner: str | LatentLearner, random_state: Any, rng: np.random.Generator
) -> LatentLearner:
    """Return the learner; one given by its name has the seed of the estimator, if it uses one."""
    found = learner_by_name(learner)
    named = isinstance(learner, str)
    if named and isinstance(found, BaseLearner) and "random_state" in found.get_params():
        seed = random_state if isinstance(random_state, Integral) else rng.integers(2**31)
        found.set_params(random_state=int(seed))
    return found
