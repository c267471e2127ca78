"""GPRN as an estimator: the family's methods, its attributes, and parameters that are refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel, Matern

import emgpr
from emgpr import GPRN, plots
from emgpr.datasets import jura_table
from emgpr.experiments.fitting import build
from emgpr.experiments.jura import TABLE_1
from emgpr.fitting import regression_network as module
from emgpr.persistence import ModelFileError
from emgpr.report.description import describe

QUICK = {"n_restarts": 2, "random_state": 0}


def a_table(N=50):
    """An output, one whose correlation with it changes sign, and one that is unrelated."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 1, size=N))
    first = np.sin(25 * X)
    Y = np.column_stack([first, np.cos(np.pi * X) * first, np.cos(11 * X)])
    Y += 0.1 * rng.normal(size=(N, 3))
    Y[::5, 1] = np.nan
    return pd.DataFrame({"x": X}), pd.DataFrame(np.exp(0.5 * Y), columns=["a", "b", "c"])


X, Y = a_table()


@pytest.fixture(scope="module")
def model():
    return GPRN(**QUICK, output_transform="log").fit(X, Y)


def test_every_prediction_accepts_observed(model):
    new = pd.DataFrame({"x": [0.203, 0.911]})
    known = pd.DataFrame({"a": [1.2, np.nan]})
    median, std = model.predict(new, return_std=True, observed=known)
    mean, cov = model.predict(new, return_cov=True, observed=known, statistic="mean")
    assert np.all(mean > median)  # of log-normal distributions
    assert_allclose(np.sqrt(np.einsum("mdd->md", cov)), std)
    low, middle, high = model.predict_quantiles(new, [0.05, 0.5, 0.95], observed=known)
    assert_allclose(middle, median, rtol=1e-6)
    assert np.all((low < middle) & (middle < high))
    assert model.sample_y(new, 3, observed=known).shape == (2, 3, 3)
    assert model.predict_frame(new, observed=known).shape == (2, 6)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("noise", [0.01, 0.0])
def test_outputs_with_little_noise_are_predicted_accurately(noise, constant):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 2))
    first, second = np.sin(5 * X[:, 0] + 2 * X[:, 1]), np.cos(4 * X[:, 1] - 2 * X[:, 0])
    F = np.column_stack([first, second, first - second])
    Y = F[:60] + noise * rng.normal(size=(60, 3))
    model = GPRN(
        output_transform=None, random_state=0, n_restarts=1, max_iter=40, constant_weights=constant
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X[:60], Y)
    assert np.abs(model.predict(X[60:]) - F[60:]).max() < 0.1
    assert np.abs(model.predict(X[:60]) - Y).max() < 0.05
    assert np.all(model.noise_ < 0.02)


def test_the_noise_of_a_single_reading_is_not_small():
    Y = np.column_stack([np.sin(6 * X[:30]), np.full(30, np.nan)])
    Y[4, 1] = 2.0
    with warnings.catch_warnings(action="ignore"):
        model = GPRN(output_transform=None, n_restarts=1, max_iter=20, random_state=0)
        _, std = model.fit(X[:30], Y).predict(X[:30], return_std=True)
    assert np.all(std[:, 1] > 0.5)


def test_correlations_change_over_the_region(model):
    left, right = model.correlations(pd.DataFrame({"x": [0.1, 0.9]}))[:, 0, 1]
    assert left > 0.5
    assert right < -0.5
    mean, std = model.predict_weights(X)
    assert_allclose(mean, model.weights_, atol=1e-4)
    assert (std > 0).all()
    constant = GPRN(**QUICK, output_transform="log", constant_weights=True).fit(X, Y)
    assert constant.weight_kernel_ is None
    assert constant.bound_ < model.bound_
    found = constant.correlations(X)
    assert_allclose(found, found[:1].repeat(len(X), axis=0))


def test_attributes(model):
    assert len(model.kernels_) == 2
    assert isinstance(model.weight_kernel_, RBF)
    assert model.weights_.shape == (50, 3, 2)
    assert model.noise_.shape == (3,)
    assert_allclose(model.variance_shares_.sum(axis=1), 1.0)
    assert_allclose(np.diagonal(model.signal_correlations().sum(axis=0)), 1.0)
    searches = model.searches_
    assert list(searches["start"])[-3:] == [
        "constant weights", "varying weights", "almost constant weights",
    ]  # fmt: skip
    assert model.bound_ == searches["bound"][-2:].max()
    assert model.converged_
    assert {"a", "b", "c"} == set(model.variograms()["first"])
    assert "The model is GPRN with 2 latent processes" in describe(model).sentence


def test_cross_validation_and_transfer(model):
    table = model.cross_validate("output").summary()
    assert (table["smse"] < 0.5).all()
    assert "verdict" in model.transfer_report("output").table


def test_permuted_outputs_permute_the_answer(model):
    order = ["c", "a", "b"]
    permuted = GPRN(**QUICK, output_transform="log").fit(X, Y[order])
    expected = model.predict_frame(X)
    assert_allclose(permuted.predict_frame(X)[order], expected[order], rtol=1e-5)


