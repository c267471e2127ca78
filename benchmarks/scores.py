"""How good a prediction was, site by site, so that methods can be compared in pairs."""

from typing import Any

import numpy as np

from benchmarks.data import Problem
from emgpr.metrics import paired_difference

Array = np.ndarray
Losses = dict[str, Array]

NORMAL_95 = 1.959964


def usable(problem: Problem, mean: Array, std: Array) -> bool:
    """Whether every reading asked for has a finite mean and a positive standard deviation."""
    asked = ~np.isnan(problem.truth)
    return bool(np.isfinite(mean[asked]).all() and (std[asked] > 0).all())


def losses(problem: Problem, mean: Array, std: Array) -> Losses:
    """Of each site, the mean over the outputs asked for: readings of a site are related."""
    truth = problem.truth
    asked = ~np.isnan(truth)
    mean, std = np.where(asked, mean, 0.0), np.where(asked, std, 1.0)
    z = (truth - mean) / std
    by_reading = {
        "error": problem.loss(truth, mean),
        "mse": (truth - mean) ** 2,
        "nlpd": 0.5 * (z**2 + np.log(2 * np.pi)) + np.log(std),
        "coverage": np.abs(z) <= NORMAL_95,
    }
    return {
        name: np.nanmean(np.where(asked, values, np.nan), axis=1)
        for name, values in by_reading.items()
    }


def summary(ours: Losses, theirs: Losses | None) -> dict[str, Any]:
    """Means with standard errors over sites, and the differences from the yardstick's."""
    scores: dict[str, Any] = {
        name: [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]
        for name, values in ours.items()
    }
    if theirs is not None:
        pairs = {name: paired_difference(ours[name], theirs[name]) for name in ("error", "nlpd")}
        scores["minus_yardstick"] = {
            name: [pair.mean, pair.standard_error] for name, pair in pairs.items()
        }
    return scores
