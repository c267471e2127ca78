"""Predictions of one output from its readings and the known outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import CholeskyFactor, cholesky, inv
from emgpr.conditional.fit import FittedRegression
from emgpr.conditional.kernel import RegressionKernel, RegressionRows

Array = np.ndarray
Predicted = tuple[Float[Array, " m"], Float[Array, " m"]]


@dataclass(frozen=True)
class Regression:
    """A fitted regression, conditioned on readings y of its output at `rows`.

    Variances of predictions include the uncertainty of the parameters to second order: along each
    direction of the parameters, the squared derivative of the mean and half the second difference
    of the variance, if it is positive, are added.
    """

    kernel: RegressionKernel
    fitted: FittedRegression
    rows: RegressionRows
    y: Float[Array, " n"]

    @cached_property
    def factor(self) -> CholeskyFactor:
        """Factor of the covariance of the readings."""
        K, _ = self.kernel.evaluate(self.fitted.theta, self.rows)
        return cholesky(K).checked("covariance of a regression on known outputs")

    def predict(
        self, new: RegressionRows, *, include_noise: bool = True, with_variance: bool = True
    ) -> Predicted:
        """Return mean and variance of readings, or of the signal, at new rows."""
        if not with_variance:
            return self._predict(new, include_noise)
        return self._with_uncertainty(lambda regression: regression._predict(new, include_noise))

    def joint(
        self, new: RegressionRows, *, include_noise: bool = True
    ) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
        """Return the joint distribution at new rows, with the variances of `predict`."""
        theta = self.fitted.theta
        half = self.factor.half_solve(self.kernel.covariance(theta, self.rows, new))
        cov = self.kernel.covariance(theta, new, new) - half.T @ half
        if include_noise:
            cov[np.diag_indices_from(cov)] += self.kernel.noise(theta, new)
        mean, variance = self.predict(new, include_noise=include_noise)
        scale = np.sqrt(variance / np.maximum(np.diagonal(cov), np.finfo(float).tiny))
        return mean, cov * scale * scale[:, None]

    def leave_out(self, sets: Int[Array, " n"], targets: Int[Array, " m"]) -> Predicted:
        """Predict the readings at the rows `targets` from the readings in other sets."""
        return self._with_uncertainty(lambda regression: regression._leave_out(sets, targets))

    def _with_uncertainty(self, plug_in: Callable[["Regression"], Predicted]) -> Predicted:
        """Add the uncertainty of the parameters to the variance of a prediction."""
        mean, variance = plug_in(self)
        added = np.zeros_like(variance)
        for step in self.fitted.directions:
            (m1, v1), (m2, v2) = plug_in(self._shifted(step)), plug_in(self._shifted(-step))
            added += 0.25 * (m1 - m2) ** 2 + np.maximum(0.5 * (v1 + v2) - variance, 0.0)
        return mean, variance + added

    def _shifted(self, step: Float[Array, " p"]) -> "Regression":
        """Return the regression with other parameters."""
        fitted = FittedRegression(self.fitted.theta + step, self.fitted.directions[:0])
        return Regression(self.kernel, fitted, self.rows, self.y)

    def _predict(self, new: RegressionRows, include_noise: bool) -> Predicted:
        """Return mean and variance at new rows for the fitted parameters."""
        theta = self.fitted.theta
        cross = self.kernel.covariance(theta, self.rows, new)
        half = self.factor.half_solve(np.column_stack([cross, self.y]))
        half, target = half[:, :-1], half[:, -1]
        variance = self.kernel.variance(theta, new) - (half**2).sum(axis=0)
        variance = np.maximum(variance, 0.0)
        if include_noise:
            variance += self.kernel.noise(theta, new)
        return half.T @ target, variance

    def _leave_out(self, sets: Int[Array, " n"], targets: Int[Array, " m"]) -> Predicted:
        """Return mean and variance of left-out readings for the fitted parameters.

        The readings in a set b have the mean y_b − P_b⁻¹ (Py)_b and the covariance P_b⁻¹, where P
        is the precision matrix of all readings.
        """
        precision = self.factor.inverse()
        a = precision @ self.y
        mean, variance = np.empty(len(targets)), np.empty(len(targets))
        for label in np.unique(sets[targets]):
            members, at = np.flatnonzero(sets == label), np.flatnonzero(sets[targets] == label)
            cov = inv(precision[np.ix_(members, members)])
            place = np.searchsorted(members, targets[at])
            mean[at] = self.y[targets[at]] - (cov @ a[members])[place]
            variance[at] = np.diagonal(cov)[place]
        return mean, variance
