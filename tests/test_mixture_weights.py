"""Weights by the logarithmic score, compared with a general optimiser, and moments of mixtures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from emgpr import mixture_weights
from emgpr.mixture_weights import (
    gaussian_log_density,
    mixture_moments,
    stacking_weights,
)


def log_densities(rng, n=40, C=4):
    """Log densities of readings under candidates with different means and widths."""
    y = rng.normal(size=n)
    mean = y + rng.normal(size=(C, n)) * np.linspace(0.3, 1.5, C)[:, None]
    return gaussian_log_density(y, mean, np.full((C, n), 0.4)).T


def objective(weights, log_density, prior, n_readings):
    """Log score of the effective number of readings, and the log density of a Dirichlet prior."""
    score = logsumexp(log_density + np.log(weights), axis=1).mean()
    n = min(n_readings, len(log_density))
    return n * score + prior @ np.log(weights)


@pytest.mark.parametrize("n_readings", [5.0, 30.0, 1000.0])
@pytest.mark.parametrize(
    "prior", [[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [3.0, 1.0, 2.0, 0.5]]
)
def test_weights_maximise_the_penalised_log_score(n_readings, prior, rng, monkeypatch):
    monkeypatch.setattr(mixture_weights, "TOLERANCE", 1e-12)
    monkeypatch.setattr(mixture_weights, "MAX_ITERATIONS", 100_000)
    prior, log_density = np.array(prior), log_densities(rng)
    found = stacking_weights(log_density, prior, n_readings)
    best = minimize(
        lambda u: -objective(softmax(u), log_density, prior, n_readings), np.zeros(4), tol=1e-12
    )
    assert_allclose(found, softmax(best.x), atol=1e-5)
    assert_allclose(found.sum(), 1.0)


def test_the_iterations_suffice_for_the_usual_accuracy(rng):
    """The objective is within a hundredth of a reading's log density of its maximum."""
    prior, log_density = np.full(4, 0.25), log_densities(rng)
    found = stacking_weights(log_density, prior, 1000.0)
    best = minimize(lambda u: -objective(softmax(u), log_density, prior, 1000.0), np.zeros(4))
    assert objective(found, log_density, prior, 1000.0) > -best.fun - 0.01


def test_each_weight_is_positive_and_better_candidates_have_larger_weights(rng):
    weights = stacking_weights(log_densities(rng, n=400), np.full(4, 0.25), 400.0)
    assert (weights > 0).all()
    assert weights.argmax() == 0
    assert weights[0] > weights[1] > weights[3]


def test_without_readings_the_weights_are_those_of_the_prior():
    prior = np.array([1.0, 3.0])
    assert_allclose(stacking_weights(np.empty((0, 2)), prior, 10.0), [0.25, 0.75])


def test_constants_of_readings_do_not_matter(rng):
    """Even where all densities underflow."""
    log_density = log_densities(rng)
    shift = rng.normal(size=(40, 1)) * 500 - 2000
    one, two = (
        stacking_weights(a, np.full(4, 0.25), 20.0) for a in (log_density, log_density + shift)
    )
    assert_allclose(two, one, rtol=1e-6)


def test_more_effective_readings_leave_less_to_the_prior(rng):
    log_density, prior = log_densities(rng, n=100), np.full(4, 0.25)
    weights = [stacking_weights(log_density, prior, n).max() for n in (1.0, 10.0, 100.0)]
    assert weights[0] < weights[1] < weights[2]
    assert_array_equal(
        stacking_weights(log_density, prior, 100.0), stacking_weights(log_density, prior, 1e6)
    )


def test_the_order_of_candidates_and_readings_does_not_matter(rng):
    log_density, rows, columns = log_densities(rng), rng.permutation(40), [2, 0, 3, 1]
    plain = stacking_weights(log_density, np.full(4, 0.25), 20.0)
    moved = stacking_weights(log_density[rows][:, columns], np.full(4, 0.25), 20.0)
    assert_allclose(moved, plain[columns], rtol=1e-9)


def test_moments_are_those_of_draws(rng):
    """5 means and 5 variances within 5 standard errors: a false alarm in 170,000 runs."""
    weights = rng.dirichlet(np.ones(3), size=5).T
    mean, variance = rng.normal(size=(3, 5)), rng.uniform(0.2, 2.0, size=(3, 5))
    expected, spread = mixture_moments(weights, mean, variance)
    n = 20_000
    for i in range(5):
        chosen = rng.choice(3, size=n, p=weights[:, i])
        drawn = rng.normal(mean[chosen, i], np.sqrt(variance[chosen, i]))
        assert abs(drawn.mean() - expected[i]) < 5 * np.sqrt(spread[i] / n)
        squares = (drawn - expected[i]) ** 2
        assert abs(squares.mean() - spread[i]) < 5 * squares.std() / np.sqrt(n)


def test_weights_for_all_locations_are_those_for_each(rng):
    weights, (mean, variance) = np.array([0.3, 0.7]), rng.uniform(1, 2, size=(2, 2, 4))
    each = np.tile(weights[:, None], 4)
    assert_allclose(mixture_moments(weights, mean, variance), mixture_moments(each, mean, variance))


def test_densities_are_those_of_scipy(rng):
    y, (mean, variance) = rng.normal(size=6), rng.uniform(0.5, 2.0, size=(2, 3, 6))
    expected = norm(mean, np.sqrt(variance)).logpdf(y)
    assert_allclose(gaussian_log_density(y, mean, variance), expected, rtol=1e-12)