def test_saved_models_predict_the_same(model, tmp_path):
    model.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    assert_array_equal(again.predict(X, True), model.predict(X, True))
    assert_allclose(again.sample_y(X[:3], 2), model.sample_y(X[:3], 2))
    assert again.searches_.equals(model.searches_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", -np.ones(3)),
        ("length_scales", np.zeros(2)),
        ("node_cov", np.zeros((50, 2, 3))),
        ("node_cov", -np.ones((50, 2, 2))),
        ("weight_length_scale", None),
        ("weight_length_scale", -1.0),
        ("weight_variance", np.ones((2, 2))),
        ("searches", [("x", 1.0)]),
        ("bound", None),
    ],
)
def test_invalid_files_are_refused(model, name, value):
    state = model._state() | {name: value}
    with pytest.raises(ModelFileError):
        GPRN._from_state(state, 3)


def test_the_correlation_is_drawn(model):
    ax = plots.correlation_map(model, "a", "b")
    line = ax.lines[-1].get_ydata()
    assert line[0] > 0 > line[-1]
    rng = np.random.default_rng(0)
    places = pd.DataFrame(rng.uniform(size=(30, 2)), columns=["x", "y"])
    flat = GPRN(n_restarts=1, random_state=0, constant_weights=True, output_transform=None)
    flat.fit(places, Y[["a", "c"]][:30])
    ax = plots.correlation_map(flat, "a", "c", resolution=12)
    assert ax.get_title() == "a and c: correlation"
    with pytest.raises(TypeError, match="models of class GPRN"):
        plots.correlation_map(emgpr.LMC(), "a", "b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": ConstantKernel()}, "kernel=.* only RBF and Matérn"),
        ({"weight_kernel": RBF() + RBF()}, "weight_kernel=.* only RBF and Matérn"),
        ({"kernel": CompoundKernel([RBF(), RBF()])}, "kernel=.* only RBF and Matérn"),
        (
            {"weight_kernel": "spherical"},
            "^weight_kernel='spherical' is not .*'matern52', or None.",
        ),
        ({"weight_kernel": RBF(-1.0)}, "^weight_kernel has length_scale=-1.0"),
        ({"kernel": [RBF()]}, "^kernel=.* is not a scikit-learn kernel.*'matern52', or None.$"),
        ({"kernel": RBF([1.0, 2.0])}, "a length-scale for each column"),
        ({"kernel": "cubic"}, "is not a scikit-learn kernel"),
        ({"n_latents": 0}, "n_latents=0; expected a whole number of at least 1.$"),
        ({"n_latents": "auto"}, "n_latents='auto'; expected a whole number of at least 1.$"),
        ({"constant_weights": "yes"}, "constant_weights='yes'; expected True or False"),
        ({"equal_noise": 2}, "equal_noise=2; expected True or False"),
        ({"n_restarts": 0}, "n_restarts=0"),
        ({"max_iter": 2.5}, r"max_iter=2\.5"),
    ],
)
def test_invalid_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GPRN(**settings).fit(X, Y)


def test_too_many_sites_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_SITES", 40)
    for method in (GPRN(**QUICK).fit, GPRN().plan):
        with pytest.raises(ValueError, match=r"has 50 sites; GPRN takes at most 40.*use EMGPR"):
            method(X, Y)


def test_other_kernels_and_equal_noise():
    kernels = {"kernel": "matern32", "weight_kernel": Matern(0.5, "fixed", nu=2.5)}
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1 iterations"):
        found = GPRN(**kernels, equal_noise=True, max_iter=1, n_restarts=1, random_state=0).fit(
            X, Y[["a", "b"]]
        )
    assert not found.converged_
    assert found.noise_[0] == found.noise_[1]
    assert found.weight_kernel_.length_scale == pytest.approx(0.5)
    assert found.plan(X, Y).steps[-1].name == "varying weights"


# --- the Jura data (Table 1 of the paper)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "bound", "errors"),
    [
        ("SLFM (VB)", -1016.2, (0.422, 0.430)),
        ("SLFM* (VB)", -1096.9, (0.464, 0.472)),
        ("GPRN (VB)", -1016.2, (0.39, 0.430)),
        ("GPRN* (VB)", -1088.5, (0.40, 0.435)),
    ],
)
def test_jura(row, bound, errors):
    jura = jura_table()
    model = build(TABLE_1[row], random_state=0).fit(jura.X, jura.Y)
    assert model.bound_ >= bound
    truth, new = jura.truth["Cd"].to_numpy(), jura.X[jura.test]
    error = np.abs(model.predict(new)[:, 0] - truth).mean()
    assert errors[0] <= error <= errors[1]
    low, high = model.predict_quantiles(new, [0.025, 0.975])[:, :, 0]
    assert 0.9 <= np.mean((low < truth) & (truth < high)) <= 0.99
