"""Step 1 by scikit-learn's own GaussianProcessRegressor, as in the paper."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

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
    return each(_borrow, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose)


def _borrow(problem: tuple[int, Observations, GaussianProcessRegressor, Kernel, float]) -> Latent:
    d, table, learner, kernel, scale = problem
    if not hasattr(learner, "kernel_"):
        own = learner.kernel if learner.kernel is not None else kernel + WhiteKernel(0.1)
        learner = clone(learner).set_params(kernel=own)
        learner.fit(table.x, table.y[0])
        d, scale = 0, 1.0
    elif learner.n_features_in_ != table.x.shape[1]:
        raise ValueError(
            f"latent_learner was fitted to {learner.n_features_in_} input columns and X has "
            f"{table.x.shape[1]}."
        )
    if np.ndim(learner.alpha) > 0:
        raise ValueError(
            "latent_learner has a noise variance for every row (alpha is an array); "
            "each output has one noise here. Use a WhiteKernel or a single alpha."
        )
    # Its kernel lives on outputs divided by _y_train_std; ours on outputs divided by `scale`.
    stds = np.ravel(learner._y_train_std)  # one for each output it was fitted to
    unit = float(stds[min(d, len(stds) - 1)] / scale) ** 2
    bare, white = without_noise(learner.kernel_)
    noise = learner.alpha + (0.0 if white is None else white.noise_level)
    if bare is None:
        raise ValueError(f"latent_learner's kernel {learner.kernel_} is nothing but noise.")
    if not np.isclose(unit, 1.0, rtol=1e-9):
        bare = ConstantKernel(unit, "fixed") * bare
    return Latent(bare, float(noise * unit), float(learner.log_marginal_likelihood_value_))
