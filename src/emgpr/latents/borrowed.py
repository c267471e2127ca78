"""Step 1 by scikit-learn's own GaussianProcessRegressor, as in the paper."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.execution import each
from emgpr.kernels import without_noise
from emgpr.latents.latent import Latent
from emgpr.observations import Observations

Array = np.ndarray


def borrow_latents(
    seen: Observations,
    learners: GaussianProcessRegressor | Sequence[GaussianProcessRegressor],
    kernels: Sequence[Kernel],
    scales: Float[Array, " D"],
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[Latent]:
    """Kernel and noise of every task from regressors: one for all tasks, or one each.

    A fitted regressor gives what it learned, brought from the units of the
    outputs it was fitted on to ours by `scales` (ours in theirs); an unfitted
    one is cloned and fitted to every task, with the task's kernel and a
    WhiteKernel if it has no kernel of its own.
    """
    D = seen.n_tasks
    if isinstance(learners, GaussianProcessRegressor):
        learners = [learners] * D
    if len(learners) != D:
        raise ValueError(
            f"latent_learner holds {len(learners)} regressors for {D} outputs; give one "
            "GaussianProcessRegressor for all, or a list with one for each output."
        )
    problems = [(d, seen.task(d), learners[d], kernels[d], float(scales[d])) for d in range(D)]
    learned = each(
        _learn, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose, ledger=ledger
    )
    return [_latent(problem, *found) for problem, found in zip(problems, learned, strict=True)]


_Problem = tuple[int, Observations, GaussianProcessRegressor, Kernel, float]


def _learn(problem: _Problem) -> tuple[Array, Array, float]:
    """Logarithms of the kernel's parameters, standard deviations it divides by, log-likelihood."""
    _, table, learner, kernel, _ = problem
    if not hasattr(learner, "kernel_"):
        learner = clone(learner).set_params(kernel=_own(learner, kernel))
        learner.fit(table.x, table.y[0])
    elif learner.n_features_in_ != table.x.shape[1]:
        raise ValueError(
            f"latent_learner was fitted to {learner.n_features_in_} input columns and X has "
            f"{table.x.shape[1]}."
        )
    stds = np.ravel(learner._y_train_std)  # one for each output it was fitted to
    return learner.kernel_.theta, stds, float(learner.log_marginal_likelihood_value_)


def _own(learner: GaussianProcessRegressor, kernel: Kernel) -> Kernel:
    return kernel + WhiteKernel(0.1) if learner.kernel is None else learner.kernel


def _latent(problem: _Problem, theta: Array, stds: Array, log_likelihood: float) -> Latent:
    """What was learned, in our units."""
    d, _, learner, kernel, scale = problem
    if hasattr(learner, "kernel_"):
        learned = learner.kernel_
    else:
        learned = _own(learner, kernel).clone_with_theta(theta)
        d, scale = 0, 1.0
    if np.ndim(learner.alpha) > 0:
        raise ValueError(
            "latent_learner has a noise variance for every row (alpha is an array); "
            "each output has one noise here. Use a WhiteKernel or a single alpha."
        )
    # Its kernel lives on outputs divided by _y_train_std; ours on outputs divided by `scale`.
    unit = float(stds[min(d, len(stds) - 1)] / scale) ** 2
    bare, white = without_noise(learned)
    noise = learner.alpha + (0.0 if white is None else white.noise_level)
    if bare is None:
        raise ValueError(f"latent_learner's kernel {learned} is nothing but noise.")
    if not np.isclose(unit, 1.0, rtol=1e-9):
        bare = ConstantKernel(unit, "fixed") * bare
    return Latent(bare, float(noise * unit), log_likelihood)
