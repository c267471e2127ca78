"""The objective of step 1: the prior in it, and its effect on few and many readings."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.latents import fit_latents
from emgpr.latents.objective import negative_log_likelihood, with_noise_prior
from emgpr.noise import WeakPrior, output_variances
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient


def fit(X, y, **settings):
    """Step 1 of one output."""
    rng = np.random.default_rng(0)
    table = Observations.from_table(X, y[:, None])
    return fit_latents(table, [RBF()], n_restarts=5, max_iter=100, rng=rng, **settings)[0]


def standardise(y):
    return (y - y.mean()) / y.std()


def test_the_prior_of_each_problems_output_is_added_to_its_objective(rng):
    X, Y = rng.uniform(size=(12, 2)), rng.normal(size=(12, 2)) * [1.0, 3.0]
    table, outputs = Observations.from_table(X, Y), np.array([1, 0, 1])
    variances, which = output_variances(table)[outputs], np.array([2, 1])
    plain = negative_log_likelihood(table, RBF(), outputs)
    posterior = with_noise_prior(plain, variances, True)
    params = np.array([[0.1, -1.0], [-0.5, -2.0]])
    difference = posterior(params, which)[0] - plain(params, which)[0]
    expected = [-WeakPrior(variances[[i]])(np.exp([[p]]))[0] for i, p in ((2, -1.0), (1, -2.0))]
    assert_allclose(difference, expected)
    for row in (0, 1):
        one = which[[row]]
        gradient = posterior(params[[row]], one)[1][0]
        assert_is_the_gradient(gradient, lambda p: posterior(p[None], one)[0][0], params[row])  # noqa: B023
    assert with_noise_prior(plain, variances, False) is plain


def test_few_readings_of_noise_do_not_look_free_of_noise():
    """Of outputs with 8 readings of pure noise, some look free of it without the prior."""
    rng = np.random.default_rng(5)
    noises = {False: [], True: []}
    for _ in range(8):
        X, y = rng.uniform(size=(8, 2)), rng.normal(size=8)
        for weak, found in noises.items():
            found.append(fit(X, standardise(y), weak_prior=weak).noise)
    assert np.mean(np.array(noises[False]) < 0.01) > 0
    assert np.mean(np.array(noises[True]) < 0.01) == 0


def test_many_readings_outweigh_the_prior(draw):
    """300 readings change by less than the prior is worth: some 2·3 of them."""
    X, Y = draw(RBF(0.3), 0.1, N=300)
    with_prior, without = (fit(X, Y[:, 0], weak_prior=weak) for weak in (True, False))
    assert_allclose(with_prior.noise, without.noise, rtol=0.06)
    assert without.noise < with_prior.noise
    assert_allclose(with_prior.log_likelihood, without.log_likelihood, atol=1.0)
    assert with_prior.log_likelihood <= without.log_likelihood + 1e-6  # of the readings alone


def test_an_output_free_of_noise_stays_so(rng):
    X = rng.uniform(size=(60, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    assert fit(X, standardise(y), weak_prior=True).noise < 1e-5
