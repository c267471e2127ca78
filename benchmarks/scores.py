"""Scores of predictions at each site, for paired comparisons of methods."""

from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.data import Problem
from emgpr.metrics import paired_difference

Array = np.ndarray
Losses = dict[str, Array]

NORMAL_95 = 1.959964  # half the width of a 95% interval, in standard deviations


def is_valid(problem: Problem, mean: Array, std: Array) -> bool:
    """Tell whether all predictions are finite and all standard deviations are positive."""
    requested = ~np.isnan(problem.truth)
    return bool(np.isfinite(mean[requested]).all() and (std[requested] > 0).all())


def losses(problem: Problem, mean: Array, std: Array) -> Losses:
    """Return the losses at each site, averaged over outputs because their errors correlate."""
    truth = problem.truth
    requested = ~np.isnan(truth)
    mean, std = np.where(requested, mean, 0.0), np.where(requested, std, 1.0)
    z = (truth - mean) / std
    by_reading = {
        "error": problem.loss(truth, mean),
        "mse": (truth - mean) ** 2,
        "nlpd": 0.5 * (z**2 + np.log(2 * np.pi)) + np.log(std),
        "crps": std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)),
        "coverage": np.abs(z) <= NORMAL_95,
    }
    return {
        name: np.nanmean(np.where(requested, values, np.nan), axis=1)
        for name, values in by_reading.items()
    }


def summary(ours: Losses, reference: Losses | None) -> dict[str, Any]:
    """Return means and differences from the reference method, with standard errors over sites."""
    scores: dict[str, Any] = {
        name: [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]
        for name, values in ours.items()
    }
    if reference is not None:
        pairs = {name: paired_difference(ours[name], reference[name]) for name in ("error", "nlpd")}
        scores["minus_yardstick"] = {
            name: [pair.mean, pair.standard_error] for name, pair in pairs.items()
        }
    return scores
