"""Step 1 by another library: scikit-learn's regressor, as in the paper, or GPyTorch's models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.execution import each
from emgpr.kernels import without_noise
from emgpr.latents.latent import Latent
from emgpr.latents.poe import likelihood_of_batches
from emgpr.latents.translated import number, translated
from emgpr.observations import Observations

Array = np.ndarray


@dataclass(frozen=True)
class Borrowed:
    """What another library learns of a task, or has learned. The lender is one of

    - a GaussianProcessRegressor: fitted, or else cloned and fitted to every task, with the task's
      kernel and a WhiteKernel if it has no kernel of its own;
    - a trained model of GPyTorch's: an ExactGP, or a pair of an ApproximateGP (such as one trained
      by stochastic variational inference) and its likelihood;
    - a function of yours that takes (x, y) of a task and gives one of these, trained.

    What was trained before has learned from outputs in units of its own, which the estimators bring
    to theirs; a function is given standardised outputs.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> def on_every_second(x, y):
    ...     return GaussianProcessRegressor(RBF(), alpha=0.01).fit(x[::2], y[::2])
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> Borrowed(on_every_second).learn(x, np.sqrt(2) * np.sin(x[:, 0]), RBF()).noise
    0.01
    """

    lender: Any

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Kernel and noise of one task, in the units of y."""
        table = Observations(x, y[None], np.ones((1, len(y)), bool))
        return _learn((0, table, self, kernel, 1.0))


Lenders: TypeAlias = (
    Borrowed | GaussianProcessRegressor | Sequence[Borrowed | GaussianProcessRegressor]
)


def is_lent(learner: Any) -> bool:
    """Whether this is another library's: one for all tasks, or a list with one for each."""
    listed = isinstance(learner, list | tuple)
    return all(
        isinstance(own, Borrowed | GaussianProcessRegressor)
        for own in (learner if listed else [learner])
    )


def borrow_latents(
    seen: Observations,
    lenders: Lenders,
    kernels: Sequence[Kernel],
    scales: Float[Array, " D"],
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[Latent]:
    """Kernel and noise of every task from other libraries: one lender for all tasks, or one each.

    What was trained before is brought from the units of the outputs it was trained on to ours by
    `scales` (ours in theirs).
    """
    D = seen.n_tasks
    listed: list[Any] = list(lenders) if isinstance(lenders, list | tuple) else [lenders] * D
    if len(listed) != D:
        raise ValueError(
            f"latent_learner holds {len(listed)} regressors for {D} outputs; give one "
            "GaussianProcessRegressor for all, or a list with one for each output."
        )
    own = [lender if isinstance(lender, Borrowed) else Borrowed(lender) for lender in listed]
    problems = [(d, seen.task(d), own[d], kernels[d], float(scales[d])) for d in range(D)]
    return each(
        _learn, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose, ledger=ledger
    )


def _learn(problem: tuple[int, Observations, Borrowed, Kernel, float]) -> Latent:
    """What the lender learns of task d, or has learned, in our units."""
    d, table, borrowed, kernel, scale = problem
    trained, x, y = borrowed.lender, table.x, table.y[0]
    if isinstance(trained, GaussianProcessRegressor) and not hasattr(trained, "kernel_"):
        own = kernel + WhiteKernel(0.1) if trained.kernel is None else trained.kernel
        trained, d, scale = clone(trained).set_params(kernel=own).fit(x, y), 0, 1.0
    elif not (is_trained(trained) or isinstance(trained, GaussianProcessRegressor)):
        if not callable(trained):
            raise ValueError(
                f"Borrowed({trained!r}): expected a GaussianProcessRegressor, a trained GPyTorch "
                "model (of an ApproximateGP: a pair with its likelihood), or a function of (x, y) "
                "that gives one of these."
            )
        trained, d, scale = trained(x, y), 0, 1.0
    if isinstance(trained, GaussianProcessRegressor) and hasattr(trained, "kernel_"):
        return _of_regressor(trained, x.shape[1], d, scale)
    if is_trained(trained):
        return _of_gpytorch(trained, x, y, scale)
    raise ValueError(
        f"Borrowed({borrowed.lender!r}) gave {trained!r}; expected a GaussianProcessRegressor that "
        "was fitted, or a trained GPyTorch model (of an ApproximateGP: a pair with its likelihood)."
    )


def _of_regressor(
    learner: GaussianProcessRegressor, n_columns: int, d: int, scale: float
) -> Latent:
    if getattr(learner, "n_features_in_", n_columns) != n_columns:
        raise ValueError(
            f"latent_learner was fitted to {learner.n_features_in_} input columns and X has "
            f"{n_columns}."
        )
    if np.ndim(learner.alpha) > 0:
        raise ValueError(
            "latent_learner has a noise variance for every row (alpha is an array); "
            "each output has one noise here. Use a WhiteKernel or a single alpha."
        )
    bare, white = without_noise(learner.kernel_)
    if bare is None:
        raise ValueError(f"latent_learner's kernel {learner.kernel_} is nothing but noise.")
    noise = learner.alpha + (0.0 if white is None else white.noise_level)
    # Its kernel lives on outputs divided by _y_train_std, one for each output it was fitted to.
    stds = np.ravel(learner._y_train_std)
    bare, noise = _in_units(bare, noise, float(stds[min(d, len(stds) - 1)]) / scale)
    return Latent(bare, noise, float(learner.log_marginal_likelihood_value_))


def is_trained(model: Any) -> bool:
    """Whether it looks like a model of GPyTorch's, or a pair of one and its likelihood."""
    if isinstance(model, tuple) and len(model) == 2:
        return hasattr(model[0], "covar_module") and hasattr(model[1], "noise")
    return hasattr(model, "covar_module") and hasattr(model, "likelihood")


def _of_gpytorch(model: Any, x: Float[Array, "n P"], y: Float[Array, " n"], scale: float) -> Latent:
    gp, likelihood = model if isinstance(model, tuple) else (model, model.likelihood)
    kernel, noise = _in_units(translated(gp.covar_module), number(likelihood.noise), 1 / scale)
    height, n = likelihood_of_batches(x, y, kernel, noise)
    return Latent(kernel, noise, height, n_readings=n)


def _in_units(kernel: Kernel, noise: float, unit: float) -> tuple[Kernel, float]:
    """Both for outputs that are `unit` times as large."""
    if not np.isclose(unit**2, 1.0, rtol=1e-9):
        kernel = ConstantKernel(unit**2, "fixed") * kernel
    return kernel, float(noise * unit**2)
