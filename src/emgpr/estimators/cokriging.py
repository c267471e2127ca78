"""The estimator CoKriging: ordinary co-kriging with a model fitted to variograms."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, field, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr import inspection
from emgpr.cokriging import MAX_MEAN_VARIANCE, VariogramModel, as_structures
from emgpr.covariance import variance_shares
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.readings import ReadingsGP
from emgpr.fitting.cokriging import CoKrigingSummary, FittedCoKriging, fit_cokriging
from emgpr.fitting.defaults import FitSettings
from emgpr.inputs import InputSpec
from emgpr.model_files.cokriging_state import (
    check_cokriging_state,
    cokriging_from_state,
    cokriging_state,
)
from emgpr.parameter_checks import Kernels, Transforms, check_count
from emgpr.planning import Plan, plan_cokriging
from emgpr.prediction import Conditioning, LMCModel, LMCPosterior

Array = np.ndarray

TWO_STRUCTURES = ("spherical", "spherical")


@declare_parameters
class CoKriging(ReadingsGP):
    """Ordinary co-kriging, with a linear model of coregionalisation fitted to variograms.

    The direct and cross-variograms of all outputs are computed in distance bins. A nugget and one
    or several structures, each with a positive semidefinite matrix of sills, are fitted to them by
    weighted least squares. Predictions are ordinary co-kriging: the mean of each output is unknown
    and estimated together with the signals, from all readings or from neighbouring ones.

    This is the usual method of geostatistics, with the interface of the other estimators. `EMGPR`
    fits the same kind of model by maximum likelihood. See docs/geostatistics.md.

    Parameters
    ----------
    kernel : name, kernel, list of these, or None
        Variogram model of each structure, by increasing range: "spherical", "exponential",
        "gaussian", "matern32", "matern52", or a scikit-learn kernel with one length-scale for all
        inputs. A length-scale with bounds "fixed" is kept. Others are fitted, between the bounds of
        the kernel or, if these are not set, between bounds derived from the distances of the sites:
        `CoKriging([Spherical(0.2, "fixed"), Spherical(1.0, (0.5, 2.0))])`, with
        `from emgpr.kernels import Spherical`. The nugget is added automatically. None
        means the default, two spherical structures.
    n_lags : int
        Number of distance bins. They are narrower at short distances. Pairs of readings at the same
        location (replicates) have a bin of their own, in which the model has the nugget alone.
    max_lag : float or None
        Longest distance in the variograms, in the unit of the inputs (km for longitude and
        latitude). None means half the extent of the region.
    mean_variance : float
        Prior variance of the mean of each output, relative to the variance of its readings. The
        default is so large that the prior has no effect. With 0, the averages of the readings are
        taken as known means: simple co-kriging.
    conditioning : {"auto", "all"} or int
        Readings from which each location is predicted: all, or a neighbourhood, which are the
        readings of all outputs at the sites that are among the given number of nearest ones for at
        least one output. "auto" is as in `EMGPR`.
    output_transform, output_bounds, compositions, normalize_y, crs, n_jobs, verbose
        As in `EMGPR`. Distances are the same in all directions.

    Attributes
    ----------
    structures_ : DataFrame with the model and the range of each structure. A range is at most twice
        the longest lag; above that lag, the variograms do not show the sill of the structure
    sills_ : DataFrame with the sill matrices of the nugget and of each structure, on the
        standardised scale
    kernels_ : list of the structures' kernels
    coregionalization_ : (Q, D, D) sill matrices of the structures
    noise_ : (D, D) nugget
    variance_shares_ : DataFrame, share of each output's sill due to each structure and the nugget
    misfit_ : weighted sum of squares of the fitted variograms
    converged_, n_iter_ : whether the search for ranges and sills converged, and its iterations

    Examples
    --------
    >>> from emgpr import CoKriging
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()                              # Cd is missing at 100 of 359 sites
    >>> model = CoKriging(output_transform="log").fit(jura.X, jura.Y)
    >>> model.structures_.round(1)
                   model  range
    structure
    0          Spherical    0.1
    1          Spherical    1.3
    >>> model.predict(jura.X[jura.test]).shape
    (100, 3)
    """

    kernel: Kernels = TWO_STRUCTURES
    _: KW_ONLY
    n_lags: int = 15
    max_lag: float | None = None
    mean_variance: float = 1e4
    conditioning: Literal["auto", "all"] | int = "auto"
    output_transform: Transforms = "auto"
    output_bounds: Any = "auto"
    compositions: Sequence[Sequence[str]] | None = None
    normalize_y: bool = True
    crs: str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    posterior_: LMCPosterior = field(init=False)
    variogram_model_: VariogramModel = field(init=False)
    fit_summary_: CoKrigingSummary = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs X (N, P) and outputs y (N, D), NaN where an output was not measured.

        If the fit fails or is interrupted, the estimator remains unchanged.
        """
        settings, execution, table = self.fit_settings(), self._execution(), self._read(X, y)
        kernels = self._structures(table.x.shape[1])
        table.warn()
        max_lag = None if self.max_lag is None else float(self.max_lag)
        fitted = fit_cokriging(
            table, settings, kernels, int(self.n_lags), max_lag, float(self.mean_variance),
            execution,
        )  # fmt: skip
        return self._assign(table.inputs, fitted)

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters that other estimators have, too; check the others."""
        self._structures(1)
        check_count("n_lags", self.n_lags)
        if self.max_lag is not None and not _is_between(self.max_lag, 0.0, np.inf):
            raise ValueError(f"max_lag={self.max_lag!r}; expected a positive distance, or None.")
        if self.mean_variance != 0 and not _is_between(self.mean_variance, 0.0, MAX_MEAN_VARIANCE):
            raise ValueError(
                f"mean_variance={self.mean_variance!r}; expected a number from 0 (known means) to "
                f"{MAX_MEAN_VARIANCE:g}."
            )
        if self.conditioning not in ("auto", "all"):
            check_count(
                "conditioning", self.conditioning, ' (neighbouring sites) or "auto" or "all"'
            )
        return super().fit_settings()

    def plan(self, X: Any, y: Any) -> Plan:
        """Return the steps of a fit to this table, with estimates of their time and memory."""
        settings, execution, table = self.fit_settings(), self._execution(), self._read(X, y)
        n_structures = len(self._structures(table.x.shape[1]))
        return plan_cokriging(settings, n_structures, table, execution)

    def _structures(self, n_inputs: int) -> list[Kernel]:
        """Return the validated kernels of the structures."""
        kernel = TWO_STRUCTURES if self.kernel is None else self.kernel
        return as_structures(kernel, n_inputs)

    def _assign(self, inputs: InputSpec, fitted: FittedCoKriging) -> Self:
        """Set all fitted attributes."""
        self.__dict__.update(
            input_spec_=inputs,
            output_scaler_=fitted.scaler,
            posterior_=fitted.posterior,
            variogram_model_=fitted.model,
            fit_summary_=fitted.summary,
        )
        return self

    @property
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the structures, which have unit variance."""
        return list(self._fitted("variogram_model_").kernels)

    @property
    def coregionalization_(self) -> Float[Array, "Q D D"]:
        """Sill matrices of the structures, on the standardised scale."""
        return self._fitted("variogram_model_").sills

    @property
    def noise_(self) -> Float[Array, "D D"]:
        """The nugget: covariance of the noise of the standardised outputs at a site."""
        return self._fitted("variogram_model_").nugget

    @property
    def structures_(self) -> pd.DataFrame:
        """Model and range (the length-scale of the kernel) of each structure."""
        rows = [(type(k).__name__, _length_scale(k)) for k in self.kernels_]
        index = pd.RangeIndex(len(rows), name="structure")
        return pd.DataFrame(rows, index=index, columns=["model", "range"])

    @property
    def sills_(self) -> pd.DataFrame:
        """Sill matrices of the nugget and of each structure, on the standardised scale."""
        names = self.output_names_
        parts = [self.noise_, *self.coregionalization_]
        frames = [pd.DataFrame(part, index=names, columns=names) for part in parts]
        keys = ["nugget", *map(str, range(len(parts) - 1))]
        return pd.concat(frames, keys=keys, names=["structure", "output"])

    @property
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's sill due to each structure and to the nugget."""
        model, x = self._known_means(), self._data()[0].x
        shares = variance_shares(model.kernels, model.weights, model.noise, x)
        columns = [*(f"structure {q}" for q in range(len(model.kernels))), "noise"]
        return pd.DataFrame(shares, index=self.output_names_, columns=columns)

    @property
    def misfit_(self) -> float:
        """Weighted sum of squares of the differences between empirical and fitted variograms."""
        return self._fitted("fit_summary_").misfit

    @property
    def conditioning_(self) -> Conditioning:
        """Readings that predictions are conditioned on: "all" or a number."""
        return self._fitted("posterior_").conditioning

    def signal_correlations(self) -> Float[Array, "Q D D"]:
        """Return the contribution of each structure to the correlations between signals.

        The contributions add up to the correlations; they are NaN for an output without a signal.
        """
        ones = np.ones(len(self.kernels_))
        return inspection.signal_correlations(self.coregionalization_, ones)

    def _model_variogram(self) -> inspection.VariogramOf:
        return inspection.lmc_variogram(replace(self.posterior_, model=self._known_means()))

    def _known_means(self) -> LMCModel:
        """Return the model without the processes that stand for unknown means."""
        model: VariogramModel = self._fitted("variogram_model_")
        return model.with_unknown_means(np.zeros(self.n_outputs_))

    def _state(self) -> dict[str, Any]:
        return cokriging_state(
            self.get_params(deep=False), self.input_spec_, self.output_scaler_,
            self.variogram_model_, self.posterior_, self.fit_summary_,
        )  # fmt: skip

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        check_cokriging_state(state)
        model = cls(**state["settings"])
        model.fit_settings()
        return model._assign(*cokriging_from_state(state, cls.__name__))


def _length_scale(kernel: Kernel) -> float:
    """Return the length-scale of a structure, or NaN if its kernel has none of its own."""
    return float(getattr(kernel, "length_scale", np.nan))


def _is_between(value: Any, low: float, high: float) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and low < float(value) <= high and np.isfinite(float(value))
