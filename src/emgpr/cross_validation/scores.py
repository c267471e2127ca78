"""Scores that compare predictive distributions with readings, in original units."""

import numpy as np
from jaxtyping import Float

from emgpr.prediction import GaussianMixture
from emgpr.transforms import OutputScaler

Array = np.ndarray

LEVEL = 0.95  # coverage probability of the prediction intervals


def score_predictions(
    scaler: OutputScaler,
    predicted: GaussianMixture,
    truth: Float[Array, "M D"],
    standardised: Float[Array, "M D"] | None = None,
) -> dict[str, Float[Array, "M D"]]:
    """Return a dict of predictions and scores; its keys are names of fields of `CrossValidation`.

    `standardised` holds the readings on the standardised scale; by default, it is computed from
    `truth`. A reading that is impossible under the model has a density of zero.
    """
    z = scaler.standardise_or_nan(truth) if standardised is None else standardised
    tail = (1 - LEVEL) / 2
    lower, middle, upper = scaler.quantiles(predicted, np.array([tail, 0.5, 1 - tail]))
    mean, cov = predicted.moments()
    variance = np.maximum(np.einsum("ndd->nd", cov), 0.0)
    return {
        "prediction": middle,
        "std": scaler.std(predicted),
        "lower": lower,
        "upper": upper,
        "standardized": (z - mean) / np.sqrt(variance),
        "nlpd": -scaler.log_density(predicted, truth),
        "crps": scaler.crps(predicted, truth),
        "pit": scaler.cdf(predicted, truth),
    }
