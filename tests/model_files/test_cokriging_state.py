"""Variogram models in a model file: stored, read, and refused if they are invalid."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import CoKriging
from emgpr.kernels import Spherical
from emgpr.model_files.cokriging_state import check_cokriging_state
from emgpr.persistence import ModelFileError
from tests.model_files.corruption import assert_harmless
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The nuggets of all outputs are zero"),
]


@pytest.fixture(scope="module")
def model():
    X, Y = smooth_table(np.random.default_rng(0), N=40)
    Y[::4, 0] = np.nan
    return CoKriging([Spherical(0.3, "fixed"), "exponential"]).fit(X, Y)


@pytest.fixture
def state(model):
    return model._state()


def test_a_stored_model_is_the_same_model(model, tmp_path):
    model.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    X, _ = model.training_data()
    new = X.to_numpy()[:9] + 0.01
    assert isinstance(again, CoKriging)
    assert_array_equal(again.predict(new, return_std=True), model.predict(new, return_std=True))
    assert again.sills_.equals(model.sills_)
    assert again.structures_.equals(model.structures_)
    assert again.transfer_report().table.equals(model.transfer_report().table)
    assert (again.converged_, again.misfit_) == (model.converged_, model.misfit_)
    assert again.conditioning_ == model.conditioning_


@pytest.mark.filterwarnings("ignore:Intervals are far too narrow")
def test_parameters_that_were_changed_after_the_fit_do_not_matter(model, tmp_path):
    changed = emgpr.CoKriging(**model.get_params(deep=False)).set_params(kernel=RBF(0.5, "fixed"))
    X, Y = model.training_data()
    changed.fit(X.to_numpy(), Y)
    before = changed.predict(X.to_numpy() + 0.01)
    changed.set_params(mean_variance=0.0, kernel="spherical", conditioning=3)
    changed.save(tmp_path / "model.emgpr")
    assert_array_equal(emgpr.load(tmp_path / "model.emgpr").predict(X.to_numpy() + 0.01), before)


def test_loading_does_not_warn(model, tmp_path):
    model.save(tmp_path / "model.emgpr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emgpr.load(tmp_path / "model.emgpr")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.zeros((0, 3, 3)), "kernels": []}, "no structure"),
        ({"weights": np.zeros((2, 3, 2))}, "shape"),
        ({"weights": np.full((2, 3, 3), np.nan)}, "NaN"),
        ({"kernels": [RBF()]}, "number of kernels"),
        ({"kernels": [RBF(), 3]}, "is not a kernel"),
        ({"nugget": -np.eye(3)}, "a noise variance is negative"),
        ({"nugget": np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])}, "not a covariance matrix"),
        ({"nugget": np.eye(3) + np.eye(3, k=1)}, "not symmetric"),
        ({"mean_variances": np.full(3, -1.0)}, "'mean_variances' are negative"),
        ({"mean_variances": np.ones(2)}, "shape"),
        ({"conditioning": "batch"}, "'conditioning' is 'batch'"),
        ({"conditioning": 0}, "'conditioning' is 0"),
        ({"conditioning": None}, "'conditioning' is None"),
        ({"misfit": "small"}, "'misfit' is"),
        ({"n_iter": 1.5}, "'n_iter' is"),
        ({"converged": 1}, "'converged' is"),
        ({"more": 1}, "missing or unknown"),
    ],
)
def test_an_invalid_state_is_refused(state, change, message):
    with pytest.raises(ModelFileError, match=message):
        check_cokriging_state(state | change)


@pytest.mark.slow
def test_no_damaged_or_forged_file_does_harm(model, tmp_path):
    assert_harmless(model, tmp_path, 60, 300)
