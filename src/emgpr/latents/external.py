"""Step 1 using other libraries: scikit-learn's regressor (as in the paper) or GPyTorch models."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from emgpr.kernels import split_noise
from emgpr.latents.base import BaseLearner, Evaluations, Latent, Work
from emgpr.latents.gpytorch_kernels import as_number, as_sklearn_kernel
from emgpr.latents.product_of_experts import batch_log_likelihood
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map

Array = np.ndarray

# Measured values for planning: number of evaluations in one search of scikit-learn's regressor, and
# the time of an evaluation relative to that in this package.
EVALUATIONS, RELATIVE_TIME = 30, 2


@runtime_checkable
class ExactGPyTorchModel(Protocol):
    """The attributes of GPyTorch's ExactGP that are used here."""

    covar_module: Any
    likelihood: Any


GPyTorchModel: TypeAlias = ExactGPyTorchModel | tuple[Any, Any]


@dataclass
class Borrowed(BaseLearner):
    """Learner that takes the kernel and the noise variance from a model of another library.

    A model that is already fitted must have been fitted to outputs in original units. The
    estimators convert its kernel and noise variance to the standardised scale. A function receives
    standardised outputs.

    Parameters
    ----------
    lender : GaussianProcessRegressor, GPyTorch model, or function
        One of

        - a GaussianProcessRegressor. If it is not fitted, a clone of it is fitted to every output.
          If its kernel is None, the clone uses the kernel of the output plus a WhiteKernel.
        - a trained GPyTorch model: an ExactGP, or a pair of an ApproximateGP (such as one trained
          by stochastic variational inference) and its likelihood.
        - a function that receives the sites x and the readings y of an output, fits one of these
          models to them, and returns the fitted model.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> def fit_every_second(x, y):
    ...     return GaussianProcessRegressor(RBF(), alpha=0.01).fit(x[::2], y[::2])
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> Borrowed(fit_every_second).learn(x, np.sqrt(2) * np.sin(x[:, 0]), RBF()).noise
    0.01
    """

    lender: Any

    def __sklearn_clone__(self) -> "Borrowed":
        # A fitted lender must be kept, but scikit-learn's clone would discard what was fitted.
        return deepcopy(self)

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to one output; both are in the units of y."""
        return _learn((0, Observations.of_one_output(x, y), self, kernel, 1.0))

    def check_settings(self) -> None:
        """Raise ValueError unless `lender` is a supported model or a function."""
        if not (self.is_fitted or self.is_unfitted_regressor or callable(self.lender)):
            raise ValueError(
                f"Borrowed({self.lender!r}): expected a GaussianProcessRegressor, a trained "
                "GPyTorch model (an ApproximateGP as a pair with its likelihood), or a function of "
                "(x, y) that returns one of these."
            )

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        if self.is_unfitted_regressor:
            times = RELATIVE_TIME * EVALUATIONS * (1 + int(self.lender.n_restarts_optimizer))
            search = Evaluations(times, likelihoods=1, n_readings=n)
            return Work("scikit-learn's regressor", n, 1, EVALUATIONS, (search,), ((n, 1),))
        if self.is_fitted:
            return Work("already fitted by another library", n, 1, 0, ())
        return Work("user-defined function", n, 1, 0, None)

    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact."""
        if self.is_unfitted_regressor:
            return ""
        return "fitted elsewhere; its distance from the maximum of the likelihood is unknown"

    @property
    def is_fitted(self) -> bool:
        """Whether `lender` is a model that is already fitted."""
        return is_gpytorch_model(self.lender) or is_fitted_regressor(self.lender)

    @property
    def is_unfitted_regressor(self) -> bool:
        """Whether `lender` is a regressor that will be fitted to all readings."""
        return isinstance(self.lender, GaussianProcessRegressor) and not self.is_fitted


ExternalLearners: TypeAlias = (
    Borrowed | GaussianProcessRegressor | Sequence[Borrowed | GaussianProcessRegressor]
)


def as_borrowed(learners: ExternalLearners, n_outputs: int) -> list[Borrowed]:
    """Return one external learner per output; raise an error if a list has the wrong length."""
    listed: list[Any] = (
        list(learners) if isinstance(learners, list | tuple) else [learners] * n_outputs
    )
    if len(listed) != n_outputs:
        raise ValueError(
            f"latent_learner is a list of {len(listed)} regressors for {n_outputs} outputs; pass "
            "one GaussianProcessRegressor for all, or a list with one for each output."
        )
    return [model if isinstance(model, Borrowed) else Borrowed(model) for model in listed]


