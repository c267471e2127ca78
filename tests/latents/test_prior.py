"""The weak prior on the noise: its slope, its units, what it does to few readings and to many."""

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose
from simulated import a_correlation, start_of, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.latents import fit_latents, noise_prior, variances
from emgpr.latents.prior import STRENGTH, WeakPrior
from emgpr.observations import Observations
from emgpr.weights import fit_weights, refine


def learned(X, y, **settings):
    """Step 1 of one output."""
    rng = np.random.default_rng(0)
    table = Observations.from_table(X, y[:, None])
    return fit_latents(table, [RBF()], n_restarts=5, max_iter=100, rng=rng, **settings)[0]


def drawn(rng, N, noise):
    X = rng.uniform(size=(N, 2))
    y = np.linalg.cholesky(RBF(0.3)(X) + noise * np.eye(N)) @ rng.normal(size=N)
    return X, (y - y.mean()) / y.std()


def test_its_slope_is_its_slope(rng):
    prior = WeakPrior(rng.uniform(0.5, 2.0, 3))
    noise = 0.2 * a_correlation(rng, 3)
    assert_is_the_gradient(prior(noise)[1], lambda S: float(prior(S)[0]), noise)


def test_it_is_highest_where_all_is_noise(rng):
    variances = rng.uniform(0.5, 2.0, 3)
    value, slope = WeakPrior(variances)(0.999 * np.diag(variances))
    assert_allclose(slope, 0.0, atol=0.01 * STRENGTH)
    for _ in range(20):
        other = a_correlation(rng, 3) * rng.uniform(0.01, 2.0)
        assert WeakPrior(variances)(other)[0] < value


def test_a_noise_all_but_wholly_correlated_is_thought_unlikely():
    prior = WeakPrior(np.ones(2))
    apart, joined = (prior(0.1 * np.array([[1.0, r], [r, 1.0]]))[0] for r in (0.0, 0.999))
    assert joined < apart - STRENGTH


def test_it_knows_no_units(rng):
    """The same share of noise is as likely in grams as in kilograms."""
    X, Y = rng.uniform(size=(9, 2)), rng.normal(size=(9, 2))
    noise = 0.1 * a_correlation(rng, 2)
    units = np.array([3.0, 0.01])
    ours = noise_prior(variances(Observations.from_table(X, Y)), True)(noise)[0]
    theirs = noise_prior(variances(Observations.from_table(X, Y * units)), True)(
        noise * np.outer(units, units)
    )[0]
    assert_allclose(ours, theirs)


def test_without_it_every_noise_is_as_likely(rng):
    value, slope = noise_prior(variances(Observations.from_table(*_table(rng))), False)(np.eye(2))
    assert value == 0
    assert not slope.any()


def _table(rng):
    return rng.uniform(size=(4, 2)), rng.normal(size=(4, 2))


def test_few_readings_are_not_believed_to_the_letter():
    """Of outputs of 8 readings of pure noise, some look free of it without the prior."""
    rng = np.random.default_rng(5)
    noises = {False: [], True: []}
    for _ in range(15):
        X, y = rng.uniform(size=(8, 2)), rng.normal(size=8)
        for weak, found in noises.items():
            found.append(learned(X, (y - y.mean()) / y.std(), weak_prior=weak).noise)
    assert np.mean(np.array(noises[False]) < 0.01) > 0
    assert np.mean(np.array(noises[True]) < 0.01) == 0


def test_many_readings_are(rng):
    """300 readings move by less than the prior is worth: some 2·3 of them."""
    X, y = drawn(rng, 300, 0.1)
    with_it, without = (learned(X, y, weak_prior=weak) for weak in (True, False))
    assert_allclose(with_it.noise, without.noise, rtol=0.06)
    assert without.noise < with_it.noise
    assert_allclose(with_it.log_likelihood, without.log_likelihood, atol=1.0)
    assert with_it.log_likelihood <= without.log_likelihood + 1e-6  # of the readings alone


def test_what_is_free_of_noise_may_be(rng):
    X = rng.uniform(size=(60, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    assert learned(X, (y - y.mean()) / y.std(), weak_prior=True).noise < 1e-5


@pytest.mark.parametrize("way", [{"sweeps": 1}, {"sweeps": "joint"}])
@pytest.mark.parametrize("correlated", [False, True])
def test_the_ascent_climbs_likelihood_and_prior(rng, way, correlated):
    made = world(rng, N=15, k=1)
    start = start_of(made, W=0.5 * made.W)
    parts = [np.arange(15)]
    fitted = fit_weights(made.seen, parts, start, max_iter=20)
    refined = refine(
        made.seen, parts, start, fitted, **way, correlated=correlated, weak_prior=True, max_iter=8
    )
    heights = np.array([stage.log_likelihood for stage in refined.history])
    assert np.diff(heights).min() > -1e-4
    believed = noise_prior(variances(made.seen), True)(refined.mixture.noise)[0]
    assert_allclose(heights[-1], refined.members.log_likelihood.sum() + believed, atol=1e-4)
