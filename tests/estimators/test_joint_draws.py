"""Draws over several sites and outputs: they belong together, whatever joins the members."""

from dataclasses import replace

import numpy as np
import pytest
from simulated import (
    covariance,
    gram,
    known_model,
    noise_between,
    paper,
    readings,
    smooth_table,
    which_were_read,
    world,
)
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr.ensemble import RULES, mixture
from emgpr.prediction import condition_jointly

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(0.4, "fixed") + WhiteKernel(0.1, "fixed")
QUICK = {"kernel": KERNEL, "max_iter": 8, "n_restarts": 1, "random_state": 0}
RNG = np.random.default_rng(11)
X, LEVELS = smooth_table(RNG, N=27)
Y = np.exp(0.5 * (LEVELS - LEVELS.mean(0)) / LEVELS.std(0)) * [1.0, 100.0, 0.01]
X_NEW = RNG.uniform(size=(4, 2))
FIVE = 5  # standard errors


@pytest.fixture(scope="module")
def ensembles():
    """Of three members, by what they are conditioned on; rules take part in predictions only."""
    settings = QUICK | {"batch_size": 9}
    return {how: paper(**settings, conditioning=how).fit(X, Y) for how in ("all", "batch")}


def agrees(drawn, mean, cov):
    """Whether draws (n, m) have this mean and covariance, to 5 standard errors each."""
    n = len(drawn)
    apart = drawn - mean
    products = apart[:, :, None] * apart[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    return bool(
        np.all(np.abs(apart.mean(axis=0)) < FIVE * np.sqrt(np.diag(cov) / n))
        and np.all(np.abs(products.mean(axis=0) - cov) < FIVE * error)
    )


def stacked(drawn):
    """Draws (M, D, n) as (n, D·M): output 0 at every site, then output 1, …"""
    return np.moveaxis(drawn, (0, 1, 2), (2, 1, 0)).reshape(drawn.shape[-1], -1)


def joint_readings(made, x, observed, *, noisy):
    """What would be read at x, over all sites and outputs, by plain inversion.

    What is observed at x are readings of the samples that are asked about: outputs that
    were not read of them share their noise, and of those that were another is taken.
    """
    N, D, M = len(made.X), made.Y.shape[1], len(x)
    known = replace(made, X=np.vstack([made.X, x]), Y=np.vstack([made.Y, observed]))
    (z, other, y), (_, row) = readings(known), which_were_read(known)
    task, there = np.repeat(np.arange(D), M), np.tile(x, (D, 1))
    own = np.where(np.isnan(observed), N, N + M)[np.tile(np.arange(M), D), task]
    own = own + np.tile(np.arange(M), D)
    cross = covariance(known, there, task, z, other)
    prior = covariance(known, there, task, there, task)
    if noisy:
        cross = cross + noise_between(known, task, own, other, row)
        prior = prior + noise_between(known, task, own, task, own)
    solved = np.linalg.solve(gram(known), np.column_stack([cross.T, y]))
    return cross @ solved[:, -1], prior - cross @ solved[:, :-1]


@pytest.mark.parametrize("noisy", [True, False], ids=["readings", "signals"])
@pytest.mark.parametrize("known_there", [False, True], ids=["nothing known", "some known"])
@pytest.mark.parametrize("correlated", [False, True], ids=["own noise", "joined noise"])
def test_sites_and_outputs_of_a_draw_belong_together(rng, correlated, known_there, noisy):
    """9 means and 45 covariances, by plain inversion: a false alarm in 30,000 runs."""
    made = world(rng, correlated=correlated, missing=0.2)
    x, observed = rng.uniform(0.3, 0.6, size=(3, 2)), np.full((3, 3), np.nan)
    if known_there:
        observed[0, 1], observed[2, :2] = 0.7, [-0.5, 0.9]
    model = known_model(made)
    drawn = stacked(
        model.sample_y(x, 20_000, random_state=5, observed=observed, include_noise=noisy)
    )
    mean, cov = joint_readings(made, x, observed, noisy=noisy)
    assert agrees(drawn, mean, cov)
    assert not agrees(drawn, mean, np.diag(np.diag(cov)))


def test_a_draw_at_a_training_site_knows_what_was_read_of_that_sample(rng):
    """Noise is joined: 9 means and 45 covariances, a false alarm in 30,000 runs."""
    made = world(rng, correlated=True, missing=0.3)
    made.Y[:3] = [[np.nan, 0.5, 1.0], [0.3, np.nan, np.nan], [0.1, 0.2, np.nan]]
    drawn = stacked(known_model(made).sample_y(made.X[:3], 20_000, random_state=5))
    without = made.table(np.where(np.arange(12)[:, None] < 3, np.nan, made.Y))
    assert agrees(drawn, *joint_readings(without, made.X[:3], made.Y[:3], noisy=True))


def test_an_ensemble_draws_from_each_member(ensembles):
    """The joint mixture over 12 values: 12 means and 78 covariances, once in 19,000 runs."""
    model = ensembles["all"].set_params(combine="mean")
    parts = [
        condition_jointly(model._seen, X_NEW, model.kernels_, W, model._noise)
        for W in model.weights_
    ]
    means = np.array([mean.ravel() for mean, _ in parts])
    mean = means.mean(axis=0)
    cov = np.mean([cov.reshape(12, 12) for _, cov in parts], axis=0)
    cov = cov + (means - mean).T @ (means - mean) / 3
    drawn = stacked(model.sample_y(X_NEW, 20_000, random_state=2, include_noise=False))
    scale = np.repeat(model._scale.scale, 4)
    assert agrees((drawn - np.repeat(model._scale.shift, 4)) / scale, mean, cov)


def surest(means, covs, prior):
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


OTHERS = {name: name for name in RULES if name != "mean"} | {"surest": surest}


@pytest.mark.parametrize("conditioning", ["all", "batch"])
@pytest.mark.parametrize("rule", [*OTHERS.values(), mixture], ids=[*OTHERS, "the mixture itself"])
def test_whatever_the_rule_each_site_is_drawn_as_predicted(ensembles, rule, conditioning):
    """12 means and 24 covariances, each within 5 standard errors: once in 48,000 runs."""
    model = ensembles[conditioning].set_params(combine=rule)
    mean, cov = model.predict(X_NEW, return_cov=True, statistic="mean")
    drawn = model.sample_y(X_NEW, 5000, random_state=3)
    for site in range(4):
        assert agrees(drawn[site].T, mean[site], cov[site])


@pytest.mark.parametrize("rule", ["mean", *OTHERS.values()], ids=["mean", *OTHERS])
def test_whatever_the_rule_neighbouring_sites_are_drawn_alike(ensembles, rule):
    """Signals on a walk in steps of a fiftieth of the length-scale: hardly any step shows."""
    model = ensembles["all"].set_params(combine=rule)
    walk = np.column_stack([np.linspace(0, 1, 121), np.full(121, 0.4)])
    drawn = model.sample_y(walk, 300, random_state=3, include_noise=False)
    drawn = drawn - drawn.mean(axis=-1, keepdims=True)
    steps = np.diff(drawn, axis=0).std(axis=-1) / drawn.std(axis=-1)[1:]
    assert steps.max() < 0.3


def twice_as_doubtful(means, covs, prior):
    return means.mean(axis=0), (2.0 if len(means) > 1 else 1.0) * covs.mean(axis=0)


@pytest.mark.parametrize("seed", [1, 2])
def test_where_members_agree_a_rule_changes_no_correlation(seed):
    """Three members of the same weights, and twice their covariance: 12 means and 78
    covariances within 5 standard errors, a false alarm in 19,000 runs."""
    model = paper(**QUICK, combine=twice_as_doubtful, batch_size=9, rank=3).fit(X, Y)
    W = np.random.default_rng(seed).normal(size=(3, 3, 3))
    model.weights_ = np.stack([W, W, W])
    mean, cov = condition_jointly(model._seen, X_NEW, model.kernels_, W, model._noise)
    drawn = stacked(model.sample_y(X_NEW, 20_000, random_state=2, include_noise=False))
    scale, shift = (np.repeat(part, 4) for part in (model._scale.scale, model._scale.shift))
    assert agrees((drawn - shift) / scale, mean.ravel(), 2 * cov.reshape(12, 12))


def test_of_neighbours_a_single_site_is_drawn_as_predicted():
    """3 means and 6 covariances: a false alarm in 190,000 runs."""
    model = paper(**QUICK, conditioning=4, batch_size=None).fit(X, Y)
    mean, cov = model.predict(X_NEW[:1], return_cov=True)
    assert agrees(model.sample_y(X_NEW[:1], 10_000)[0].T, mean[0], cov[0])
