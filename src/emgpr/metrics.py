"""Metrics for predictions: errors, calibration of the uncertainty, and paired differences.

The arguments of each metric are tables of the same shape. Entries whose true value is NaN are
ignored. The metric is averaged over rows, so there is one value for each output.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

Array = np.ndarray


def mean_absolute_error(truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]) -> Array:
    """Return the mean absolute error (MAE) of each output."""
    return np.asarray(np.nanmean(np.abs(truth - mean), axis=0))


def mean_squared_error(truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]) -> Array:
    """Return the mean squared error (MSE) of each output."""
    return np.asarray(np.nanmean((truth - mean) ** 2, axis=0))


def standardised_mean_squared_error(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]
) -> Array:
    """Return the standardised MSE (SMSE) of each output: MSE / variance of the true values."""
    return np.asarray(mean_squared_error(truth, mean) / np.nanvar(truth, axis=0))


def negative_log_density(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"], std: Float[Array, "N *D"]
) -> Array:
    """Return the mean negative log density (NLPD) of each output under N(mean, std²)."""
    return np.asarray(np.nanmean(-norm.logpdf(truth, mean, std), axis=0))


def crps(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"], std: Float[Array, "N *D"]
) -> Array:
    """Return the CRPS of each output, the mean of ∫ (Φ((t − mean)/std) − [t ≥ truth])² dt.

    The continuous ranked probability score (CRPS) has the units of the output. If std is zero, it
    is the absolute error.

    >>> crps(np.array([1.0, 4.0]), np.array([1.0, 1.0]), np.array([0.0, 0.0]))
    array(1.5)
    """
    error = truth - mean
    z = error / np.where(std > 0, std, np.nan)
    spread = std * (2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    score = np.where(std > 0, error * (2 * norm.cdf(z) - 1) + spread, np.abs(error))
    return np.asarray(np.nanmean(score, axis=0))


def coverage(
    truth: Float[Array, "N *D"],
    mean: Float[Array, "N *D"],
    std: Float[Array, "N *D"],
    level: float = 0.95,
) -> Array:
    """Return the fraction of readings inside their central prediction intervals at this level."""
    inside = np.abs(truth - mean) <= norm.ppf(0.5 + level / 2) * std
    return np.asarray(np.nanmean(np.where(np.isnan(truth), np.nan, inside), axis=0))


def central_coverage(pit: Float[Array, "N *D"], levels: Float[Array, " k"]) -> Float[Array, "k *D"]:
    """Return the fraction of readings inside their central prediction intervals, for each level.

    `pit` holds the probability integral transform u of each reading, which is the value of its
    predictive distribution function. The reading lies inside all intervals whose level
    is at least `|2u − 1|`. For a calibrated model, the fraction equals the level.

    >>> central_coverage(np.array([0.5, 0.1, 0.95, np.nan]), np.array([0.5, 0.95])).round(2)
    array([0.33, 1.  ])
    """
    inside = np.abs(2 * pit - 1) <= levels.reshape(-1, *[1] * pit.ndim)
    return np.asarray(np.nanmean(np.where(np.isnan(pit), np.nan, inside), axis=1))


@dataclass(frozen=True)
class PairedDifference:
    """Mean difference in loss between two methods on the same readings, and its standard error."""

    mean: float
    standard_error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.standard_error:.4f}"

    def sign(self, n_compared: int = 1) -> int:
        """Return −1 or 1 if the mean differs from zero by more than two standard errors, else 0.

        If `n_compared` differences are tested, the limit is larger (Bonferroni correction with
        Student's t distribution). The probability of one or more false alarms is then at most the
        probability that a normal variable is more than two standard deviations from its mean.
        """
        limit = t.isf(norm.sf(2) / n_compared, max(self.n - 1, 1)) * self.standard_error
        return int(self.mean > limit) - int(self.mean < -limit)


def paired_difference(ours: Float[Array, " N"], theirs: Float[Array, " N"]) -> PairedDifference:
    """Return the mean of ours − theirs, where both are losses on the same readings.

    A negative mean favours the method whose losses are `ours`.

    >>> str(paired_difference(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0])))
    '-1.0000 ± 0.5774'
    """
    difference = ours - theirs
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    unit = float(np.abs(difference).max(initial=0.0)) or 1.0  # so that squares do not underflow
    error = unit * float((difference / unit).std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return PairedDifference(float(difference.mean()), error, n)


class over_readings:  # a class, so that scorers built from it can be pickled
    """Adaptation of a scikit-learn metric to tables with missing readings.

    scikit-learn's metrics reject NaN, so `scoring="neg_mean_absolute_error"` fails if an output was
    not measured everywhere. This class applies a metric to the readings of each output and averages
    the scores of the outputs that have at least `least` readings. For outputs in different units,
    use a metric without units, such as R².

    >>> from sklearn.metrics import make_scorer, mean_absolute_error
    >>> error = over_readings(mean_absolute_error)
    >>> error([[1.0, 5.0], [2.0, np.nan]], [[1.5, 5.0], [2.0, 7.0]])
    0.125
    >>> make_scorer(error, greater_is_better=False)      # pass this to cross_val_score
    make_scorer(mean_absolute_error, greater_is_better=False, response_method='predict')
    """

    def __init__(self, metric: Callable[..., float], *, least: int = 1) -> None:
        self.metric = metric
        self.least = least
        self.__name__ = metric.__name__  # shown in the repr of scorers

    def __call__(
        self, y_true: Any, y_pred: Any, *, sample_weight: Any = None, **options: Any
    ) -> float:
        """Return the mean score over outputs, or NaN if no output has enough readings."""
        truth = np.asarray(y_true, dtype=float)
        prediction = np.asarray(y_pred, dtype=float)
        if truth.shape != prediction.shape:
            raise ValueError(
                f"y_true has shape {truth.shape} and y_pred {prediction.shape}; expected arrays "
                "of the same shape."
            )
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scores = []
        columns = len(truth), -1
        for true, p in zip(truth.reshape(columns).T, prediction.reshape(columns).T, strict=True):
            measured = ~np.isnan(true)
            if measured.sum() < self.least:
                continue
            weights = {} if weight is None else {"sample_weight": weight[measured]}
            scores.append(self.metric(true[measured], p[measured], **weights, **options))
        return float(np.mean(scores)) if scores else float("nan")
