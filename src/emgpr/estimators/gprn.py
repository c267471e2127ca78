"""The estimator GPRN: Gaussian process regression networks."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr import inspection
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.readings import ReadingsGP
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.regression_network import (
    FittedGPRN,
    NetworkSummary,
    check_network_kernel,
    fit_gprn,
)
from emgpr.inputs import InputSpec
from emgpr.model_files.network_state import check_network_state, network_from_state, network_state
from emgpr.parallel import RandomState, as_generator
from emgpr.parameter_checks import Kernels, Transforms, check_count
from emgpr.planning import Plan, plan_network
from emgpr.regression_network import Moments, NetworkKernels, NetworkPosterior
from emgpr.variograms import Lags, ModelVariogram

Array = np.ndarray


@declare_parameters
class GPRN(ReadingsGP):
    """Gaussian process regression network (Wilson, Knowles & Ghahramani, 2012).

    Each output is a combination of latent processes, with weights that are Gaussian processes
    themselves, and noise. Correlations between outputs can therefore change over the region, which
    a linear model of coregionalisation cannot express: an element can accompany another in the
    north and replace it in the south.

    The posterior of latent processes and weights is approximated by variational Bayes, and the
    parameters maximise a lower bound on the log-likelihood. With `constant_weights=True`, the model
    is the semiparametric latent factor model (SLFM) by variational Bayes. There can be up to 1000
    sites. See docs/gprn.md.

    Parameters
    ----------
    kernel, weight_kernel : "rbf", "matern12", "matern32", "matern52", RBF, Matern or None
        Kernels of the latent processes and of the weights; None means RBF. Starting values of the
        length-scales are taken from the data. Bounds are those of the kernel, unless it has the
        default bounds of scikit-learn; a length-scale that is "fixed" is kept.
    n_latents : int
        Number of latent processes Q, the nodes of the network.
    constant_weights : bool
        Whether the weights are the same at all locations.
    equal_noise : bool
        Whether all standardised outputs have the same noise variance, as in the publication.
    output_transform, output_bounds, compositions, normalize_y, crs
        As in `EMGPR`. Length-scales are the same in all directions, so that inputs must have
        comparable units.
    max_iter : int
        Maximum number of iterations of a search; each updates the weights, then the nodes.
    n_restarts : int
        Number of starting points, all with constant weights. The best one is continued.
    n_jobs, random_state, verbose
        As in `EMGPR`.

    Attributes
    ----------
    kernels_ : list of the kernels of the latent processes
    weight_kernel_ : kernel of the weights, None if they are constant
    weights_ : (N, D, Q) means of the weights at the training sites
    noise_ : (D,) noise variances of the standardised outputs
    variance_shares_ : DataFrame, share of each output's variance due to each latent process and to
        the noise, averaged over the sites
    searches_ : DataFrame, bound and number of iterations of each search
    bound_ : lower bound on the log-likelihood of all standardised readings
    converged_, n_iter_ : whether the search that was kept converged, and its number of iterations

    Examples
    --------
    Two outputs that agree on the left and are opposite on the right:

    >>> from emgpr import GPRN
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> signal = np.sin(25 * X)
    >>> Y = np.hstack([signal, (1 - 2 * X) * signal]) + 0.05 * rng.normal(size=(60, 2))
    >>> model = GPRN(n_latents=1, n_restarts=2, random_state=0).fit(X, Y)
    >>> left, right = model.correlations([[0.1], [0.9]])[:, 0, 1]
    >>> bool(left > 0.9), bool(right < -0.9)
    (True, True)
    """

    kernel: Kernels = "rbf"
    _: KW_ONLY
    weight_kernel: Kernels = "rbf"
    n_latents: int = 2
    constant_weights: bool = False
    equal_noise: bool = False
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

    posterior_: NetworkPosterior = field(init=False)
    fit_summary_: NetworkSummary = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs X (N, P) and outputs y (N, D), NaN where an output was not measured.

        If the fit fails or is interrupted, the estimator remains unchanged.
        """
        settings, execution = self.fit_settings(), self._execution()
        table, rng = self._read(X, y), as_generator(self.random_state)
        table.warn()
        fitted = fit_gprn(
            table, settings, self._kernels(), constant_weights=bool(self.constant_weights),
            equal_noise=bool(self.equal_noise), rng=rng, execution=execution,
        )  # fmt: skip
        return self._assign(table.inputs, fitted)

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters that other estimators have, too; check the others."""
        self._kernels()
        check_count("n_latents", self.n_latents)
        for name in ("constant_weights", "equal_noise"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r}; expected True or False.")
        return super().fit_settings()

    def plan(self, X: Any, y: Any) -> Plan:
        """Return the steps of a fit to this table, with estimates of their time and memory."""
        settings, execution = self.fit_settings(), self._execution()
        return plan_network(settings, bool(self.constant_weights), self._read(X, y), execution)

    def correlations(self, X: Any, *, include_noise: bool = False) -> Float[Array, "M D D"]:
        """Return the correlations between the outputs at the locations X, (M, D, D).

        They are those of the signals or, if `include_noise` is True, of readings, on the
        standardised scale. The weights are uncertain, which makes the correlations smaller; far
        from all sites they are zero.
        """
        posterior: NetworkPosterior = self._fitted("posterior_")
        return posterior.correlations(self.input_spec_.read(X), include_noise=include_noise)

    def predict_weights(self, X: Any) -> tuple[Float[Array, "M D Q"], Float[Array, "M D Q"]]:
        """Return the means and standard deviations of the weights at the locations X."""
        posterior: NetworkPosterior = self._fitted("posterior_")
        moments = posterior.weights.moments_at(self.input_spec_.read(X))
        mean, variance = moments.mean, np.einsum("dmqq->dmq", moments.cov)
        return np.swapaxes(mean, 0, 1), np.sqrt(np.swapaxes(variance, 0, 1))

    @property
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the latent processes, which have unit variance."""
        posterior = self._fitted("posterior_")
        return posterior.kernels.of_nodes(posterior.parameters.length_scales)

    @property
    def weight_kernel_(self) -> Kernel | None:
        """Fitted kernel of the weights, with unit variance; None if they are constant."""
        posterior = self._fitted("posterior_")
        return posterior.kernels.of_weights(posterior.parameters.weight_length_scale)

    @property
    def weights_(self) -> Float[Array, "N D Q"]:
        """Means of the weights at the training sites."""
        return np.swapaxes(self._weights().mean, 0, 1)

    @property
    def noise_(self) -> Float[Array, " D"]:
        """Noise variances of the standardised outputs."""
        return self._fitted("posterior_").parameters.noise

    @property
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's variance due to each latent process and to the noise."""
        parts = np.einsum("dnqq->dq", self._weights().second) / self.posterior_.n_sites
        shares = np.column_stack([parts, self.noise_])
        columns = [*(f"latent {q}" for q in range(parts.shape[1])), "noise"]
        shares = shares / shares.sum(axis=1, keepdims=True)
        return pd.DataFrame(shares, index=self.output_names_, columns=columns)

    @property
    def searches_(self) -> pd.DataFrame:
        """Results of all searches: kind of start, bound, number of iterations, converged.

        The first `n_restarts` searches are the trials of the starting points. The next one is the
        best of them, continued. If weights may vary, there are two more: the first starts from the
        same trial, the second from the result with constant weights.
        """
        searches = self._fitted("fit_summary_").searches
        names = ["start", "bound", "n_iter", "converged"]
        return pd.DataFrame(
            [[getattr(search, name) for name in names] for search in searches], columns=names
        )

    @property
    def bound_(self) -> float:
        """Lower bound on the log-likelihood of all standardised readings."""
        return self._fitted("fit_summary_").bound

    def signal_correlations(self) -> Float[Array, "Q D D"]:
        """Return the contribution of each latent process to the correlations between signals.

        The covariances are averaged over the training sites; see `correlations` for those at a
        location. Contributions add up to the correlations, and are NaN without a signal.
        """
        B = self._coregionalization()
        return inspection.signal_correlations(B, np.ones(len(B)))

    def _model_variogram(self) -> inspection.VariogramOf:
        """Return the variograms of the model in which covariances are averaged over the sites."""
        kernels, B, noise = self.kernels_, self._coregionalization(), np.diag(self.noise_)

        def of_pairs(x: Array, lags: Lags) -> inspection.ExpectedVariogram:
            averages = ModelVariogram.from_kernels(kernels, x, lags)
            return lambda first, second, kind: averages.expected(B, noise, first, second, kind)

        return of_pairs

    def _weights(self) -> Moments:
        posterior: NetworkPosterior = self._fitted("posterior_")
        return posterior.weights.moments

    def _coregionalization(self) -> Float[Array, "Q D D"]:
        """Return the covariance of the outputs due to each process, averaged over the sites."""
        weights, D = self._weights(), self.n_outputs_
        B = np.einsum("dnq,enq->qde", weights.mean, weights.mean)
        B[:, np.arange(D), np.arange(D)] = np.einsum("dnqq->qd", weights.second)
        return B / weights.mean.shape[1]

    def _kernels(self) -> NetworkKernels:
        return NetworkKernels(
            check_network_kernel("kernel", self.kernel),
            check_network_kernel("weight_kernel", self.weight_kernel),
        )

    def _assign(self, inputs: InputSpec, fitted: FittedGPRN) -> Self:
        """Set all fitted attributes."""
        self.__dict__.update(
            input_spec_=inputs,
            output_scaler_=fitted.scaler,
            posterior_=fitted.posterior,
            fit_summary_=fitted.summary,
        )
        return self

    def _state(self) -> dict[str, Any]:
        return network_state(
            self.get_params(deep=False), self.input_spec_, self.output_scaler_, self.posterior_,
            self.fit_summary_,
        )  # fmt: skip

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        check_network_state(state)
        model = cls(**state["settings"])
        model.fit_settings()
        return model._assign(*network_from_state(state, model._kernels(), cls.__name__))