def fit_external_latents(
    observations: Observations,
    learners: ExternalLearners,
    kernels: Sequence[Kernel],
    scales: Float[Array, " D"],
    *,
    execution: Execution = DEFAULT_EXECUTION,
) -> list[Latent]:
    """Fit a kernel and a noise variance to every output using other libraries.

    `learners` is one learner for all outputs, or a list with one learner for each output. Outputs
    in original units are standardised outputs multiplied by `scales`. These factors are used to
    convert models that are already fitted, which are in original units.
    """
    problems = [
        (d, observations.output(d), learner, kernels[d], float(scales[d]))
        for d, learner in enumerate(as_borrowed(learners, observations.n_outputs))
    ]
    return parallel_map(_learn, problems, execution, label="Step 1: outputs")


def _learn(problem: tuple[int, Observations, Borrowed, Kernel, float]) -> Latent:
    """Return the kernel and the noise variance of output d, on the standardised scale."""
    d, table, learner, kernel, scale = problem
    learner.check_settings()
    model, x, y = learner.lender, table.x, table.y[0]
    if learner.is_unfitted_regressor:
        initial = kernel + WhiteKernel(0.1) if model.kernel is None else model.kernel
        model, d, scale = clone(model).set_params(kernel=initial).fit(x, y), 0, 1.0
    elif not learner.is_fitted:
        model, d, scale = model(x, y), 0, 1.0
    if is_fitted_regressor(model):
        return _from_regressor(model, x.shape[1], d, scale)
    if is_gpytorch_model(model):
        return _from_gpytorch(model, x, y, scale)
    raise ValueError(
        f"Borrowed({learner.lender!r}) returned {model!r}; expected a fitted "
        "GaussianProcessRegressor or a trained GPyTorch model (an ApproximateGP as a pair with its "
        "likelihood)."
    )


def _from_regressor(
    regressor: GaussianProcessRegressor, n_columns: int, d: int, scale: float
) -> Latent:
    if getattr(regressor, "n_features_in_", n_columns) != n_columns:
        raise ValueError(
            f"latent_learner was fitted to {regressor.n_features_in_} input columns, but X has "
            f"{n_columns}; pass a regressor that was fitted to the same inputs."
        )
    if np.ndim(regressor.alpha) > 0:
        raise ValueError(
            "latent_learner has a noise variance for every row (alpha is an array); expected one "
            "noise variance for each output. Use a WhiteKernel or a single alpha."
        )
    signal, white = split_noise(regressor.kernel_)
    if signal is None:
        raise ValueError(
            f"latent_learner has the kernel {regressor.kernel_}, which has no signal; add a "
            "kernel for the signal, such as RBF() or Matern(nu=1.5)."
        )
    noise = regressor.alpha + (0.0 if white is None else white.noise_level)
    # The regressor divided each output by its element of _y_train_std before fitting the kernel.
    stds = np.ravel(regressor._y_train_std)
    signal, noise = _rescale(signal, noise, float(stds[min(d, len(stds) - 1)]) / scale)
    return Latent(signal, noise, float(regressor.log_marginal_likelihood_value_))


def is_fitted_regressor(lender: object) -> bool:
    """Tell whether an object is a fitted GaussianProcessRegressor."""
    return isinstance(lender, GaussianProcessRegressor) and hasattr(lender, "kernel_")


def is_gpytorch_model(lender: object) -> TypeGuard[GPyTorchModel]:
    """Tell whether an object is a GPyTorch model, or a pair of a model and its likelihood."""
    if isinstance(lender, tuple) and len(lender) == 2:
        return hasattr(lender[0], "covar_module") and hasattr(lender[1], "noise")
    return isinstance(lender, ExactGPyTorchModel)


def _from_gpytorch(
    trained: GPyTorchModel, x: Float[Array, "n P"], y: Float[Array, " n"], scale: float
) -> Latent:
    gp, likelihood = trained if isinstance(trained, tuple) else (trained, trained.likelihood)
    signal, noise = as_sklearn_kernel(gp.covar_module), as_number(likelihood.noise)
    signal, noise = _rescale(signal, noise, 1 / scale)
    log_likelihood, n = batch_log_likelihood(x, y, signal, noise)
    return Latent(signal, noise, log_likelihood, n_readings=n)


def _rescale(kernel: Kernel, noise: float, factor: float) -> tuple[Kernel, float]:
    """Return the kernel and the noise variance after multiplying the output by `factor`."""
    if not np.isclose(factor**2, 1.0, rtol=1e-9):
        kernel = ConstantKernel(factor**2, "fixed") * kernel
    return kernel, float(noise * factor**2)
