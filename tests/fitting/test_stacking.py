"""The step of a fit that chooses the weights of candidates: refits, parameters and settings."""

import warnings
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, Matern
from threadpoolctl import threadpool_info, threadpool_limits

from emgpr import EMGPR, ICM
from emgpr.arrays import devices
from emgpr.fitting import stacking as module
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.stacking import n_parameters
from emgpr.prediction import LMCModel, LMCPosterior
from emgpr.stacking import StackedPosterior
from emgpr.stacking.gaps import N_FOLDS
from tests.simulated import smooth_table

QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 3, "n_restarts": 1, "random_state": 0}


def table():
    X, Y = smooth_table(np.random.default_rng(0), N=36)
    Y[X[:, 0] < 0.5, 1] = np.nan
    return X * [1.0, 0.1], Y


def fit(estimator=EMGPR, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**QUICK | changes).fit(*table())


def test_parameters_are_weights_noise_and_kernels():
    kernels = (RBF(0.3), Matern([1.0, 2.0], nu=1.5))
    W = np.ones((4, 2, 3, 2))  # four members, two latent processes, three outputs, rank two
    assert n_parameters(LMCModel(kernels, W, np.eye(3))) == 12 + 3 + 3
    assert n_parameters(LMCModel(kernels, W, np.eye(3) + 0.1)) == 12 + 6 + 3


@pytest.mark.parametrize(
    ("changes", "is_refitted"),
    [({}, True), ({"n_neighbours": None}, True), ({"refine": 1}, False), ({"refine": 0}, False)],
)
def test_the_joint_model_is_refitted_for_gaps(changes, is_refitted, monkeypatch):
    """After a joint optimisation; the readings in a gap are not among those of the refit."""
    refits = []
    original = module.refit_roughly

    def recorded(observations, *args, **settings):
        refits.append(observations)
        return original(observations, *args, **settings)

    monkeypatch.setattr(module, "refit_roughly", recorded)
    model = fit(**changes)
    weights = model.posterior_.stack.known[1, (0, 2)]
    assert len(refits) == (N_FOLDS if is_refitted else 0)
    assert np.isnan(weights.log_scores[1, 1]) == (not is_refitted)
    full = model.posterior_.observations.n_readings
    assert all(observations.n_readings < full for observations in refits)


def test_settings_reach_the_stack():
    stack = fit().posterior_.stack
    assert (stack.kernel, stack.varying, stack.couples_outputs) == ("matern12", False, True)
    assert stack.n_sites == 36
    assert stack.n_parameters > 0
    assert stack.fixed == (None, None, None)


@pytest.mark.slow
def test_the_posterior_of_the_joint_model_is_unchanged():
    auto, full = fit(), fit(transfer="full")
    assert isinstance(auto.posterior_, StackedPosterior)
    joint = auto.posterior_.with_transfer()
    assert type(full.posterior_) is LMCPosterior
    assert_array_equal(joint.model.weights, full.posterior_.model.weights)
    assert_array_equal(joint.model.noise, full.posterior_.model.noise)
    assert auto.log_marginal_likelihood_value_ == full.log_marginal_likelihood_value_


def test_ensembles_and_other_models_are_stacked_or_not():
    ensemble = fit(batch_size=12, n_neighbours=None, refine=0, noise="independent")
    assert isinstance(ensemble.posterior_, StackedPosterior)
    assert len(ensemble.weights_) > 1
    assert np.isfinite(ensemble.predict(table()[0][:3] + 0.01, return_std=True)).all()
    assert type(fit(ICM).posterior_) is LMCPosterior


@pytest.mark.parametrize(
    ("given", "read"), [("safe", "auto"), ("auto", "auto"), ("full", "full"), ("none", "none")]
)
def test_names_of_transfer_are_read(given, read):
    settings = FitSettings.from_params({"transfer": given})
    assert settings.transfer == read
    assert settings.couples_outputs == (read != "none")


@pytest.mark.slow
def test_weights_are_repeatable():
    one, two = fit(), fit()
    assert_allclose(one.stacking_weights_, two.stacking_weights_, rtol=1e-12)


TABLES = {
    "few readings, which mean an intrinsic model": {"N": 18},
    "many readings, which mean rank two": {"N": 150},
}


@pytest.mark.parametrize("size", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("changes", [{}, {"n_latents": 1, "rank": 2, "noise": "correlated"}])
def test_without_transfer_there_is_one_process_for_each_output(size, changes):
    """Whatever settings of the joint model are chosen."""
    X, Y = smooth_table(np.random.default_rng(0), **size)
    model = EMGPR(**QUICK, transfer="none", **changes).fit(X, Y)
    assert model.weights_.shape == (1, 3, 3, 1)
    assert_array_equal(model.weights_[0, ..., 0] > 0, np.eye(3, dtype=bool))
    assert model.noise_.shape == (3,)
    cov = model.predict(X[:4] + 0.01, return_cov=True)[1]
    assert_array_equal(cov[:, ~np.eye(3, dtype=bool)], 0.0)
    known = np.full((4, 3), np.nan)
    known[:, 0] = Y[:4, 0]
    one, two = (model.predict(X[:4] + 0.01, observed=z) for z in (None, known))
    assert_allclose(two[:, 1:], one[:, 1:], rtol=1e-9)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("emgpr.fitting.stacking", "refit_roughly"),
        ("emgpr.prediction.leave_out", "differentiate_group"),
        ("emgpr.regression.fit", "cholesky"),
        ("emgpr.regression.predict", "cholesky"),
    ],
)
def test_small_matrices_use_one_thread_however_many_readings_there_are(where, name, monkeypatch):
    """With several threads, the regressions of 800 sites × 10 outputs take ten times as long."""
    threads, at = set(), import_module(where)
    original = getattr(at, name)

    def recorded(*args, **settings):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        threads.update(pool["num_threads"] for pool in pools)
        return original(*args, **settings)

    monkeypatch.setattr(devices, "MULTITHREADED_ROWS", 1)  # this table has many readings
    monkeypatch.setattr(at, name, recorded)
    X, Y = table()
    with threadpool_limits(2, "blas"):
        fit(parameter_uncertainty=True).predict(X + 0.001, observed=Y)
    assert threads == {1}


def test_stacking_leaves_no_trees_in_the_fitted_model():
    """A model keeps the trees of its own predictions, not those for refits and weights."""
    kept = []
    for transfer in ("full", "auto"):
        model = fit(conditioning=16, transfer=transfer)
        cache = vars(model.posterior_.observations)["_of_sites"]
        kept.append({key for key in cache if key[0] == "tree"})
    assert kept[0] == kept[1] != set()
