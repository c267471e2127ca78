"""A fit that is stopped or fails leaves the model that was there before, or none."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sameness import assert_same
from simulated import smooth_table
from sklearn.exceptions import NotFittedError

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.arrays import NumericalError
from emgpr.estimators import base, entering, learning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y = smooth_table(np.random.default_rng(3), N=20)
OTHER = pd.DataFrame(X[:15, :1], columns=["east"]), pd.DataFrame(100 + Y[:15, :2] ** 2)
QUICK = {"max_iter": 4, "n_restarts": 1, "random_state": 0, "transform": None}
FAMILY = [EMGPR, ICM, LMC, SLFM, IndependentGP]
STAGES = {"steps_of": entering, "settle": base, "split_sites": learning, "fit_latents": learning}


def refit(model, monkeypatch, stage, error):
    """A fit to another table that ends in an error at this stage."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(STAGES[stage], stage, fail)
    with pytest.raises(type(error)):
        model.fit(*OTHER)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), NumericalError("singular")])
@pytest.mark.parametrize("Estimator", FAMILY)
def test_the_old_model_stays(Estimator, error, monkeypatch):
    model = Estimator(**QUICK).fit(X, Y)
    before, predicted = dict(vars(model)), model.predict(X)
    refit(model, monkeypatch, "fit_latents", error)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("stage", STAGES)
def test_at_every_stage(stage, monkeypatch):
    model = EMGPR(**QUICK).fit(X, Y)
    before = dict(vars(model))
    refit(model, monkeypatch, stage, KeyboardInterrupt())
    assert_same(vars(model), before)


@pytest.mark.parametrize("Estimator", FAMILY)
def test_a_first_fit_that_fails_leaves_none(Estimator, monkeypatch, tmp_path):
    model = Estimator(**QUICK)
    settings = model.get_params()
    refit(model, monkeypatch, "fit_latents", KeyboardInterrupt())
    assert model.get_params() == settings
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")


def test_what_the_door_refuses_changes_nothing():
    model = IndependentGP(**QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X[:, :1], np.inf * Y)
    assert model.n_features_in_ == 2
    assert model.predict(X[:1]).shape == (1, 3)
