"""Step 1 by scikit-learn's regressor: fitted or not, whatever units it was fitted in."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import smooth_table
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from emgpr import IndependentGP

KERNEL = ConstantKernel(1.5) * RBF(0.4, (0.01, 10)) + WhiteKernel(0.05, (1e-6, 1))


@pytest.fixture
def data(rng):
    X, Y = smooth_table(rng, N=35)
    return X, Y - Y.mean(axis=0)


@pytest.fixture
def x_new(rng):
    return rng.uniform(size=(6, 2))


def regressor(**settings):
    return GaussianProcessRegressor(KERNEL, **settings)


def check_same_predictions(ours, theirs, x_new, alpha=0.0):
    """Equal means; equal variances, to which scikit-learn does not add alpha."""
    mean, std = ours.predict(x_new, return_std=True)
    for d, model in enumerate(theirs):
        their_mean, their_std = model.predict(x_new, return_std=True)
        assert_allclose(mean[:, d], their_mean, rtol=1e-6)
        alone = alpha * model._y_train_std**2
        assert_allclose(std[:, d] ** 2, their_std**2 + alone, rtol=1e-6)


@pytest.mark.parametrize("theirs_normalised", [False, True])
@pytest.mark.parametrize("ours_normalised", [False, True])
def test_fitted_regressors_predict_the_same_through_us(
    data, x_new, theirs_normalised, ours_normalised
):
    """Raw units differ by 10⁴ between the outputs; every pairing of scales must agree."""
    X, Y = data
    theirs = [
        regressor(normalize_y=theirs_normalised, optimizer=None, alpha=1e-3).fit(X, y) for y in Y.T
    ]
    ours = IndependentGP(latent_learner=theirs, normalize_y=ours_normalised).fit(X, Y)
    check_same_predictions(ours, theirs, x_new, alpha=1e-3)


def test_an_unfitted_regressor_is_cloned_and_fitted_to_every_output(data, x_new):
    X, Y = data
    learner = regressor(alpha=0)
    ours = IndependentGP(latent_learner=learner).fit(X, Y)
    assert not hasattr(learner, "kernel_")
    standard = (Y - Y.mean(0)) / Y.std(0)
    theirs = [regressor(alpha=0).fit(X, y) for y in standard.T]
    for d, model in enumerate(theirs):
        assert_allclose(ours.noise_[d], model.kernel_.k2.noise_level, rtol=1e-5)
        assert_allclose(ours.kernels_[d].theta, model.kernel_.k1.theta, rtol=1e-5, atol=1e-6)
        assert_allclose(
            ours.predict(x_new)[:, d],
            model.predict(x_new) * Y[:, d].std() + Y[:, d].mean(),
            rtol=1e-5,
        )


def test_a_regressor_without_a_kernel_learns_ours(data):
    X, Y = data
    model = IndependentGP(RBF(0.4), latent_learner=GaussianProcessRegressor(alpha=0)).fit(X, Y)
    assert all(isinstance(kernel, RBF) for kernel in model.kernels_)
    assert np.all(model.noise_ < 0.1)


def test_a_regressor_fitted_to_all_outputs_at_once_brings_each_outputs_units(data, x_new):
    """scikit-learn's own multi-output fit shares a kernel but normalises each output."""
    X, Y = data
    shared = regressor(normalize_y=True, optimizer=None).fit(X, Y)
    ours = IndependentGP(latent_learner=shared).fit(X, Y)
    assert_allclose(ours.predict(x_new), shared.predict(x_new), rtol=1e-6)
    _, std = ours.predict(x_new, return_std=True)
    assert_allclose(std, shared.predict(x_new, return_std=True)[1], rtol=1e-6)


def test_missing_readings_are_not_shown_to_the_regressor(data):
    X, Y = data
    Y[:10, 1] = np.nan
    model = IndependentGP(latent_learner=regressor(optimizer=None)).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_a_list_of_another_length_is_refused(data):
    with pytest.raises(ValueError, match="2 regressors for 3 outputs"):
        IndependentGP(latent_learner=[regressor(), regressor()]).fit(*data)


def test_a_noise_for_every_row_is_refused(data):
    X, Y = data
    learner = regressor(alpha=np.full(len(X), 0.1), optimizer=None).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"alpha is an array.*WhiteKernel"):
        IndependentGP(latent_learner=learner).fit(X, Y)


def test_a_regressor_of_nothing_but_noise_is_refused(data):
    learner = GaussianProcessRegressor(WhiteKernel(0.1), optimizer=None)
    with pytest.raises(ValueError, match="nothing but noise"):
        IndependentGP(latent_learner=learner).fit(*data)
