"""The estimator CMOGP: convolved multiple-output Gaussian processes."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr.convolution import ConvolutionParameters, ConvolvedCovariance
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.readings import ReadingsGP
from emgpr.fitting.convolution import FittedCMOGP, SearchSummary, check_rbf, fit_cmogp
from emgpr.fitting.defaults import FitSettings
from emgpr.inputs import InputSpec
from emgpr.inspection import ExpectedVariogram, VariogramOf, signal_correlations
from emgpr.model_files.convolution_state import (
    check_convolution_state,
    convolution_from_state,
    convolution_state,
)
from emgpr.parallel import RandomState, as_generator
from emgpr.parameter_checks import Kernels, Transforms, check_count
from emgpr.planning import Plan, plan_convolution
from emgpr.prediction import DensePosterior
from emgpr.variograms import Kind, Lags

Array = np.ndarray


@declare_parameters
class CMOGP(ReadingsGP):
    """Convolved multiple-output Gaussian processes (Álvarez & Lawrence, 2011).

    Each output is a sum of latent processes, smoothed by a Gaussian kernel of its own, of a process
    of its own, and of noise. Outputs can therefore vary at different scales although they share the
    latent processes, which a linear model of coregionalisation cannot express with one process. If
    all outputs are smoothed equally, the model is a linear model of coregionalisation.

    All parameters are fitted jointly to the exact likelihood of all readings, from several starting
    points. The number of readings is limited to 5000; above 1000, all starting points are tried on
    a subsample, and the two best are continued with all readings. See docs/cmogp.md.

    Parameters
    ----------
    kernel : "rbf", RBF or None
        Kernel of the latent processes. Only RBF is possible, because the convolutions of other
        kernels have no closed form. A length-scale other than 1 is used at an additional starting
        point, and its bounds are those of the latent length-scales.
    n_latents : int
        Number of latent processes Q that all outputs share.
    own_processes : bool
        Whether each output also has a process of its own, with an RBF kernel.
    prior : "weak" or None
        As in `EMGPR`; None means maximum likelihood.
    output_transform, output_bounds, compositions, normalize_y, crs
        As in `EMGPR`. Length-scales are the same in all directions, so that inputs must have
        comparable units.
    max_iter : int
        Maximum number of iterations from each starting point.
    n_restarts : int
        Number of starting points. The result with the highest likelihood (with a prior, posterior
        density) is kept; `searches_` lists all results.
    n_jobs, random_state, verbose
        As in `EMGPR`.

    Attributes
    ----------
    kernels_ : list of the RBF kernels of the latent processes
    widths_ : Series, standard deviation of each output's smoothing kernel, in the unit of the
        inputs; the smallest is zero, because only differences of squared widths matter
    weights_ : (Q, D) standard deviation of the part of each output due to each latent process
    own_kernels_ : list of the kernels of the outputs' own processes; empty if there are none
    length_scales_ : DataFrame, length-scale of each part of each output
    noise_ : (D,) noise variances of the standardised outputs
    variance_shares_ : DataFrame, share of each output's variance due to each part and to the noise
    searches_ : DataFrame, log-likelihood and number of iterations from each starting point
    log_marginal_likelihood_value_ : log-likelihood of all standardised readings
    converged_, n_iter_ : whether the best search converged, and its number of iterations

    Examples
    --------
    >>> from emgpr import CMOGP
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> rough = np.sin(X) + 0.5 * np.sin(5 * X)
    >>> smooth = np.sin(X)                               # the same process, smoothed
    >>> Y = np.hstack([rough, smooth]) + 0.05 * rng.normal(size=(60, 2))
    >>> model = CMOGP(own_processes=False, n_restarts=2, random_state=0).fit(X, Y)
    >>> scale_of_rough, scale_of_smooth = model.length_scales_["latent 0"]
    >>> bool(scale_of_smooth > 1.5 * scale_of_rough)
    True
    """

    kernel: Kernels = "rbf"
    _: KW_ONLY
    n_latents: int = 1
    own_processes: bool = True
    prior: Literal["weak"] | None = "weak"
    output_transform: Transforms = "auto"
    output_bounds: Any = "auto"
    compositions: Sequence[Sequence[str]] | None = None
    normalize_y: bool = True
    crs: str | None = None
    max_iter: int = 200
    n_restarts: int = 5
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    posterior_: DensePosterior = field(init=False)
    fit_summary_: SearchSummary = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs X (N, P) and outputs y (N, D), NaN where an output was not measured.

        If the fit fails or is interrupted, the estimator remains unchanged.
        """
        settings, execution = self.fit_settings(), self._execution()
        kernel, own = check_rbf(self.kernel), bool(self.own_processes)
        table, rng = self._read(X, y), as_generator(self.random_state)
        table.warn()
        fitted = fit_cmogp(table, settings, kernel, own, rng, execution)
        return self._assign(table.inputs, fitted)

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters that other estimators have, too; check the others."""
        check_rbf(self.kernel)
        check_count("n_latents", self.n_latents)
        if not isinstance(self.own_processes, bool | np.bool_):
            raise ValueError(f"own_processes={self.own_processes!r}; expected True or False.")
        return super().fit_settings()

    def plan(self, X: Any, y: Any) -> Plan:
        """Return the steps of a fit to this table, with estimates of their time and memory."""
        settings, execution = self.fit_settings(), self._execution()
        return plan_convolution(settings, bool(self.own_processes), self._read(X, y), execution)

    def _assign(self, inputs: InputSpec, fitted: FittedCMOGP) -> Self:
        """Set all fitted attributes."""
        self.__dict__.update(
            input_spec_=inputs,
            output_scaler_=fitted.scaler,
            posterior_=fitted.posterior,
            fit_summary_=fitted.summary,
        )
        return self

    @property
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the latent processes, which have unit variance."""
        return [RBF(float(scale)) for scale in self._covariance().length_scales]

    @property
    def own_kernels_(self) -> list[Kernel]:
        """Fitted kernels of the outputs' own processes; empty if there are none."""
        return [RBF(float(scale)) for scale in self._covariance().own_length_scales]

    @property
    def widths_(self) -> pd.Series:
        """Standard deviation of each output's smoothing kernel."""
        return pd.Series(self._covariance().widths, index=self.output_names_)

    @property
    def weights_(self) -> Float[Array, "Q D"]:
        """Standard deviation of the part of each output that is due to each latent process."""
        return self._covariance().weights

    @property
    def length_scales_(self) -> pd.DataFrame:
        """Length-scale of each part of each output: smoothed latent processes, own process."""
        scales = np.sqrt(np.diagonal(self._covariance().T, axis1=1, axis2=2)).T
        return pd.DataFrame(scales, index=self.output_names_, columns=self._parts())

    @property
    def noise_(self) -> Float[Array, " D"]:
        """Noise variances of the standardised outputs."""
        return self._fitted("posterior_").noise

    @property
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's variance due to each part and to the noise."""
        shares = ConvolutionParameters(self._covariance(), self.noise_).shares
        return pd.DataFrame(shares, index=self.output_names_, columns=[*self._parts(), "noise"])

    @property
    def searches_(self) -> pd.DataFrame:
        """Results from each starting point: log-likelihood, log density, iterations, converged.

        The log density includes the prior. If there are more than 1000 readings, the values are
        those of the subsample on which the starting points were tried.
        """
        names = ["log_likelihood", "log_density", "n_iter", "converged"]
        searches = self._fitted("fit_summary_").searches
        rows = [[getattr(search, name) for name in names] for search in searches]
        return pd.DataFrame(rows, columns=names)

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log-likelihood of all standardised readings."""
        return self._fitted("fit_summary_").log_likelihood

    def signal_correlations(self) -> Float[Array, "R D D"]:
        """Return the contribution of each part to the correlations between signals at a location.

        The contributions add up to the correlations; they are NaN for an output without a signal.
        """
        return signal_correlations(self._covariance().A, np.ones(len(self._parts())))

    def _model_variogram(self) -> VariogramOf:
        covariance, noise = self._covariance(), np.diag(self.noise_)
        sill = covariance.at_lag(np.zeros(1))[0] + noise

        def of_pairs(x: Array, lags: Lags) -> ExpectedVariogram:
            cov = covariance.at_lag(lags.mean(lags.distance)[0])

            def expected(first: int, second: int, kind: Kind) -> Array:
                mean_sill = 0.5 * (sill[first, first] + sill[second, second])
                total = sill[first, second] if kind == "cross" else mean_sill
                return total - cov[:, first, second]

            return expected

        return of_pairs

    def _covariance(self) -> ConvolvedCovariance:
        covariance: ConvolvedCovariance = self._fitted("posterior_").covariance
        return covariance

    def _parts(self) -> list[str]:
        covariance = self._covariance()
        own = ["own process"] * (len(covariance.T) - len(covariance.weights))
        return [*(f"latent {q}" for q in range(len(covariance.weights))), *own]

    def _state(self) -> dict[str, Any]:
        return convolution_state(
            self.get_params(deep=False), self.input_spec_, self.output_scaler_, self.posterior_,
            self.fit_summary_,
        )  # fmt: skip

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        check_convolution_state(state)
        model = cls(**state["settings"])
        model.fit_settings()
        return model._assign(*convolution_from_state(state, cls.__name__))
