"""The estimator OnePassGP, which reads the data once and keeps only sums over the sites."""

from dataclasses import KW_ONLY, field, fields
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance import coregionalization
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.base import GPRegressor
from emgpr.fitting.input_columns import describe_ignored_columns
from emgpr.fourier.accumulate import Chunk, Columns
from emgpr.fourier.dask_accumulate import LazyChunk
from emgpr.fourier.fit import FourierFit, absorb, check_truncation, optimise, start_fit
from emgpr.fourier.grid import FourierSums
from emgpr.fourier.model import latent_shares
from emgpr.fourier.posterior import FourierPosterior
from emgpr.fourier.settings import FourierSettings
from emgpr.inputs import is_lazy, observed_warnings
from emgpr.inputs.convert import check_stray_coordinates
from emgpr.inputs.data_warnings import input_warnings, output_warnings
from emgpr.inputs.validate import check_each_output_observed
from emgpr.model_files.fourier_state import (
    check_fourier_state,
    fit_from_state,
    fourier_state,
    upgrade_fourier_state,
)
from emgpr.parallel import RandomState, as_generator
from emgpr.parameter_checks import Kernels, Transforms
from emgpr.user_warnings import warn
from emgpr.weights import LMCParameters, Stage

Array = np.ndarray


@declare_parameters
class OnePassGP(GPRegressor):
    """Multi-output regression in one pass over any number of sites.

    The model is that of `EMGPR`: weighted sums of latent Gaussian processes plus noise. The
    processes are represented by Fourier features on a box around the region. Likelihood and
    predictions then depend on the data only through sums of features over sites: a few thousand
    numbers, which are computed once, chunk by chunk. Optimisation and predictions take the same
    time for 10⁷ sites as for 10³. No data are stored, and the sums over some of the chunks can be
    computed by other processes or machines.

    The estimator is suitable for up to three inputs, and for smooth or long-range fields. With two
    inputs, 750 features can represent length-scales down to a twentieth of the region's width for
    an RBF kernel, and down to a fifth for Matern(nu=2.5). Variance that the features do not
    represent (`left_out_`) is added to the uncertainty. See docs/one-pass.md.

    The estimator passes scikit-learn's estimator checks, except for ten checks that fit four or
    more inputs; it passes these with two of their inputs.

    Parameters
    ----------
    kernel : scikit-learn kernel, list of kernels or name, default RBF()
        Kernels of the latent processes: RBF, Matern, their sums, and sums and products with a
        ConstantKernel. A list has one kernel for each process; names are those of `EMGPR`.
    n_latents : int or None
        Number of latent processes; None means one for each output.
    rank : int or None
        Number of weight vectors of each latent process; None means 2, or 1 for a single output.
    noise : {"correlated", "independent"}
        Whether the noise terms of different outputs at a site can be correlated.
    box : "auto" or (lows, highs)
        Lower and upper bounds of the region, with one number for each input (for longitude and
        latitude, three coordinates in km on the sphere). Locations far outside the box cannot be
        used for a fit or predictions. "auto" is a box around the data or, with `partial_fit`,
        around the first chunk.
    tolerance : float
        Largest share of an output's variance that the features may fail to represent. The actual
        share is smaller if this takes little more time.
    n_functions : "auto" or int
        Maximum number of Fourier features (cosines and sines). "auto" is 3000 divided by the number
        of outputs, or by `n_latents` × `rank` if that is smaller.
    n_start : int
        Number of sites used for the starting values, which are found by the two steps of `EMGPR`.
    output_transform : None, "log", "yeo-johnson", "normal-score", transformer, list or dict
        As in `EMGPR`, but without bounds: except with "log", predictions of an output without
        negative readings can be negative. With `partial_fit`, transforms are fitted to the first
        chunk.
    normalize_y : bool
        Whether outputs are standardised to mean 0 and variance 1. With `partial_fit`, mean and
        variance are computed from the first chunk.
    crs : str or None
        As in `EMGPR`. Points on the sphere count as three inputs.
    max_iter, n_restarts, n_jobs, random_state, verbose
        As in `EMGPR`.

    Attributes
    ----------
    kernels_, noise_, weights_, coregionalization_, variance_shares_, transforms_
        As in `EMGPR`, with one member.
    log_marginal_likelihood_value_ : log-likelihood of all standardised readings
    history_ : list of (what was optimised, log-likelihood reached)
    converged_, n_iter_ : whether the optimisation converged, and its number of iterations
    n_functions_ : number of Fourier features (cosines and sines) in use
    left_out_ : Series, share of each output's variance that the features do not represent
    box_ : (2, P) lowest and highest value of each input
    n_sites_, n_readings_ : numbers of sites and readings that the model was fitted to

    Examples
    --------
    >>> from emgpr import OnePassGP
    >>> rng = np.random.default_rng(0)
    >>> def chunk(n):
    ...     X = rng.uniform(size=(n, 2))
    ...     f = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1])
    ...     return X, np.column_stack([f, 1 - 2 * f]) + 0.1 * rng.normal(size=(n, 2))
    >>> model = OnePassGP(box=([0, 0], [1, 1]), n_start=100, random_state=0)
    >>> for _ in range(5):
    ...     model = model.partial_fit(*chunk(2000))
    >>> model.n_sites_, model.predict([[0.25, 0.0]]).round(1)
    (10000, array([[ 2., -3.]]))
    """

    kernel: Kernels = None
    _: KW_ONLY
    n_latents: int | None = None
    rank: int | None = None
    noise: Literal["correlated", "independent"] = "correlated"
    box: Any = "auto"
    tolerance: float = 1e-3
    n_functions: int | Literal["auto"] = "auto"
    n_start: int = 600
    output_transform: Transforms = None
    normalize_y: bool = True
    crs: str | None = None
    max_iter: int = 120
    n_restarts: int = 5
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    fourier_fit_: FourierFit = field(init=False)
    posterior_: FourierPosterior = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs X (N, P) and outputs y (N, D), NaN where an output was not measured."""
        fit, chunk = self._start(X, y)
        return self._absorb(fit, self._sum(fit, chunk), learn=True)

    def partial_fit(self, X: Any, y: Any, *, learn: bool = True) -> Self:
        """Add a chunk of data; the first chunk determines starting values and, by default, the box.

        If `learn` is False, predictions are conditioned on the readings in the chunk, but kernels,
        noise and weights are not changed until `learn()` is called.
        """
        if self._is_started():
            return self.absorb(self.summed(X, y), learn=learn)
        fit, chunk = self._start(X, y)
        return self._absorb(fit, self._sum(fit, chunk), learn=learn)

    def start(self, X: Any, y: Any) -> Self:
        """Determine the scale of the outputs, the box and the features from a sample of the data.

        The sample is not included in the sums. Copies of the started model can compute the sums
        over chunks on any machine (`summed`); `absorb` then adds them to the model.
        """
        fit, _ = self._start(X, y)
        self.__dict__.pop("posterior_", None)  # a posterior of an earlier fit is no longer valid
        self.__dict__.update(
            input_spec_=fit.columns.inputs, output_scaler_=fit.scaler, fourier_fit_=fit
        )
        return self

    def summed(self, X: Any, y: Any) -> FourierSums:
        """Return the sums over a chunk of data; sums over several chunks are added with `+`.

        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(300, 1))
        >>> y = np.sin(9 * X) + 0.1 * rng.normal(size=(300, 1))
        >>> model = OnePassGP(n_start=50, random_state=0).start(X, y)
        >>> model.absorb(model.summed(X[:100], y[:100]) + model.summed(X[100:], y[100:])).n_sites_
        300
        """
        fit = self._started()
        chunk = self._read(X, y, fit.columns)
        if isinstance(chunk, Chunk):  # the rows of a lazy chunk have not been read yet
            for message in observed_warnings(chunk.Y, fit.ranges, fit.scaler.names, "Output"):
                warn(message)
        return self._sum(fit, chunk)

    def absorb(self, sums: FourierSums, *, learn: bool = True) -> Self:
        """Add sums to those of the model and, if `learn` is True, optimise the parameters."""
        fit = self._started()
        if not isinstance(sums, FourierSums):
            raise ValueError(f"sums={sums!r}; expected the result of summed(X, y).")
        return self._absorb(fit, sums, learn=learn)

    def learn(self) -> Self:
        """Optimise kernels, noise and weights for all data so far, starting at the last values."""
        fit = self._started()
        return self._absorb(fit, FourierSums(fit.features.grid), learn=True)

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in vars(self)

    def _is_started(self) -> bool:
        return "fourier_fit_" in vars(self)

    def _started(self) -> FourierFit:
        if not self._is_started():
            raise ValueError(
                "This OnePassGP has not been started; call start, fit or partial_fit first."
            )
        return self.fourier_fit_

    def _settings(self) -> FourierSettings:
        names = [setting.name for setting in fields(FourierSettings)]
        return FourierSettings.from_params({name: getattr(self, name) for name in names})

    def _read(self, X: Any, y: Any, columns: Columns | None = None) -> Chunk | LazyChunk:
        """Read a chunk, lazily if it is a Dask collection; `columns` is None if it is the first."""
        check_stray_coordinates(X)
        kind = LazyChunk if is_lazy(X) or is_lazy(y) else Chunk
        return kind.read(X, y, columns, estimator=type(self).__name__, crs=self.crs)

    def _start(self, X: Any, y: Any) -> tuple[FourierFit, Chunk | LazyChunk]:
        settings = self._settings()
        chunk = self._read(X, y)
        sample, columns = chunk.sample(), chunk.columns
        check_each_output_observed(sample.ranges, chunk.n_rows, columns.output_names)
        for message in (
            *input_warnings(sample.X, columns.inputs.names, chunk.spacing[0], self.crs),
            *output_warnings(
                sample.Y, columns.output_names, chunk.spacing[1], centred=self.normalize_y
            ),
        ):
            warn(message)
        rng = as_generator(self.random_state)
        fit = start_fit(sample, columns, settings, rng, self._execution())
        x = columns.inputs.to_kernel(sample.X)
        ignored = describe_ignored_columns(
            fit.parameters.kernels, columns.inputs, x, automatic=False
        )
        if ignored:
            warn(ignored)
        return fit, chunk

    def _sum(self, fit: FourierFit, chunk: Chunk | LazyChunk) -> FourierSums:
        return chunk.sums(fit.model, fit.scaler, self._execution())

    def _absorb(self, fit: FourierFit, sums: FourierSums, *, learn: bool) -> Self:
        fit = absorb(fit, sums)
        if learn:
            fit = optimise(fit, self.tolerance, self.max_iter, self._execution())
            _ = fit.posterior.solution  # so that errors are raised here, not during a prediction
        else:
            fit = check_truncation(fit, self.tolerance, refuse=False)
        return self._assign(fit)

    def _assign(self, fit: FourierFit) -> Self:
        """Set all fitted attributes."""
        self.__dict__.update(
            input_spec_=fit.columns.inputs,
            output_scaler_=fit.scaler,
            fourier_fit_=fit,
            posterior_=fit.posterior,
        )
        return self

    def _parameters(self) -> LMCParameters:
        return self._fitted("posterior_").model.parameters

    @property
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the latent processes."""
        return list(self._parameters().kernels)

    @property
    def weights_(self) -> Float[Array, "1 Q D k"]:
        """Weights of the only member."""
        return self._parameters().W[None]

    @property
    def noise_(self) -> Float[Array, "..."]:
        """Noise of the standardised outputs: covariance (D, D) if correlated, else variances."""
        noise = self._parameters().noise
        return noise if self.fourier_fit_.vector.noise.correlated else np.diagonal(noise).copy()

    @property
    def coregionalization_(self) -> Float[Array, "Q D D"]:
        """Coregionalisation matrices W_q W_qᵀ."""
        return coregionalization(self._parameters().W)

    @property
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's variance due to each latent process and to the noise."""
        parameters = self._parameters()
        shares = latent_shares(parameters, self.box_.shape[1])
        columns = [f"latent {q}" for q in range(len(parameters.kernels))]
        table = pd.DataFrame(shares, index=self.output_names_, columns=columns)
        table["noise"] = 1.0 - shares.sum(axis=1)
        return table

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log-likelihood of all standardised readings."""
        return self._fitted("posterior_").solution.log_likelihood

    @property
    def history_(self) -> list[Stage]:
        """Stages of the optimisation: what was optimised, and the log-likelihood reached."""
        return self._result("history")

    @property
    def converged_(self) -> bool:
        """Whether the last optimisation converged inside its bounds."""
        return self._result("converged")

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the last optimisation."""
        return self._result("n_iter")

    def _result(self, name: str) -> Any:
        value = getattr(self._fitted("fourier_fit_"), name)
        if value is None:
            raise AttributeError("The parameters have not been optimised yet; call learn().")
        return value

    @property
    def n_functions_(self) -> int:
        """Number of Fourier features (cosines and sines) in use."""
        return self._fitted("posterior_").model.features.n_functions

    @property
    def left_out_(self) -> pd.Series:
        """Share of each output's variance that the features do not represent."""
        return pd.Series(
            self._fitted("posterior_").model.truncated_shares, index=self.output_names_
        )

    @property
    def box_(self) -> Float[Array, "2 P"]:
        """The region: lowest and highest value of each input."""
        return self._fitted("fourier_fit_").box

    @property
    def n_sites_(self) -> int:
        """Number of sites that the model was fitted to."""
        return self._fitted("posterior_").n_sites

    @property
    def n_readings_(self) -> int:
        """Number of readings that the model was fitted to."""
        return self._fitted("fourier_fit_").sums.n_readings

    def _state(self) -> dict[str, Any]:
        return fourier_state(self.get_params(deep=False), self.fourier_fit_)

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        state = upgrade_fourier_state(state) if version < 2 else state
        check_fourier_state(state)
        model = cls(**state["settings"])
        return model._assign(fit_from_state(state, cls.__name__, model._settings()))
