"""The estimator ConditionalGP, which predicts outputs from those known at the same location."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from emgpr import inspection
from emgpr.cross_validation import TransferReport
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.multi_output import MultiOutputGP

Array = np.ndarray


@declare_parameters
class ConditionalGP(MultiOutputGP):
    """Regression of each output on the outputs known at the same location.

    This model fills gaps: it predicts an output at locations where other outputs z are known, far
    from its own readings as well as between them. For output d,

        y_d = drift h(z)ᵀβ + residual process f(x) + noise

    The drift is a linear and a smooth function of the known outputs (kriging with external drift).
    Its coefficients have Gaussian priors, so that there can be more known outputs than readings.
    Far from the readings, the residual process returns to zero.

    The length-scale and the variance of the residual process, and the variances of the priors, are
    not optimised. Predictions average over some forty combinations of them, with weights by how
    well each predicts left-out readings: single readings, and gaps like those in the table. The
    resulting regression and the output's own process are the two components of the predictive
    distribution (`stacking_weights_`). `EMGPR`, with its default `transfer="auto"`, also includes
    the joint model of all outputs.

    The known outputs are those in `observed`, or the training readings at the same location. Where
    nothing is known, predictions are those of `IndependentGP`. A repeated measurement of a known
    output is also predicted as by `IndependentGP`. Given the known outputs, the other outputs are
    predicted independently of each other. A regression uses all training rows in which its output
    was measured. If a known output is missing in such a row, it is imputed by its own process, and
    the noise variance of the row is increased accordingly. With more than 600 readings of an
    output, its residual process is predicted from the nearest 32. See docs/conditional.md.

    Parameters
    ----------
    residual_kernel : {"matern12", "matern32", "matern52", "rbf"}
        Kernel of the residual process.
    varying_coefficients : bool
        Whether combinations whose coefficients vary with the location are included.
    kernel, conditioning, latent_learner, output_transform, output_bounds, compositions, ...
        As in `EMGPR`, for the outputs' own processes and for the scale of the outputs. Parts of a
        whole (`compositions`) are predicted by their own processes alone.

    Attributes
    ----------
    regressions_ : DataFrame with the settings of each regression, and their weights and variances
    stacking_weights_ : DataFrame with the weights of own processes and regressions
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
    >>> filled = model.predict(X)[60:, 1]
    >>> low, high = model.predict_quantiles(X, [0.05, 0.95])[:, 60:, 1]
    >>> inside = np.mean((low < truth) & (truth < high))
    >>> bool(np.abs(filled - truth).mean() < 0.3), bool(inside > 0.8)
    (True, True)
    """

    fixed: ClassVar[Mapping[str, Any]] = {
        "refine": 0,
        "couples_outputs": False,
        "transfer": "auto",
    }

    _: KW_ONLY
    residual_kernel: Literal["matern12", "matern32", "matern52", "rbf"] = "matern12"
    varying_coefficients: bool = False

    def transfer_report(self, by: Any = "gap") -> TransferReport:
        """Compare the cross-validated errors of every output with those of its own process.

        By default, the readings of one output in a block of neighbouring sites are left out, where
        the other outputs are known. Where nothing is known (by="site" or "block"), both predictions
        are the same. The columns and verdicts are those of `EMGPR.transfer_report`.

        >>> rng = np.random.default_rng(0)
        >>> X = np.linspace(0, 60, 120)[:, None]
        >>> z = np.sin(X) + np.sin(2.3 * X)
        >>> Y = z * [1, 2] + 0.2 * rng.normal(size=(120, 2))
        >>> print(ConditionalGP(random_state=0).fit(X, Y).transfer_report().sentence)
        Transfer helps 0, 1.
        """
        return super().transfer_report(by)

    @property
    def stacking_weights_(self) -> pd.DataFrame:
        """Weights of own processes and regressions, near an output's readings and far from them."""
        return inspection.stacking_weights(self._fitted("posterior_"), self.output_names_)

    @property
    def regressions_(self) -> pd.DataFrame:
        """Settings of the regressions fitted so far, with weights and variances."""
        return inspection.regressions(self._fitted("posterior_"), self.output_names_)
