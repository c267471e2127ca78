"""Settings of learners are scikit-learn parameters, validated when they are used, and stored."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.checkpoint import digest
from emgpr.latents import DTC, FITC, PITC, VFE, Borrowed, Exact, PoE, Variogram
from tests.simulated import smooth_table

FIXED = RBF(0.3, "fixed")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_settings_are_parameters():
    assert PITC(50).get_params() == {"n_inducing": 50, "block_size": 100}
    assert Exact().get_params() == {}
    assert PoE().set_params(n_batches=3) == PoE(n_batches=3)
    with pytest.raises(ValueError, match="Invalid parameter 'n_points'"):
        VFE().set_params(n_points=3)


def test_equality_and_repr_are_those_of_the_settings():
    assert VFE(50) == VFE(n_inducing=50) != VFE(51)
    assert VFE(50) != FITC(50)
    assert repr(PITC(50)) == "PITC(n_inducing=50, block_size=100)"
    assert digest(VFE(50)) == digest(VFE(50)) != digest(VFE(51))


def test_an_estimators_learner_is_set_as_a_nested_parameter():
    learner = VFE()
    model = EMGPR(latent_learner=learner).set_params(latent_learner__n_inducing=50)
    assert model.latent_learner is learner
    assert model.get_params()["latent_learner__n_inducing"] == 50
    copy = clone(model)
    assert copy.latent_learner == VFE(50)
    assert copy.latent_learner is not learner


@pytest.fixture(scope="module")
def table():
    X, Y = smooth_table(np.random.default_rng(20171), N=40)
    Y[:6, 1] = np.nan
    return X, Y


def test_a_grid_search_chooses_the_number_of_inducing_points(table):
    """With two points, nearly everything is noise."""
    X, Y = table
    model = IndependentGP(FIXED, latent_learner=VFE(), random_state=0)
    grid = {"latent_learner__n_inducing": [2, 15]}
    search = GridSearchCV(model, grid, cv=2).fit(X, Y[:, 0])
    assert search.best_params_ == {"latent_learner__n_inducing": 15}
    assert search.best_estimator_.latent_learner_ == VFE(15)
    assert model.latent_learner == VFE()


BAD = [
    (PITC(block_size=0), "PITC: block_size=0; expected a whole number of at least 1"),
    (PoE(-5), "PoE: batch_size=-5"),
    (PoE(n_batches=0), "PoE: n_batches=0"),
    (FITC(True), "FITC: n_inducing=True"),
    (Variogram(n_sites=1), "Variogram: n_sites=1; expected a whole number of at least 2"),
]


@pytest.mark.parametrize(("learner", "message"), BAD)
def test_an_invalid_setting_is_refused_when_it_is_used(table, learner, message):
    X, Y = table
    with pytest.raises(ValueError, match=message):
        learner.learn(X, Y[:, 0], RBF())
    for method in ("fit", "plan", "first_look"):
        with pytest.raises(ValueError, match=message):
            getattr(EMGPR(latent_learner=learner), method)(X, Y)


@pytest.mark.parametrize(
    "learner", ["poe", PoE(20, 2), DTC(7), Borrowed(GaussianProcessRegressor(FIXED))]
)
def test_models_are_stored_with_their_learner(table, learner, tmp_path):
    model = IndependentGP(FIXED, latent_learner=learner, random_state=0).fit(*table)
    model.save(tmp_path / "model")
    again = emgpr.load(tmp_path / "model")
    assert repr(again.latent_learner) == repr(again.latent_learner_) == repr(learner)
    assert np.array_equal(again.predict(table[0]), model.predict(table[0]))
