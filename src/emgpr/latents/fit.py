"""Step 1: fitting a kernel and a noise variance to every output with any learner."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.base import Latent, LatentLearner
from emgpr.latents.checks import describe_invalid_latent
from emgpr.latents.exact import Exact
from emgpr.latents.external import Borrowed, as_borrowed
from emgpr.latents.maximum_likelihood import (
    LikelihoodLearner,
    Tables,
    constant_output_latent,
    maximise_likelihoods,
    split_signal_kernel,
)
from emgpr.latents.registry import LEARNERS
from emgpr.latents.search_space import SiteDistances, search_space
from emgpr.latents.starts import WarmStart
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map

MAX_EXACT_READINGS = 400  # readings of an output up to which "auto" means "exact"


def choose_learner(given: Any, observations: Observations) -> Any:
    """Return the name of the learner that "auto" stands for; return other learners unchanged."""
    if not (isinstance(given, str) and given == "auto"):
        return given
    n = int(observations.observed.sum(axis=1).max())
    return "exact" if n <= MAX_EXACT_READINGS else "vecchia"


def is_external(learner: Any) -> bool:
    """Tell whether a learner is a model of another library, or a list of such models."""
    listed = learner if isinstance(learner, list | tuple) else [learner]
    return all(isinstance(model, Borrowed | GaussianProcessRegressor) for model in listed)


def learner_by_name(learner: str | LatentLearner) -> LatentLearner:
    """Create a learner from its name; if a learner object is given, return it unchanged."""
    return LEARNERS[learner]() if isinstance(learner, str) else learner


def learners_per_output(learner: Any, n_outputs: int) -> list[LatentLearner]:
    """Return one learner for each output, given a single learner or a list of external models."""
    if is_external(learner):
        return [*as_borrowed(learner, n_outputs)]
    return [learner_by_name(learner)] * n_outputs


def fit_latents(
    observations: Observations,
    kernels: Sequence[Kernel],
    learner: LatentLearner | None = None,
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    weak_prior: bool = False,
    execution: Execution = DEFAULT_EXECUTION,
    outputs: Sequence[int] | None = None,
    starts: Sequence[WarmStart | None] | None = None,
    tables: Tables | None = None,
) -> list[Latent]:
    """Fit `kernels[i]` and a noise variance to `outputs[i]`, or to output i mod D, for every i.

    The learner is `Exact` by default. A learner that maximises a likelihood uses the settings
    passed here, including the weak prior on the noise, and fits several outputs together. Other
    learners are called for each output separately and use their own settings. `starts` and `tables`
    are those of `maximise_likelihoods`.
    """
    learner = Exact() if learner is None else learner
    if isinstance(learner, LikelihoodLearner):
        return maximise_likelihoods(
            observations,
            kernels,
            learner,
            n_restarts=n_restarts,
            max_iter=max_iter,
            rng=rng,
            weak_prior=weak_prior,
            execution=execution,
            outputs=outputs,
            starts=starts,
            tables=tables,
        )
    D = observations.n_outputs
    outputs = [i % D for i in range(len(kernels))] if outputs is None else outputs
    varies = [not observations.constant[d] for d in outputs]
    problems = [
        (learner, observations.output(d), kernel)
        for d, kernel, varying in zip(outputs, kernels, varies, strict=True)
        if varying
    ]
    fitted = iter(parallel_map(_learn, problems, execution, label="Step 1: outputs"))
    return [
        next(fitted) if varying else _constant_output(observations, d, kernel, weak_prior)
        for d, kernel, varying in zip(outputs, kernels, varies, strict=True)
    ]


def _learn(problem: tuple[LatentLearner, Observations, Kernel]) -> Latent:
    """Return the learner's result for one output; raise an error if it is invalid."""
    learner, table, kernel = problem
    latent = learner.learn(table.x, table.y[0], kernel)
    wrong = describe_invalid_latent(latent, table.x)
    if wrong:
        raise ValueError(
            f"latent_learner={learner!r}: its method learn returned {wrong}. Run "
            "emgpr.latents.check_learner(learner) to check all requirements."
        )
    return latent


def _constant_output(
    observations: Observations, d: int, kernel: Kernel, weak_prior: bool
) -> Latent:
    """Return a kernel and a noise variance for an output whose readings are all equal."""
    signal, white = split_signal_kernel(kernel)
    distances = SiteDistances.in_table(observations)
    search = search_space(signal, white, distances, 1, np.random.default_rng(0))
    n = int(observations.observed[d].sum())
    return constant_output_latent(signal, search, n, weak_prior)
