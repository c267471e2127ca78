"""The mixture of candidate models that predicts each output, for transfer="auto"."""

from dataclasses import replace
from functools import partial

import numpy as np

from emgpr.arrays import limit_threads
from emgpr.fitting.defaults import FitSettings
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.prediction import LMCModel, LMCPosterior
from emgpr.stacking import StackedPosterior, fit_stack
from emgpr.stacking.scores import LeftOutScores
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn
from emgpr.weights import RefinedModel, refit_roughly

Array = np.ndarray


def stack_candidates(
    posterior: LMCPosterior,
    refined: RefinedModel,
    settings: FitSettings,
    scaler: OutputScaler,
    execution: Execution,
) -> StackedPosterior:
    """Fit the weights of own processes, joint model and regressions.

    The parts of a whole are predicted by the joint model, or by their own processes if there is
    none: the distribution of a part depends on the correlations of the parts.
    """
    parts = {d for composition in scaler.compositions for d in composition.outputs}
    if parts and not settings.couples_outputs:
        named = ", ".join(str(name) for whole in settings.compositions or () for name in whole)
        warn(
            f"The parts of a whole ({named}) are predicted by their own processes, without known "
            "outputs: regressions would not preserve the total. EMGPR predicts the parts "
            "from known outputs."
        )
    # Predictions need few of the trees that are built here.
    scored = replace(posterior, observations=posterior.observations.with_temporary_trees())
    scores = LeftOutScores(
        scored, settings.couples_outputs, n_parameters(posterior.model), execution.quiet()
    )
    refit = None
    if refined.vector is not None:
        refit = partial(_refit, refined, settings, execution.quiet())
    stack = fit_stack(
        scored,
        scores,
        kernel=settings.residual_kernel,
        varying=settings.varying_coefficients,
        refit=refit,
        not_stacked=parts,
    )
    return StackedPosterior.extending(posterior, stack)


def n_parameters(model: LMCModel) -> int:
    """Return the number of parameters of a member: weights, noise and kernels."""
    D = len(model.noise)
    n_noises = D * (D + 1) // 2 if model.correlated_noise else D
    return int(model.weights[0].size) + n_noises + sum(k.n_dims for k in model.kernels)


@limit_threads(0)  # Vecchia's likelihood has only small matrices
def _refit(
    refined: RefinedModel,
    settings: FitSettings,
    execution: Execution,
    observations: Observations,
) -> LMCModel:
    """Fit the joint model roughly to other readings."""
    parameters = refit_roughly(
        observations,
        refined,
        weak_prior=settings.prior == "weak",
        max_iter=settings.max_iter,
        execution=execution,
    )
    return LMCModel(tuple(parameters.kernels), parameters.W[None], parameters.noise)
