"""Posteriors that are mixtures of three candidates, on tables drawn from a known model."""

from dataclasses import replace

import numpy as np

from emgpr.stacking import CANDIDATES, StackedPosterior, fit_stack
from emgpr.stacking.scores import LeftOutScores
from tests.simulated import World, lmc_posterior, world


def gappy_world(seed=8, N=40, correlated=True) -> World:
    """Three outputs in a narrow strip.

    The second output has a gap in the west, and the first lacks a few readings.
    """
    made = strip(world(np.random.default_rng(seed), N=N, k=1, correlated=correlated))
    Y = made.Y.copy()
    Y[made.X[:, 0] < 0.4, 1] = np.nan
    Y[::9, 0] = np.nan
    return made.table(Y)


def strip(made: World) -> World:
    """The table with its sites in a narrow strip, so that gaps are far from other readings."""
    return replace(made, X=made.X * [1.0, 0.05])


def stacked_posterior(made: World | None = None, n_members=1, **settings):
    """A table, and its posterior with fitted weights of all candidates."""
    made = gappy_world() if made is None else made
    rng = np.random.default_rng(9)
    W = made.W + 0.3 * (n_members > 1) * rng.normal(size=(n_members, *made.W.shape))
    return made, stack(lmc_posterior(made, W, **settings))


def stack(joint, couples_outputs=True, **settings) -> StackedPosterior:
    """The posterior with fitted weights; the joint model is not refitted for gaps."""
    scores = LeftOutScores(joint, couples_outputs, 10)
    settings = {"refit": lambda _: joint.model} | settings
    return StackedPosterior.extending(joint, fit_stack(joint, scores, **settings))


def candidate_weights(posterior, x, observed) -> np.ndarray:
    """The weights (3, M, D) of all candidates in predictions at x."""
    found = posterior.predict(x, observed)
    weights = np.zeros((len(CANDIDATES), *found.mean.shape[1:]))
    weights[[CANDIDATES.index(name) for name in found.names]] = found.weights
    return weights
