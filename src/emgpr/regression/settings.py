"""The settings of a regression: a residual process, and a prior on the coefficients.

All variances are relative to the sum of the variances of the residual process and of the noise,
which is estimated for each setting. Length-scales are relative to the extent of the region.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from emgpr.kernels import NAMED_KERNELS, Pairs, evaluate_kernel
from emgpr.regression.drift import Drift
from emgpr.regression.rows import RegressionRows

Array = np.ndarray

LENGTH_SCALES = (0.03, 0.15, 0.7)
SHARES = (0.5, 0.95, 0.999)  # of the residual process; the rest is noise
LINEAR_VARIANCES = (3.0, 100.0)  # of the linear part of the drift: much or little shrinkage
SMOOTH_SHARES = (0.0, 0.3)  # variance of the smooth part of the drift, relative to the linear part
CONSTANT_VARIANCE = 10.0
VARYING_VARIANCE, VARYING_SCALE = 0.5, 0.5  # of coefficients that vary with the location
MIN_NOISE = 1e-6
# The noise of a row due to imputed values, for each unit of their mean variance. A known output
# with a coefficient of about one contributes its variance; the unit is the variance of the
# residuals, which is about a third of that of the output.
IMPUTED_NOISE = 3.0


class Residual(NamedTuple):
    """A residual process of the location plus noise, of total variance one.

    A share of zero means that there is noise only, as in least-squares regression.
    """

    length_scale: float
    share: float
    varying: float = 0.0  # variance of the coefficients' changes with the location

    def covariance(
        self, kernel: str, a: RegressionRows, b: RegressionRows
    ) -> Float[Array, "*b n m"]:
        """Return the covariance of the residuals at the rows of a with those at the rows of b."""
        pairs = Pairs(a.x, b.x)
        total = np.zeros(pairs.shape)
        if self.share:
            total = self.share * _correlation(kernel, self.length_scale, pairs)
        if self.varying:
            products = a.z @ np.swapaxes(b.z, -1, -2)
            total = total + self.varying * products * _correlation(kernel, VARYING_SCALE, pairs)
        return total

    def variance(self, rows: RegressionRows) -> Float[Array, "*b n"]:
        """Return the variance of the residual process at each row, without noise."""
        return self.share + self.varying * (rows.z**2).sum(axis=-1)

    def noise(self, rows: RegressionRows) -> Float[Array, "*b n"]:
        """Return the variance of the noise of each row."""
        return 1.0 - self.share + MIN_NOISE + IMPUTED_NOISE * rows.imputed


class DriftPrior(NamedTuple):
    """The prior variances of the coefficients of the drift."""

    linear: float
    smooth: float

    def deviations(self, drift: Drift) -> Float[Array, " q"]:
        """Return the prior standard deviation of each coefficient; 0 if it is not used."""
        k, c = drift.n_linear, drift.n_smooth
        variances = [CONSTANT_VARIANCE, *[self.linear] * k, *[self.smooth * self.linear] * c]
        return np.sqrt(variances)


class Setting(NamedTuple):
    """A regression: residual process and prior of the coefficients."""

    residual: Residual
    prior: DriftPrior


def residual_models(varying: bool) -> list[Residual]:
    """Return the residual processes: noise only, or each length-scale with each share."""
    found = [Residual(1.0, 0.0), *(Residual(*pair) for pair in product(LENGTH_SCALES, SHARES))]
    if varying:
        found += [residual._replace(varying=VARYING_VARIANCE) for residual in found]
    return found


def drift_priors() -> list[DriftPrior]:
    """Return the priors of the coefficients."""
    return [DriftPrior(*pair) for pair in product(LINEAR_VARIANCES, SMOOTH_SHARES)]


def all_settings(varying: bool) -> list[Setting]:
    """Return all settings; those with the same residual process follow each other.

    >>> len(all_settings(varying=False)), all_settings(varying=False)[0].residual.share
    (40, 0.0)
    """
    return [Setting(*pair) for pair in product(residual_models(varying), drift_priors())]


def _correlation(kernel: str, scale: float, pairs: Pairs) -> Float[Array, "*b n m"]:
    return evaluate_kernel(NAMED_KERNELS[kernel], np.log([scale]), pairs)[0]
