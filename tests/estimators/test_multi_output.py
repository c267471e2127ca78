"""The base of EMGPR and its family: fitted attributes, repeated and interrupted fits."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.arrays import NumericalError
from emgpr.estimators import multi_output
from emgpr.fitting import fit as fitting
from emgpr.fitting import step_1
from tests.sameness import assert_same
from tests.simulated import paper, smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
KERNEL = RBF(0.25, "fixed")
QUICK = {"kernel": KERNEL, "max_iter": 4, "n_restarts": 1, "random_state": 0}
BATCHES = {"max_iter": 5, "n_restarts": 2, "batch_size": 9, "random_state": 0}
FAMILY = [EMGPR, ICM, LMC, SLFM, IndependentGP]
X, Y = smooth_table(np.random.default_rng(3), N=27)
X_NEW = np.random.default_rng(11).uniform(size=(6, 2))
OTHER = pd.DataFrame(X[:15, :1], columns=["east"]), pd.DataFrame(100 + Y[:15, :2] ** 2)
STAGES = {
    "read_training_table": multi_output,
    "resolve_params": fitting,
    "split_sites": fitting,
    "fit_latents": step_1,
    "stack_candidates": fitting,
}


@pytest.fixture(scope="module")
def ensemble():
    return paper(**BATCHES).fit(X, Y)


def fit_with_error(model, monkeypatch, stage, error):
    """Fit to another table, with an error at this stage."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(STAGES[stage], stage, fail)
    with pytest.raises(type(error)):
        model.fit(*OTHER)


# --- fits that fail


@pytest.mark.parametrize("stage", STAGES)
def test_a_fit_that_is_interrupted_leaves_the_fitted_model_as_it_was(stage, monkeypatch):
    model = EMGPR(**QUICK, batch_size=9, output_transform=None).fit(X, Y)
    before, predicted = dict(vars(model)), model.predict(X)
    fit_with_error(model, monkeypatch, stage, KeyboardInterrupt())
    assert_same(vars(model), before)
    assert all(vars(model)[name] is value for name, value in before.items())
    assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("Estimator", [ICM, IndependentGP])
def test_a_first_fit_that_fails_leaves_nothing(Estimator, monkeypatch, tmp_path):
    model = Estimator(**QUICK)
    params = model.get_params()
    fit_with_error(model, monkeypatch, "fit_latents", NumericalError("singular"))
    assert model.get_params() == params
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")


def test_a_table_that_is_refused_leaves_the_fitted_model_as_it_was():
    model = IndependentGP(**QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X[:, :1], np.inf * Y)
    assert model.n_features_in_ == 2
    assert model.predict(X[:1]).shape == (1, 3)


# --- repeated fits


def test_a_seed_gives_the_same_bits_and_another_seed_other_batches(ensemble):
    again, other = (paper(**BATCHES | {"random_state": seed}).fit(X, Y) for seed in (0, 1))
    assert_array_equal(again.predict(X_NEW), ensemble.predict(X_NEW))
    assert_array_equal(again.weights_, ensemble.weights_)
    assert not np.array_equal(np.concatenate(other.batches_), np.concatenate(ensemble.batches_))


def test_a_second_fit_does_not_depend_on_the_first(ensemble):
    model = paper(**BATCHES)
    model.fit(X[::-1], Y[::-1, :2])
    assert_array_equal(model.fit(X, Y).predict(X_NEW), ensemble.predict(X_NEW))


def test_several_processes_give_the_same_model(ensemble):
    model = paper(**BATCHES, n_jobs=2).fit(X, Y)
    assert_allclose(model.weights_, ensemble.weights_, atol=1e-8)
    assert_allclose(model.predict(X_NEW), ensemble.predict(X_NEW), rtol=1e-8)


# --- fitted attributes


