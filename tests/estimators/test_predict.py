"""What predict returns, and what it is conditioned on."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import known_model, paper, smooth_table, world
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.ensemble import mixture
from emgpr.estimators import believer
from emgpr.prediction import condition

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {"max_iter": 5, "n_restarts": 2, "batch_size": 9}
RNG = np.random.default_rng(11)
X, Y = smooth_table(RNG, N=27)
X_NEW = RNG.uniform(size=(6, 2))


@pytest.fixture(scope="module")
def ensemble():
    return paper(**QUICK, random_state=0).fit(X, Y)


def test_the_diagonal_of_the_covariance_is_the_variance(ensemble):
    mean, cov = ensemble.predict(X_NEW, return_cov=True)
    same, std = ensemble.predict(X_NEW, return_std=True)
    assert cov.shape == (6, 3, 3)
    assert_array_equal(mean, same)
    assert_array_equal(mean, ensemble.predict(X_NEW))
    assert_allclose(np.einsum("mdd->md", cov), std**2)
    assert np.all(np.linalg.eigvalsh(cov) > 0)


def test_asking_for_both_kinds_of_uncertainty_is_refused(ensemble):
    with pytest.raises(ValueError, match="return_std and return_cov are both True"):
        ensemble.predict(X_NEW, return_std=True, return_cov=True)


def test_an_ensemble_is_the_mixture_of_its_members_in_the_users_units(ensemble):
    L = len(ensemble.weights_)
    assert L == 3
    centred = (Y - Y.mean(0)) / Y.std(0)
    seen = ensemble._seen
    assert_allclose(seen.y, centred.T, atol=1e-7)  # the mean is kept to eight digits
    noise = np.diag(ensemble.noise_)
    belief = condition(seen, X_NEW, ensemble.kernels_, ensemble.weights_, noise)
    mean, cov = mixture(belief.mean, belief.cov)
    cov = cov + noise
    ours = ensemble.predict(X_NEW, return_cov=True, statistic="mean")
    assert_allclose(ours[0], mean * Y.std(0) + Y.mean(0))
    assert_allclose(ours[1], cov * np.outer(Y.std(0), Y.std(0)))


def test_predictions_do_not_depend_on_what_else_is_asked(ensemble):
    assert_allclose(ensemble.predict(X_NEW)[2:3], ensemble.predict(X_NEW[2:3]), rtol=1e-10)


def test_before_fit_there_is_no_prediction():
    with pytest.raises(NotFittedError):
        EMGPR().predict(X_NEW)


def test_one_seed_gives_the_same_bits_and_another_other_batches(ensemble):
    again = paper(**QUICK, random_state=0).fit(X, Y)
    other = paper(**QUICK, random_state=1).fit(X, Y)
    assert_array_equal(again.predict(X_NEW), ensemble.predict(X_NEW))
    assert_array_equal(again.weights_, ensemble.weights_)
    assert not np.array_equal(np.concatenate(other.batches_), np.concatenate(ensemble.batches_))


def test_fitting_twice_is_fitting_once(ensemble):
    model = paper(**QUICK, random_state=0)
    model.fit(X[::-1], Y[::-1, :2])
    assert_array_equal(model.fit(X, Y).predict(X_NEW), ensemble.predict(X_NEW))


def test_workers_change_nothing(ensemble):
    model = paper(**QUICK, random_state=0, n_jobs=2).fit(X, Y)
    assert_allclose(model.weights_, ensemble.weights_, atol=1e-8)
    assert_allclose(model.predict(X_NEW), ensemble.predict(X_NEW), rtol=1e-8)


def test_a_pickled_model_predicts_the_same(ensemble):
    back = pickle.loads(pickle.dumps(ensemble))
    assert_array_equal(back.predict(X_NEW), ensemble.predict(X_NEW))
    assert back.get_params()["transform"] is None


def test_through_the_log_the_median_and_spread_are_the_lognormals():
    """400,000 draws of the belief about the logs: within 4 standard errors."""
    small = Y / Y.std(axis=0) * 0.5
    settings = {"kernel": RBF(0.3, "fixed"), "random_state": 0}
    of_logs = IndependentGP(**settings).fit(X, small)
    model = IndependentGP(**settings, transform="log").fit(X, np.exp(small))
    mean, cov = of_logs.predict(X_NEW, return_cov=True)
    median, std = model.predict(X_NEW, return_std=True)
    assert_allclose(median, np.exp(mean))
    n = 400_000
    for site in range(2):
        draws = np.exp(RNG.multivariate_normal(mean[site], cov[site], size=n))
        squares = (draws - draws.mean(0)) ** 2
        error = squares.std(0) / np.sqrt(n)
        assert np.all(np.abs(squares.mean(0) - std[site] ** 2) < 4 * error)
    assert_allclose(np.einsum("mdd->md", model.predict(X_NEW, return_cov=True)[1]), std**2)


def test_under_a_log_observed_outputs_are_on_the_users_scale():
    small = Y / Y.std(axis=0) * 0.5
    settings = {"kernel": RBF(0.3, "fixed"), "random_state": 0}
    of_logs = IndependentGP(**settings).fit(X, small)
    model = IndependentGP(**settings, transform="log").fit(X, np.exp(small))
    observed = RNG.normal(size=(6, 3)) * 0.5
    assert_allclose(
        model.predict(X_NEW, observed=np.exp(observed)),
        np.exp(of_logs.predict(X_NEW, observed=observed)),
    )


def test_while_it_is_cheap_all_readings_are_conditioned_on(ensemble):
    assert ensemble.conditioning_ == "all"


def test_when_it_is_dear_neighbours_are_and_the_user_is_told(monkeypatch):
    """Forty sites, a budget for fewer; and so few neighbours that they are not all sites."""
    made = world(np.random.default_rng(2), N=40, D=2, Q=2, k=1)
    monkeypatch.setattr(believer, "NEIGHBOURS", 5)
    apart = 2 * 40**3 / 3  # outputs that hear no latent in common are conditioned apart
    monkeypatch.setattr(believer, "AFFORDABLE", apart - 1)
    with pytest.warns(UserWarning, match="1 members × 80 readings.*5 nearest.*conditioning=5"):
        model = known_model(made)
    assert model.conditioning_ == 5
    monkeypatch.setattr(believer, "AFFORDABLE", apart + 1)
    assert known_model(made).conditioning_ == "all"
    near, everything = (known_model(made, conditioning=c).predict(X_NEW) for c in (5, "all"))
    assert_allclose(model.predict(X_NEW), near)
    assert not np.allclose(near, everything, atol=1e-3)


def test_readings_known_at_the_new_places_are_counted_too(monkeypatch):
    made = world(np.random.default_rng(2), N=40, D=2, Q=2, k=1)
    monkeypatch.setattr(believer, "AFFORDABLE", 2 * 40**3 / 3 + 1)
    model = known_model(made)
    model.predict(X_NEW)
    observed = np.zeros((len(X_NEW), 2))
    with pytest.warns(UserWarning, match=f"{80 + observed.size} readings are too many"):
        model.predict(X_NEW, observed=observed)


def test_what_the_user_chose_is_not_questioned(monkeypatch):
    monkeypatch.setattr(believer, "AFFORDABLE", 1.0)
    made = world(np.random.default_rng(2), k=1)
    for choice in ("all", "batch", 4):
        assert known_model(made, conditioning=choice).conditioning_ == choice


def test_a_model_of_one_output_takes_what_was_observed_as_a_vector():
    model = IndependentGP(RBF(0.3, "fixed"), random_state=0).fit(X, Y[:, 0])
    vector = np.array([1.0, np.nan, 2.0, np.nan, np.nan, 3.0])
    informed = model.predict(X_NEW, observed=vector)
    assert informed.shape == (6,)
    assert_allclose(informed, model.predict(X_NEW, observed=vector[:, None]))
    assert not np.allclose(informed, model.predict(X_NEW))
