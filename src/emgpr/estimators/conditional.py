"""The estimator ConditionalGP, which predicts outputs from those known at the same location."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from emgpr.conditional import MEMBERS, ConditionalPosterior, RegressionKernel, RegressionSet
from emgpr.conditional.fit import FIT_READINGS
from emgpr.conditional.posterior import MAX_READINGS
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.multi_output import MultiOutputGP
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.fit import FittedLMC
from emgpr.inputs import InputSpec
from emgpr.kernels import NAMED_KERNELS
from emgpr.model_files.conditional_state import (
    regressions_from_state,
    regressions_state,
    regressions_with,
    settings_state,
)
from emgpr.parameter_checks import check_choice
from emgpr.planning import Plan

Array = np.ndarray

NOT_PLANNED = (
    "Regressions on known outputs are not included: each is fitted when a prediction first needs "
    f"it, to at most {FIT_READINGS} readings."
)


@declare_parameters
class ConditionalGP(MultiOutputGP):
    """Regression of each output on the outputs known at the same location.

    This model fills gaps: it predicts an output at locations where other outputs z are known, far
    from its own readings as well as between them. For output d,

        y_d = linear function of z + smooth function of z + residual process of place + noise

    All parts have Gaussian process priors, with the covariance s_b² zᵀz′ + s_g² k(z, z′) +
    s_f² k(x, x′) + s_n² for standardised outputs. The linear part is a ridge regression, so that
    there can be more known outputs than readings. Far from the readings, the residual process
    returns to its prior.

    The parameters are fitted for each output and each set of known outputs when a prediction first
    needs them, with a weak prior and by two criteria: the likelihood, which is decided by
    neighbouring readings, and the density of left-out blocks of readings, as in a gap; and by each
    of them with and without the smooth function. Predictions are a mixture of these four members,
    weighted by how well they predict left-out blocks, and replaced by a Gaussian with its mean and
    variance.

    The known outputs are those in `observed`, or the training readings at the same location. Where
    nothing is known, predictions are those of `IndependentGP`; so are those of a repeated
    measurement of an output that is known itself. Given the known outputs, the other outputs are
    predicted independently of each other. A regression uses all training rows in which its output
    was measured. If a known output is missing in such a row, it is imputed by its own process, and
    the variance of the imputed value is added to the noise of the row.

    An output can have up to 4000 readings; above 600, the parameters are fitted to a subsample,
    and predictions use all readings. See docs/conditional.md.

    Parameters
    ----------
    residual_kernel : {"matern12", "matern32", "matern52", "rbf"}
        Kernel of the residual process. A rough process, the default, lets the coefficients depend
        less on the fine detail of dense readings.
    varying_coefficients : bool
        Whether the coefficients of the linear part vary with the location: adds s_v² zᵀz′ k(x, x′).
    kernel, conditioning, latent_learner, output_transform, output_bounds, compositions, ...
        As in `EMGPR`, for the outputs' own processes and for the scale of the outputs.
    parameter_uncertainty : bool
        Whether predictive distributions include the uncertainty of all parameters.
    max_iter : int
        Maximum number of iterations of each optimisation.

    Attributes
    ----------
    regressions_ : DataFrame with the parameters of the regressions fitted so far, as standard
        deviations and length-scales, and their weights in the mixture
    kernels_, noise_, transforms_, ... : as in `IndependentGP`

    Examples
    --------
    >>> from emgpr import ConditionalGP
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 10, 120)[:, None]
    >>> z = np.sin(X) + np.sin(2.3 * X)
    >>> Y = np.hstack([z, 2 * z]) + 0.1 * rng.normal(size=(120, 2))
    >>> truth = Y[60:, 1].copy()
    >>> Y[60:, 1] = np.nan                               # a sensor that failed
    >>> model = ConditionalGP(random_state=0).fit(X, Y)
    >>> filled, std = (part[60:, 1] for part in model.predict(X, return_std=True))
    >>> bool(np.abs(filled - truth).mean() < 0.3), bool((std < 0.6).all())
    (True, True)
    """

    fixed: ClassVar[Mapping[str, Any]] = {"refine": 0, "couples_outputs": False}

    _: KW_ONLY
    residual_kernel: Literal["matern12", "matern32", "matern52", "rbf"] = "matern12"
    varying_coefficients: bool = False

    posterior_: ConditionalPosterior = field(init=False)

    def fit_settings(self) -> FitSettings:
        """Return the validated parameters, together with the settings that this class fixes."""
        check_choice("residual_kernel", self.residual_kernel, tuple(NAMED_KERNELS))
        if not isinstance(self.varying_coefficients, bool | np.bool_):
            raise ValueError(
                f"varying_coefficients={self.varying_coefficients!r}; expected True or False."
            )
        return super().fit_settings()

    def plan(self, X: Any, y: Any) -> Plan:
        """Return the steps of a fit to this table, with estimates of their time and memory.

        The regressions are not included, because which are needed depends on the outputs that are
        known where predictions are made. They are fitted when a prediction first needs them.
        """
        return replace(super().plan(X, y), note=NOT_PLANNED)

    @property
    def alone_(self) -> dict[str, list[str]]:
        """Dict (keys "site" and "output") of outputs predicted from their own readings only.

        These are all outputs at locations where nothing is known, and none where others are.
        """
        return {"site": self.output_names_, "output": []}

    @property
    def regressions_(self) -> pd.DataFrame:
        """Parameters (standard deviations, length-scales) and weights of the fitted regressions."""
        names, posterior = self.output_names_, self.posterior_
        regressions = posterior.regressions
        columns = regressions.kernel.names
        is_scale = np.array([name.endswith("_scale") for name in columns])
        keys, rows = [], []
        for (d, known), members in regressions.fitted.items():
            weights = regressions.weights((d, known))
            for (criterion, linear), fitted, weight in zip(MEMBERS, members, weights, strict=True):
                keys.append((names[d], ", ".join(names[k] for k in known), criterion, linear))
                rows.append([*np.exp(np.where(is_scale, 1.0, 0.5) * fitted.theta), weight])
        levels = ["output", "known", "criterion", "linear"]
        empty = pd.MultiIndex.from_arrays([[]] * len(levels), names=levels)
        index = pd.MultiIndex.from_tuples(keys, names=levels) if keys else empty
        table = pd.DataFrame(rows, index=index, columns=[*columns, "weight"])
        return table.sort_index()

    def _assign(self, inputs: InputSpec, fitted: FittedLMC) -> Self:
        counts = fitted.posterior.observations.observed.sum(axis=1)
        if counts.max(initial=0) > MAX_READINGS:
            d = int(counts.argmax())
            raise ValueError(
                f"Output {fitted.scaler.names[d]!r} has {counts[d]} readings; ConditionalGP takes "
                f"at most {MAX_READINGS} of each output. Fit it to a part of the table, or use "
                "EMGPR, which has no such limit."
            )
        super()._assign(inputs, fitted)
        kernel = RegressionKernel(self.residual_kernel, bool(self.varying_coefficients))
        regressions = RegressionSet(
            self.posterior_.n_sites,
            tuple(self.output_names_),
            kernel,
            self.max_iter,
            bool(self.parameter_uncertainty),
        )
        self.posterior_ = ConditionalPosterior.extending(fitted.posterior, regressions)
        return self

    def _state(self) -> dict[str, Any]:
        regressions = self.posterior_.regressions
        return {
            **super()._state(),
            "regressions": regressions_state(regressions),
            "regression_settings": settings_state(regressions),
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self:
        stored, settings = state.pop("regressions", None), state.pop("regression_settings", None)
        model = super()._from_state(state, version)
        # Parameters may have been changed after the fit, and before the model was saved.
        regressions = regressions_with(settings, model.posterior_.regressions)
        regressions.fitted.update(
            regressions_from_state(stored, regressions.kernel, model.n_outputs_)
        )
        model.posterior_ = replace(model.posterior_, regressions=regressions)
        return model