@pytest.mark.parametrize("Estimator", [EMGPR, ICM, SLFM])
def test_shares_of_the_variance_sum_to_one(Estimator):
    shares = Estimator(**QUICK | {"output_transform": None}).fit(X, Y).variance_shares_
    assert list(shares.index) == ["0", "1", "2"]
    assert shares.columns[-1] == "noise"
    assert np.all(shares >= 0)
    assert_allclose(shares.sum(axis=1), 1.0)


def test_shares_of_the_variance_are_those_of_the_weights():
    model = EMGPR.paper(**QUICK, batch_size=9).fit(X, Y)
    powers = np.einsum("lqdk,lqdk->dq", model.weights_, model.weights_) / 3
    expected = np.column_stack([powers, model.noise_])
    shares = model.variance_shares_
    assert list(shares.columns) == ["latent 0", "latent 1", "latent 2", "noise"]
    assert_allclose(shares, expected / expected.sum(axis=1, keepdims=True))
    independent = IndependentGP(KERNEL + WhiteKernel(0.25, "fixed")).fit(X, Y)
    assert_allclose(independent.variance_shares_.to_numpy(), np.eye(3, 4) * 0.8 + [0, 0, 0, 0.2])


@pytest.mark.filterwarnings("ignore:Nothing was measured in 1 of 27 rows")
def test_batches_are_rows_of_the_training_table():
    table = Y.copy()
    table[4] = np.nan
    model = paper(**QUICK, batch_size=13).fit(X, table)
    assert model.n_rows_ignored_ == 1
    assert_array_equal(np.sort(np.concatenate(model.batches_)), np.delete(np.arange(27), 4))


def test_training_data_are_returned_in_original_units():
    table = np.where(np.arange(27)[:, None] % 9 == [1, 2, 3], np.nan, np.exp(Y / Y.std(axis=0)))
    sites = pd.DataFrame(X, columns=["east", "north"], index=[f"s{i}" for i in range(27)])
    metals = pd.DataFrame(table, columns=["Cd", "Ni", "Zn"], index=sites.index)
    inputs, outputs = (
        IndependentGP(**QUICK, output_transform="log").fit(sites, metals).training_data()
    )
    pd.testing.assert_frame_equal(inputs, sites)
    pd.testing.assert_frame_equal(outputs, metals, rtol=1e-7)


def test_conditioning_is_resolved_and_approximations_are_described(ensemble):
    assert ensemble.conditioning_ == "all"
    near = paper(**QUICK, batch_size=None, conditioning=np.int64(4)).fit(X, Y)
    assert near.conditioning_ == 4
    assert any("4" in line for line in near.approximations_)
    assert EMGPR.paper(**QUICK, batch_size=None).fit(X, Y).approximations_ == ()


def test_more_neighbours_than_sites_are_all_sites():
    exact = EMGPR(conditioning="all", **QUICK).fit(X, Y)
    for conditioning in (len(X), 10**9):
        model = EMGPR(conditioning=conditioning, **QUICK).fit(X, Y)
        assert model.conditioning_ == "all"
        assert_allclose(model.predict(X + 0.1), exact.predict(X + 0.1), rtol=1e-9)
        plans = [m.plan(X, Y).bytes for m in (model, exact)]
        assert plans[0] == plans[1]


def test_correlations_of_the_signals_are_parts_that_sum_to_one(ensemble):
    parts = ensemble.signal_correlations()
    assert parts.shape == (3, 3, 3)
    assert_allclose(np.diagonal(parts.sum(axis=0)), 1.0)


@pytest.mark.parametrize("Estimator", FAMILY)
def test_fitted_attributes_are_missing_before_the_fit(Estimator):
    model = Estimator()
    for name in ("kernels_", "weights_", "noise_", "converged_", "batches_", "conditioning_"):
        assert not hasattr(model, name)
    for method in (
        model.training_data,
        model.variograms,
        model.signal_correlations,
        model.cross_validate,
        model.transfer_report,
        model.approximation_report,
        lambda: model.predict_latents(X),
    ):
        with pytest.raises(NotFittedError):
            method()
