"""Stochastic variational inference ends close to the maximum of the bound, or reports it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr import IndependentGP
from emgpr.latents import SVI, VFE, Exact, learner_by_name
from emgpr.latents.stochastic_variational import LEARNING_RATE, Adam, random_batches

M = 40


@pytest.fixture
def data(rng):
    """Readings of a process with length-scale 0.2 and noise variance 0.1."""
    x = rng.uniform(size=(300, 2))
    y = np.linalg.cholesky(RBF(0.2)(x) + 0.1 * np.eye(300)) @ rng.normal(size=300)
    return x, (y - y.mean()) / y.std()


def params(latent):
    return np.append(latent.kernel.theta, np.log(latent.noise))


def log_likelihood(latent, x, y):
    cov = latent.kernel(x) + latent.noise * np.eye(len(x))
    return multivariate_normal(np.zeros(len(x)), cov).logpdf(y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "batch_size"),
    [(RBF(), 60), (RBF(), 300), (ConstantKernel() * Matern(nu=1.5), 60)],
    ids=str,
)
def test_the_result_is_close_to_the_maximum_of_the_bound(data, kernel, batch_size):
    """The bound of VFE with the same points, which only a search with all readings maximises."""
    best, found = VFE(M).learn(*data, kernel), SVI(M, batch_size).learn(*data, kernel)
    assert found.message == best.message == ""
    assert best.log_likelihood - 1.0 < found.log_likelihood < best.log_likelihood + 0.01
    assert abs(np.log(found.noise / best.noise)) < 0.1
    assert found.log_likelihood < log_likelihood(found, *data)
    assert found.n_readings == 300


def test_with_a_point_at_every_site_the_result_is_that_of_the_exact_likelihood(data):
    x, y = data[0][:80], data[1][:80]
    exact, found = Exact().learn(x, y, RBF()), SVI(80).learn(x, y, RBF())
    assert_allclose(params(found), params(exact), atol=0.02)
    assert_allclose(found.log_likelihood, exact.log_likelihood, atol=0.01)


@pytest.mark.slow
def test_the_result_depends_on_the_random_state_alone(data):
    one, again, other = (SVI(M, 60, random_state=s).learn(*data, RBF()) for s in (3, 3, 4))
    assert one == again
    assert np.any(params(one) != params(other))
    assert_allclose(params(one), params(other), atol=0.1)


def test_a_search_that_has_not_converged_says_so(data):
    latent = SVI(M, 60, n_epochs=2).learn(*data, RBF())
    assert latent.n_iter == 10
    assert latent.message == "it did not converge within n_epochs=2; increase n_epochs"
    model = IndependentGP(RBF(), latent_learner=SVI(M, 60, n_epochs=2), output_transform=None)
    with pytest.warns(ConvergenceWarning, match="within n_epochs=2"):
        model.fit(*data)


@pytest.mark.slow
def test_fixed_and_bounded_parameters_stay_within_their_bounds(data):
    kernel = RBF(0.25, "fixed") + WhiteKernel(0.2, "fixed")
    latent = SVI(M, 60).learn(*data, kernel)
    assert latent.kernel == RBF(0.25, "fixed")
    assert latent.noise == pytest.approx(0.2)
    bounded = SVI(M, 60).learn(*data, RBF(0.01, (0.005, 0.02)))
    assert bounded.kernel.length_scale == pytest.approx(0.02)
    assert "length_scale ended at its upper bound" in bounded.message


@pytest.mark.slow
def test_white_noise_is_reported(rng):
    x, y = rng.uniform(size=(200, 2)), rng.normal(size=200)
    latent = SVI(M, 60).learn(x, (y - y.mean()) / y.std(), RBF())
    assert latent.message
    assert latent.noise > 0.5 or latent.kernel.length_scale < 0.02


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_readings_are_enough(rng, n):
    latent = SVI().learn(rng.uniform(size=(n, 2)), rng.normal(size=n), RBF())
    assert np.isfinite(latent.log_likelihood)
    assert latent.noise > 0


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (SVI(0), "SVI: n_inducing=0; expected a whole number of at least 1"),
        (SVI(batch_size=True), "SVI: batch_size=True"),
        (SVI(n_epochs=0), "SVI: n_epochs=0"),
        (SVI(random_state=-1), "SVI: random_state=-1; expected a whole number of at least 0"),
    ],
)
def test_settings_are_validated(data, learner, message):
    with pytest.raises(ValueError, match=message):
        learner.learn(*data, RBF())


def test_the_name_stands_for_the_default_settings():
    assert learner_by_name("svi") == SVI()


def test_the_approximation_is_described():
    assert SVI(300, 1000).describe_approximation(300) == ""
    assert "from 300 inducing points on the likelihood of 900 readings" in (
        SVI().describe_approximation(900)
    )
    assert SVI(3000, 100).describe_approximation(900).endswith("readings, in batches of 100")


def test_every_reading_is_in_one_batch_of_an_epoch():
    batches = random_batches(10, 4, np.random.default_rng(0))
    drawn = np.concatenate([next(batches) for _ in range(5)])
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))
    assert next(random_batches(3, 5, np.random.default_rng(0))).tolist() == [0, 1, 2]


def test_steps_of_adam_have_the_size_of_the_learning_rate_and_become_shorter():
    adam, sizes = Adam(np.zeros(2), np.zeros(2)), []
    for _ in range(51):
        step, adam = adam.step(np.array([1e-3, -1e5]))
        sizes.append(np.abs(step))
        assert step[0] > 0 > step[1]
    assert_allclose(sizes[0], LEARNING_RATE / 1.02, rtol=1e-6)
    assert_allclose(sizes[-1], LEARNING_RATE / 2.02, rtol=1e-6)
