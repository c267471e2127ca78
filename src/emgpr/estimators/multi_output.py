"""The base class of EMGPR and its special cases: linear models of coregionalisation."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from emgpr import inspection
from emgpr.comparison import ApproximationReport
from emgpr.comparison.approximation import ApproximateModel, ExactModel, compare_with_exact
from emgpr.covariance import variance_shares
from emgpr.cross_validation import (
    CrossValidation,
    LeaveOutSets,
    TransferReport,
    cross_validate,
    transfer_report,
)
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.base import GPRegressor
from emgpr.fitting.checkpointing import checkpointed
from emgpr.fitting.defaults import FitSettings, Learner, ResolvedParams
from emgpr.fitting.exact_reference import exact_params, fit_quietly
from emgpr.fitting.fit import FitSummary, FittedLMC, fit_lmc, summary_attribute
from emgpr.inputs import InputSpec, TrainingTable, read_training_table
from emgpr.latents import is_external
from emgpr.model_files.lmc_state import check_lmc_state, lmc_from_state, lmc_state, upgrade_state
from emgpr.observations import Observations
from emgpr.parallel import RandomState
from emgpr.parameter_checks import Kernels, Transforms, is_auto
from emgpr.persistence import PathLike
from emgpr.planning import Plan, TableSummary, describe_approximations, plan_fit
from emgpr.prediction import Conditioning, LMCModel, LMCPosterior
from emgpr.transforms import OutputScaler

Array = np.ndarray


@declare_parameters
class MultiOutputGP(GPRegressor):
    """A linear model of coregionalisation; its subclasses differ in their parameters."""

    kernel: Kernels = "auto"
    _: KW_ONLY
    conditioning: Literal["auto", "all", "batch"] | int = "auto"
    n_neighbours: int | Literal["auto"] | None = "auto"
    parameter_uncertainty: bool = True
    latent_learner: Learner = "auto"
    output_transform: Transforms = "auto"
    output_bounds: Any = "auto"
    compositions: Sequence[Sequence[str]] | None = None
    normalize_y: bool = True
    crs: str | None = None
    max_iter: int = 120
    n_restarts: int = 5
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: RandomState = None
    checkpoint: PathLike | None = None
    verbose: int = 0

    fixed: ClassVar[Mapping[str, Any]] = {}  # settings that users cannot change
    resolved_params_: ResolvedParams = field(init=False)
    posterior_: LMCPosterior = field(init=False)
    fit_summary_: FitSummary = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs X (N, P) and outputs y (N, D), NaN where an output was not measured.

        X and y can be arrays or pandas, polars, Arrow, Dask or xarray tables; the latter two are
        loaded into memory. If the fit fails or is interrupted, the estimator remains unchanged.
        """
        settings, execution = self.fit_settings(), self._execution()
        table, params = self._read(X, y), self.get_params(deep=False)
        table.warn()
        with checkpointed(type(self).__name__, params, table, execution) as (execution, rng):
            fitted = fit_lmc(table, settings, rng, execution)
        return self._assign(table.inputs, fitted)

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters, together with the settings that this class fixes."""
        # Attributes, since a subclass with its own constructor may not list all parameters.
        names = [setting.name for setting in fields(FitSettings)]
        params = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return FitSettings.from_params({**self.fixed, **params})

    def _assign(self, inputs: InputSpec, fitted: FittedLMC) -> Self:
        """Set all fitted attributes."""
        self.__dict__.update(
            input_spec_=inputs,
            output_scaler_=fitted.scaler,
            resolved_params_=fitted.params,
            posterior_=fitted.posterior,
            fit_summary_=fitted.summary,
        )
        return self

    @property
    def kernels_(self) -> list[Kernel]:
        """Fitted kernels of the latent processes, which have unit variance."""
        return list(self._model().kernels)

    @property
    def weights_(self) -> Float[Array, "L Q D k"]:
        """Weights of each member."""
        return self._model().weights

    @property
    def noise_(self) -> Float[Array, "..."]:
        """Noise of the standardised outputs: covariance (D, D) if correlated, else variances."""
        noise = self._model().noise
        return noise if self.resolved_params_.correlated else np.diagonal(noise).copy()

    @property
    def coregionalization_(self) -> Float[Array, "Q D D"]:
        """Coregionalisation matrices W_q W_qᵀ, averaged over members."""
        return self._model().B.mean(axis=0)

    @property
    def variance_shares_(self) -> pd.DataFrame:
        """Share of each output's variance due to each latent process and to the noise."""
        model = self._model()
        x = self.posterior_.observations.x
        shares = variance_shares(model.kernels, model.weights, model.noise, x)
        columns = [*(f"latent {q}" for q in range(len(model.kernels))), "noise"]
        return pd.DataFrame(shares, index=self.output_names_, columns=columns)

    @property
    def conditioning_(self) -> Conditioning:
        """Readings that predictions are conditioned on: "all", "batch" or a number."""
        return self._fitted("posterior_").conditioning

    @property
    def batches_(self) -> list[Array]:
        """Rows of the training table that each member was fitted to."""
        rows = self._fitted("input_spec_").rows
        return [rows[batch] for batch in self.posterior_.batches]

    @property
    def n_rows_ignored_(self) -> int:
        """Number of rows of the training table in which no output was measured."""
        inputs = self._fitted("input_spec_")
        return len(inputs.index) - len(inputs.rows)

    @property
    def approximations_(self) -> tuple[str, ...]:
        """Descriptions of the approximations of likelihoods and predictions; empty if exact.

        `plan` also lists samples from which transforms and stacking weights are chosen.
        """
        learner, params = self._fitted("fit_summary_").latent_learner, self.resolved_params_
        return describe_approximations(self.posterior_, learner, params.n_neighbours)

    log_marginal_likelihood_value_ = summary_attribute(
        "log_likelihood", "Sum over members of the log-likelihoods of their batches."
    )
    history_ = summary_attribute(
        "history", "Stages of the optimisation: what was optimised, and the log-likelihood reached."
    )
    converged_ = summary_attribute(
        "converged", "Whether every optimisation converged inside its bounds."
    )
    n_iter_ = summary_attribute("n_iter", "Number of iterations of the longest optimisation.")
    latent_learner_ = summary_attribute(
        "latent_learner", "Learner of step 1: a name, or the object that was passed."
    )
    n_members_failed_ = summary_attribute(
        "n_members_failed", "Number of members that failed twice and were left out."
    )

    def _model(self) -> LMCModel:
        model: LMCModel = self._fitted("posterior_").model
        return model

    def training_data(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return training inputs and outputs in original units, for all rows with readings."""
        return inspection.training_data(*self._data())

    def predict_latents(
        self, X: Any, return_std: bool = False
    ) -> Float[Array, "M Q k"] | tuple[Float[Array, "M Q k"], Float[Array, "M Q k"]]:
        """Predict the latent processes at X: means (M, Q, k) and, optionally, standard deviations.

        Latent q consists of k processes with kernel `kernels_[q]`, where k is its rank (at most D
        for `ICM`). The standardised signals are weighted sums of all processes. The data determine
        only W_q W_qᵀ, so the weights are rotated to principal axes (`emgpr.weights.aligned`); the
        first process has the largest variance. For an ensemble, mean and standard deviation are
        those of the mixture of the members.

        >>> from emgpr import ICM
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> Y = np.sin(X) * [1, -2] + 0.1 * np.random.default_rng(0).normal(size=(40, 2))
        >>> model = ICM(rank=1, random_state=0).fit(X, Y)
        >>> latent = model.predict_latents(X)
        >>> latent.shape, bool(abs(np.corrcoef(latent[:, 0, 0], np.sin(X[:, 0]))[0, 1]) > 0.98)
        ((40, 1, 2), True)
        """
        check_is_fitted(self)
        posterior, x = self.posterior_, self.input_spec_.read(X)
        mean, std = inspection.latent_processes(posterior, x, self._execution())
        return (mean, std) if return_std else mean

    def signal_correlations(self) -> Float[Array, "Q D D"]:
        """Return the contribution of each latent process to the correlations between signals.

        The contributions add up to the correlations; they are NaN for an output without a signal.
        """
        x = self._data()[0].x
        variances = np.array([kernel.diag(x).mean() for kernel in self.kernels_])
        return inspection.signal_correlations(self.coregionalization_, variances)

    def variograms(
        self,
        pairs: Sequence[tuple[str, str]] | None = None,
        *,
        n_lags: int = 15,
        max_lag: float | None = None,
        kind: Literal["auto", "cross", "pseudo"] = "auto",
    ) -> pd.DataFrame:
        """Return empirical and model variograms of every output, or of the given pairs of outputs.

        The frame has one row for each lag, with the columns first, second, kind, lag (mean
        distance), pairs (number of pairs of sites), empirical and model, on the standardised scale.
        "auto" selects the pseudo cross-variogram if both outputs were measured at fewer than 20
        sites (see `emgpr.variograms`). If there are more than 1200 sites, a random sample is used.
        """
        check_is_fitted(self)
        table, of_model = self.posterior_.observations, inspection.lmc_variogram(self.posterior_)
        options: Any = {"n_lags": n_lags, "max_lag": max_lag, "kind": kind}
        return inspection.variograms(table, of_model, self.output_names_, pairs, **options)

    def cross_validate(self, by: Any = "site") -> CrossValidation:
        """Predict every reading from other readings, with parameters fitted to all readings.

        Errors are optimistic because the parameters were also fitted to the readings that are left
        out. The effect is largest if there are few readings for each parameter, and with
        by="output", because such predictions depend most on weights and noise correlations.
        Combination rules other than "mean" are applied to the joint predictions of the outputs that
        are left out together.

        Parameters
        ----------
        by : "site", "output", "block", "gap", or N labels
            Readings that are left out together: all readings at a site; a single reading, which is
            also predicted from the other outputs at the site; all readings in one of 20 blocks of
            neighbouring sites; those of one output in such a block, which are also predicted from
            the other outputs there; or all sites with the same label. Labels are given for each row
            of the training inputs (see `spatial_blocks`).

        >>> from emgpr import ICM
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> Y = np.hstack([np.sin(X), np.cos(X)])
        >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
        >>> checked = ICM(random_state=0).fit(X, Y).cross_validate()
        >>> checked.summary()["rmse"].round(1).tolist()
        [0.1, 0.1]
        """
        observations, inputs, scaler = self._data()
        sets = LeaveOutSets.build(by, observations, inputs, scaler.names)
        return cross_validate(
            self.posterior_, observations, scaler, inputs, sets, self._execution()
        )

    def transfer_report(self, by: Any = "site") -> TransferReport:
        """Compare the cross-validated errors of every output with and without transfer.

        With transfer, outputs are predicted by the joint model alone, which is one of the models
        that `EMGPR` mixes by default; `cross_validate` evaluates the mixture. Without transfer,
        each output is predicted by its model of step 1. It "gains" or "loses" if the mean
        difference of absolute errors exceeds two standard errors. Bonferroni and Student
        corrections limit the probability of any false alarm to that for one output. Log densities
        are not tested, because they also depend on the noise. The comparison favours transfer
        because weights were fitted to the left-out readings: between unrelated outputs, by half a
        standard error for 100 to 150 readings, and by more for fewer readings.

        `by` has the same meaning as in `cross_validate`. With labels, differences are averaged
        within groups, and the standard error is computed from the group means.
        """
        observations, inputs, scaler = self._data()
        sets = LeaveOutSets.build(by, observations, inputs, scaler.names)
        return transfer_report(
            self.posterior_.with_transfer(), observations, scaler, sets, self._execution()
        )

    def first_look(self, X: Any, y: Any) -> TableSummary:
        """Summarise a table before a fit, with warnings about suspicious values.

        Nothing is fitted. An invalid table raises the same errors as in `fit`.

        >>> from emgpr import EMGPR
        >>> from emgpr.datasets import jura_table
        >>> jura = jura_table()
        >>> print(EMGPR().first_look(jura.X, jura.Y))
        359 rows; 359 locations
        Xloc 0.491 to 4.92, Yloc 0.524 to 5.69
            readings  missing  least  median  greatest               transform
        Cd       259      100  0.135    1.07     5.129  softplus (first guess)
        Ni       359        0   1.98   20.68      53.2  softplus (first guess)
        Zn       359        0     25   73.56    259.84  softplus (first guess)
        """
        self.fit_settings()
        self._execution()  # raises if the device is not available
        return TableSummary.build(
            self._read(X, y), self.output_transform, self.output_bounds, self.compositions
        )

    def plan(self, X: Any, y: Any) -> Plan:
        """Return the steps of a fit to this table, with estimates of their time and memory.

        The estimates are computed from the sizes of the matrices and the measured speed of this
        machine, and are usually correct within a factor of 2. The plan also lists the
        approximations of each step; `approximation_report` of the fitted model measures their
        effect.

        >>> from emgpr import EMGPR
        >>> from emgpr.datasets import jura_table
        >>> jura = jura_table()
        >>> plan = EMGPR().plan(jura.X, jura.Y)
        >>> [(step.name, step.n_readings) for step in plan.steps][-2:]
        [('joint optimisation', 977), ('stacking', 977)]
        """
        settings, execution = self.fit_settings(), self._execution()
        return plan_fit(settings, self._read(X, y), execution)

    def approximation_report(
        self, n_readings: int = 900, *, random_state: RandomState = 0
    ) -> ApproximationReport:
        """Measure the loss of accuracy due to approximations, by comparison with an exact model.

        The comparison uses clusters of neighbouring training sites, with about `n_readings`
        readings. A third of the sites is left out and predicted from the others in three ways: by
        this model; by a model with the same parameters, conditioned on all other readings; and by
        an exact model with the same settings, fitted to and conditioned on all other readings. The
        first error minus the second is due to conditioning, the second minus the third to fitting.

        This model can be better than the exact one, because it was fitted to many more readings,
        possibly including those that are left out here. If there is a significant loss, increase
        `n_members`, `batch_size` or `conditioning`, or use another `latent_learner`.

        >>> from emgpr import EMGPR
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(80, 2))
        >>> Y = np.sin(6 * X) + 0.1 * rng.normal(size=(80, 2))
        >>> report = EMGPR.paper(random_state=0).fit(X, Y).approximation_report()
        >>> report.table.loc[("0", "mae"), ["fitted", "exact"]].round(1).tolist()
        [0.1, 0.1]
        """
        check_is_fitted(self)
        approximations, partition = self.approximations_, self.fit_settings().partition
        model = ApproximateModel(self.posterior_, self.output_scaler_, self.input_spec_, partition)
        return compare_with_exact(
            model, approximations, self._fit_exact, n_readings, random_state, self._execution()
        )

    def _fit_exact(self, sites: Array, outputs: list[int]) -> ExactModel:
        """Fit the same model without approximations to some of the sites and outputs."""
        X, Y = (part.iloc[sites] for part in self.training_data())
        external = is_external(self.latent_learner)  # its kernels may differ from self.kernel
        exact = exact_params(
            self.get_params(deep=False),
            kernels=self.kernels_ if external else None,
            transforms=[self.transforms_[d] for d in outputs],
            outputs=None if self.fit_settings().couples_outputs else outputs,
            refine=self.resolved_params_.refine,
        )
        inputs = X if self.input_spec_.feature_names is not None else X.to_numpy()
        model, messages = fit_quietly(clone(self).set_params(**exact), inputs, Y.iloc[:, outputs])
        return ExactModel(model.posterior_, model.output_scaler_, messages)

    def _data(self) -> tuple[Observations, InputSpec, OutputScaler]:
        check_is_fitted(self)
        return self.posterior_.observations, self.input_spec_, self.output_scaler_

    def _read(self, X: Any, y: Any) -> TrainingTable:
        return read_training_table(
            X, y, estimator=type(self).__name__, crs=self.crs, centred=self.normalize_y,
            standardise_many=is_auto(self.kernel),
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        return lmc_state(
            self.get_params(deep=False), self.input_spec_, self.output_scaler_,
            self.resolved_params_, self.posterior_, self.fit_summary_,
        )  # fmt: skip

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        state = upgrade_state(state, version, cls.fixed.get("couples_outputs", True))
        check_lmc_state(state)
        model = cls(**state["settings"])
        given = model.fit_settings()
        return model._assign(
            *lmc_from_state(state, cls.__name__, given.combine, given.latent_learner)
        )
