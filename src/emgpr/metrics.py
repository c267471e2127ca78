"""How good a prediction was: errors, how honest its uncertainty is, and whether a gain is real.

Each takes tables of the same shape, ignores readings whose truth is NaN, and
averages over rows, giving a value an output.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

Array = np.ndarray


def mean_absolute_error(truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]) -> Array:
    """MAE of each output."""
    return np.asarray(np.nanmean(np.abs(truth - mean), axis=0))


def mean_squared_error(truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]) -> Array:
    """MSE of each output."""
    return np.asarray(np.nanmean((truth - mean) ** 2, axis=0))


def standardised_mean_squared_error(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"]
) -> Array:
    """SMSE of each output: the MSE over the variance of the truth; predicting its mean gives 1."""
    return np.asarray(mean_squared_error(truth, mean) / np.nanvar(truth, axis=0))


def negative_log_density(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"], std: Float[Array, "N *D"]
) -> Array:
    """NLPD of each output: the mean of −log N(truth; mean, std²)."""
    return np.asarray(np.nanmean(-norm.logpdf(truth, mean, std), axis=0))


def crps(
    truth: Float[Array, "N *D"], mean: Float[Array, "N *D"], std: Float[Array, "N *D"]
) -> Array:
    """CRPS of each output: the mean of ∫ (Φ((t − mean)/std) − [t ≥ truth])² dt, in its units.

    Where std is zero it is the absolute error.

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
    """Share of readings inside their central intervals of this level."""
    inside = np.abs(truth - mean) <= norm.ppf(0.5 + level / 2) * std
    return np.asarray(np.nanmean(np.where(np.isnan(truth), np.nan, inside), axis=0))


def central_coverage(pit: Float[Array, "N *D"], levels: Float[Array, " k"]) -> Float[Array, "k *D"]:
    """Share of readings inside their central intervals of every level, from their PIT.

    A reading that was given probability u below it lies inside the interval of level
    `|2u − 1|`, and of all wider ones. An honest model's share is the level.

    >>> central_coverage(np.array([0.5, 0.1, 0.95, np.nan]), np.array([0.5, 0.95])).round(2)
    array([0.33, 1.  ])
    """
    at = levels.reshape(-1, *[1] * pit.ndim)
    inside = np.abs(2 * pit - 1) <= at
    return np.asarray(np.nanmean(np.where(np.isnan(pit), np.nan, inside), axis=1))


@dataclass(frozen=True)
class PairedDifference:
    """Mean of ours − theirs over the same readings, with its standard error."""

    mean: float
    standard_error: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.standard_error:.4f}"

    def sign(self, n_compared: int = 1) -> int:
        """−1 or 1 if the mean is beyond two standard errors on that side, else 0.

        They are made wider (Bonferroni, Student) so that as many as are compared raise a false
        alarm together no more often than two standard errors of one.
        """
        limit = t.isf(norm.sf(2) / n_compared, max(self.n - 1, 1)) * self.standard_error
        return int(self.mean > limit) - int(self.mean < -limit)


def paired_difference(ours: Float[Array, " N"], theirs: Float[Array, " N"]) -> PairedDifference:
    """Difference of two methods' losses on the same readings; negative favours ours.

    >>> str(paired_difference(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0])))
    '-1.0000 ± 0.5774'
    """
    difference = ours - theirs
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    unit = float(np.abs(difference).max(initial=0.0)) or 1.0  # squares of 1e-200 are nothing
    error = unit * float((difference / unit).std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return PairedDifference(float(difference.mean()), error, n)


class over_readings:  # a class, so that scorers made of it can be pickled
    """A metric of scikit-learn's for tables with gaps: of each output, then their mean.

    scikit-learn's metrics refuse NaN, so `scoring="neg_mean_absolute_error"` fails where an output
    was not measured everywhere; this lets them see, output by output, the readings that were made.
    An output with fewer than `least` readings has no part. Outputs of different units are
    averaged as they are: R² and the like have none.

    >>> from sklearn.metrics import make_scorer, mean_absolute_error
    >>> error = over_readings(mean_absolute_error)
    >>> error([[1.0, 5.0], [2.0, np.nan]], [[1.5, 5.0], [2.0, 7.0]])
    0.125
    >>> make_scorer(error, greater_is_better=False)      # give this to cross_val_score
    make_scorer(mean_absolute_error, greater_is_better=False, response_method='predict')
    """

    def __init__(self, metric: Callable[..., float], *, least: int = 1) -> None:
        self.metric = metric
        self.least = least
        self.__name__ = metric.__name__  # which scorers print

    def __call__(
        self, y_true: Any, y_pred: Any, *, sample_weight: Any = None, **options: Any
    ) -> float:
        """NaN if no output has enough readings."""
        truth = np.asarray(y_true, dtype=float)
        prediction = np.asarray(y_pred, dtype=float)
        if truth.shape != prediction.shape:
            raise ValueError(
                f"y_true has shape {truth.shape} and y_pred {prediction.shape}; give tables of the "
                "same readings."
            )
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scores = []
        columns = len(truth), -1
        for true, p in zip(truth.reshape(columns).T, prediction.reshape(columns).T, strict=True):
            made = ~np.isnan(true)
            if made.sum() < self.least:
                continue
            own = {} if weight is None else {"sample_weight": weight[made]}
            scores.append(self.metric(true[made], p[made], **own, **options))
        return float(np.mean(scores)) if scores else float("nan")
