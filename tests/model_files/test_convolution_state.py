"""Convolved processes in a model file: stored, read, and refused if they are invalid."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import emgpr
from emgpr import CMOGP
from emgpr.model_files.convolution_state import check_convolution_state, convolution_from_state
from emgpr.persistence import ModelFileError
from tests.model_files.corruption import assert_harmless
from tests.simulated import smooth_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module", params=[True, False])
def model(request):
    X, Y = smooth_table(np.random.default_rng(0), N=30)
    Y[::4, 0] = np.nan
    settings = {"n_restarts": 2, "max_iter": 5, "random_state": 0}
    return CMOGP(own_processes=request.param, **settings).fit(X, Y)


@pytest.fixture
def state(model):
    return model._state()


def test_a_stored_model_is_the_same_model(model, tmp_path):
    model.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    X, Y = model.training_data()
    assert isinstance(again, CMOGP)
    new = X.to_numpy()[:9] + 0.1
    assert_array_equal(again.predict(new, return_std=True), model.predict(new, return_std=True))
    for mine, theirs in zip(again.training_data(), (X, Y), strict=True):
        assert_array_equal(mine, theirs)
    assert again.searches_.equals(model.searches_)
    assert again.variance_shares_.equals(model.variance_shares_)
    assert again.transfer_report().table.equals(model.transfer_report().table)
    assert (again.converged_, again.n_iter_) == (model.converged_, model.n_iter_)
    assert again.get_params() == model.get_params()


def test_a_state_is_read_as_it_was_stored(state):
    check_convolution_state(state)
    _, fitted = convolution_from_state(state, "CMOGP")
    for name in ("length_scales", "widths", "weights", "own_length_scales", "own_weights"):
        assert_array_equal(getattr(fitted.posterior.covariance, name), state[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length_scales": np.zeros(1)}, "'length_scales' are not positive"),
        ({"length_scales": np.ones(2)}, "shape"),
        ({"length_scales": np.empty(0), "weights": np.empty((0, 3))}, "no latent process"),
        ({"widths": np.full(3, -1.0)}, "'widths' are negative"),
        ({"widths": np.ones(2)}, "shape"),
        ({"weights": np.full((1, 3), np.nan)}, "NaN"),
        ({"own_length_scales": np.ones(2), "own_weights": np.ones(2)}, "a process of its own"),
        ({"noise": np.full(3, -1.0)}, "a noise variance is negative"),
        ({"alone_noise": np.full(3, -1.0)}, "a noise variance is negative"),
        ({"alone_kernels": []}, "number of alone_kernels"),
        ({"searches": 3}, "'searches' is"),
        ({"searches": [(1.0, 2.0, 3)]}, "an invalid search"),
        ({"searches": [(1.0, 2.0, 3, 4)]}, "'converged' is 4"),
        ({"log_likelihood": "high"}, "'log_likelihood' is"),
        ({"n_iter": True}, "'n_iter' is"),
        ({"y": np.full((3, 30), np.nan)}, "an output has no readings"),
        ({"more": 1}, "missing or unknown"),
    ],
)
def test_an_invalid_state_is_refused(state, change, message):
    with pytest.raises(ModelFileError, match=message):
        check_convolution_state(state | change)


@pytest.mark.slow
def test_no_damaged_or_forged_file_does_harm(model, tmp_path):
    assert_harmless(model, tmp_path, 60, 150)
