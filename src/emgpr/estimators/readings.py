"""The base class of estimators that keep their training readings and predict from them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from emgpr import inspection
from emgpr.cross_validation import (
    CrossValidation,
    LeaveOutSets,
    TransferReport,
    cross_validate,
    transfer_report,
)
from emgpr.estimators.base import GPRegressor
from emgpr.fitting.cokriging import CoKrigingSummary
from emgpr.fitting.convolution import SearchSummary
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.regression_network import NetworkSummary
from emgpr.inputs import InputSpec, TrainingTable, read_training_table
from emgpr.observations import Observations
from emgpr.planning import TableSummary
from emgpr.prediction import DensePosterior, LMCPosterior
from emgpr.regression_network import NetworkPosterior
from emgpr.transforms import OutputScaler

Array = np.ndarray


class ReadingsGP(GPRegressor):
    """A regressor whose posterior holds the training readings, with cross-validation.

    Subclasses declare the parameters, assign the parts of the fitted model in `fit`, and define the
    attributes that figures and reports use.
    """

    posterior_: DensePosterior | LMCPosterior | NetworkPosterior
    fit_summary_: SearchSummary | CoKrigingSummary | NetworkSummary
    output_transform: Any
    output_bounds: Any
    compositions: Any
    normalize_y: bool
    crs: str | None

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters, except for the kernel, which differs between models."""
        known = {setting.name for setting in fields(FitSettings)} - {"kernel"}
        params = self.get_params(deep=False)
        return FitSettings.from_params({name: params[name] for name in params.keys() & known})

    @property
    def converged_(self) -> bool:
        """Whether the search for the parameters converged inside its bounds."""
        return self._fitted("fit_summary_").converged

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the search that was kept."""
        return self._fitted("fit_summary_").n_iter

    @property
    def n_rows_ignored_(self) -> int:
        """Number of rows of the training table in which no output was measured."""
        inputs = self._fitted("input_spec_")
        return len(inputs.index) - len(inputs.rows)

    def training_data(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return training inputs and outputs in original units, for all rows with readings."""
        return inspection.training_data(*self._data())

    def cross_validate(self, by: Any = "site") -> CrossValidation:
        """Predict every reading from other readings, with parameters fitted to all readings.

        `by` has the same meaning as in `EMGPR.cross_validate`: "site", "output", "block", "gap", or
        a label for each row of the training inputs. Errors are optimistic because the parameters
        were also fitted to the readings that are left out.
        """
        observations, inputs, scaler = self._data()
        sets = LeaveOutSets.build(by, observations, inputs, scaler.names)
        return cross_validate(
            self.posterior_, observations, scaler, inputs, sets, self._execution()
        )

    def transfer_report(self, by: Any = "site") -> TransferReport:
        """Compare the cross-validated errors of every output with and without transfer.

        Without transfer, each output is predicted by a model of its own. The columns and verdicts
        are those of `EMGPR.transfer_report`.
        """
        observations, inputs, scaler = self._data()
        sets = LeaveOutSets.build(by, observations, inputs, scaler.names)
        return transfer_report(self.posterior_, observations, scaler, sets, self._execution())

    def first_look(self, X: Any, y: Any) -> TableSummary:
        """Summarise a table before a fit, with warnings about suspicious values.

        Nothing is fitted. An invalid table raises the same errors as in `fit`.
        """
        self.fit_settings()
        return TableSummary.build(
            self._read(X, y), self.output_transform, self.output_bounds, self.compositions
        )

    def variograms(
        self,
        pairs: Sequence[tuple[str, str]] | None = None,
        *,
        n_lags: int = 15,
        max_lag: float | None = None,
        kind: Literal["auto", "cross", "pseudo"] = "auto",
    ) -> pd.DataFrame:
        """Return empirical and model variograms of every output, or of the given pairs of outputs.

        The columns are those of `EMGPR.variograms`. Lags have equal widths.
        """
        observations, _, scaler = self._data()
        options: Any = {"n_lags": n_lags, "max_lag": max_lag, "kind": kind}
        return inspection.variograms(
            observations, self._model_variogram(), scaler.names, pairs, **options
        )

    @property
    @abstractmethod
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the processes that outputs share, which have unit variance."""

    @property
    @abstractmethod
    def noise_(self) -> Float[Array, "..."]:
        """Noise of the standardised outputs: covariance (D, D) if correlated, else variances."""

    @property
    @abstractmethod
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's variance due to each of its parts and, last, to the noise."""

    @abstractmethod
    def signal_correlations(self) -> Float[Array, "R D D"]:
        """Return the contribution of each part to the correlations between signals."""

    @abstractmethod
    def _model_variogram(self) -> inspection.VariogramOf:
        """Return the function that computes the variograms of the fitted model."""

    def _data(self) -> tuple[Observations, InputSpec, OutputScaler]:
        check_is_fitted(self)
        return self.posterior_.observations, self.input_spec_, self.output_scaler_

    def _read(self, X: Any, y: Any) -> TrainingTable:
        return read_training_table(
            X, y, estimator=type(self).__name__, crs=self.crs, centred=self.normalize_y
        )
