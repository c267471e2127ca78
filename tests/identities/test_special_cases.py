"""Special cases of the model that are other, well-known models."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from tests.simulated import known_model, paper, posterior, smooth_table, with_weights, world

pytestmark = pytest.mark.slow

ESTIMATORS = [EMGPR, ICM, LMC, SLFM, IndependentGP]


def ordinary(model, X, y, d=0):
    """scikit-learn's regressor with the fitted parameters of output d, without transfer."""
    w = np.array([member[:, d] for member in model.weights_])
    variances = (w**2).sum(axis=(0, 2))
    kernel = sum(
        (ConstantKernel(v) * k for v, k in zip(variances, model.kernels_, strict=True) if v > 0),
        start=WhiteKernel(model.noise_[d]),
    )
    regressor = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True, alpha=0)
    return regressor.fit(X, y)


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_one_output_is_an_ordinary_gaussian_process(rng, Estimator):
    X, Y = smooth_table(rng, N=40)
    y = Y[:, 1]
    settings = {"output_transform": None, "parameter_uncertainty": False, "random_state": 0}
    model = Estimator(Matern(nu=2.5), **settings).fit(X, y)
    x_new = rng.uniform(size=(9, 2))
    mean, std = model.predict(x_new, return_std=True)
    their_mean, their_std = ordinary(model, X, y).predict(x_new, return_std=True)
    assert_allclose(mean, their_mean, rtol=1e-6)
    assert_allclose(std, their_std, rtol=1e-6)


def test_without_transfer_every_output_is_an_ordinary_gaussian_process(rng):
    X, Y = smooth_table(rng, N=40)
    kernels = [RBF(), Matern(nu=1.5), Matern(nu=2.5)]
    settings = {"output_transform": None, "parameter_uncertainty": False, "random_state": 0}
    model = IndependentGP(kernels, **settings).fit(X, Y)
    assert_array_equal(model.weights_[0, ..., 0], np.eye(3))
    x_new = rng.uniform(size=(9, 2))
    mean, std = model.predict(x_new, return_std=True)
    for d in range(3):
        theirs = ordinary(model, X, Y[:, d], d).predict(x_new, return_std=True)
        assert_allclose(mean[:, d], theirs[0], rtol=1e-6)
        assert_allclose(std[:, d], theirs[1], rtol=1e-6)


def test_with_identity_weights_outputs_do_not_inform_each_other(rng):
    made = replace(world(rng, D=3, Q=3, k=1), W=np.eye(3)[..., None])
    x_new = rng.uniform(size=(4, 2))
    together, _ = posterior(made, x_new)
    model = known_model(made)
    assert_allclose(model.predict(x_new), together, atol=1e-9)
    observed = np.full((4, 3), np.nan)
    observed[:, 0] = 5.0
    informed = model.predict(x_new, observed=observed)
    assert_allclose(informed[:, 1:], together[:, 1:], atol=1e-9)
    assert not np.allclose(informed[:, 0], together[:, 0], atol=0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Batches of 8 sites are too small")
@pytest.mark.parametrize("refine", [0, "joint"])
def test_one_batch_is_the_whole_table(rng, refine):
    X, Y = smooth_table(rng, N=25)
    settings = {"refine": refine, "max_iter": 4, "n_restarts": 1, "random_state": 0}
    one = paper(batch_size=None, **settings).fit(X, Y)
    same = paper(batch_size=25, partition="strided", **settings).fit(X, Y)
    many = paper(batch_size=8, **settings).fit(X, Y)
    assert len(one.weights_) == len(same.weights_) == 1
    assert len(many.weights_) == 3
    assert_array_equal(one.predict(X), same.predict(X))
    assert not np.allclose(one.predict(X), many.predict(X), rtol=1e-6)


def test_a_single_member_conditions_on_its_batch_as_on_all(rng):
    """At new locations and at those of the batch."""
    made = world(rng, k=1, missing=0.2, correlated=True)
    x_new = np.vstack([rng.uniform(size=(5, 2)), made.X])
    batch, everything = (
        known_model(made, conditioning=c).predict(x_new, return_cov=True) for c in ("batch", "all")
    )
    for ours, theirs in zip(batch, everything, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_members_conditioned_on_their_batches_use_no_other_readings(rng):
    X, Y = smooth_table(rng, N=24)
    settings = {"batch_size": 12, "max_iter": 4, "n_restarts": 1, "random_state": 0}
    model = paper(conditioning="batch", **settings).fit(X, Y)
    assert len(model.batches_) == 2
    means = []
    for W, batch in zip(model.weights_, model.batches_, strict=True):
        alone = with_weights(copy(model), W[None])
        table = model.posterior_.observations.at(batch)
        alone.posterior_ = replace(
            alone.posterior_, observations=table, batches=(np.arange(12),), conditioning="all"
        )
        means.append(alone.predict(X))
    assert_allclose(model.predict(X, statistic="mean"), np.mean(means, axis=0), rtol=1e-6)


ARD = (RBF([0.3, 0.6]), Matern([0.5, 0.4], nu=1.5), RBF([0.8, 0.2]))


@pytest.mark.parametrize(
    ("missing", "correlated", "kernels", "with_observed"),
    [(0.0, False, None, False), (0.3, True, ARD, True), (0.3, False, ARD, False)],
)
def test_with_all_sites_as_neighbours_predictions_are_exact(
    rng, missing, correlated, kernels, with_observed
):
    """At new locations and at three of the table."""
    made = world(rng, k=1, missing=missing, correlated=correlated)
    made = made if kernels is None else replace(made, kernels=kernels)
    x_new = np.vstack([rng.uniform(size=(5, 2)), made.X[:3]])
    observed = None
    if with_observed:
        observed = np.where(rng.uniform(size=(8, 3)) < 0.5, rng.normal(size=(8, 3)), np.nan)
    near, everything = (
        known_model(made, conditioning=c).predict(x_new, return_cov=True, observed=observed)
        for c in (len(made.X) + 5, "all")
    )
    assert_allclose(near[0], everything[0], atol=1e-8)
    assert_allclose(near[1], everything[1], atol=1e-8)
