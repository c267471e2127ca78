"""CMOGP as an estimator: the family's methods, its attributes, and parameters that are refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import CMOGP, IndependentGP, compare
from emgpr.datasets import jura_table
from emgpr.experiments.fitting import build
from emgpr.experiments.jura import TABLE_1
from emgpr.fitting import convolution as module
from emgpr.prediction import ReadingLocations

QUICK = {"n_restarts": 2, "random_state": 0}


def a_table(N=70):
    """A rough output, a smoothed version of it, and one that is unrelated; some are missing."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 10, size=N))
    rough = np.sin(X) + 0.4 * np.sin(4 * X)
    Y = np.column_stack([rough, -np.sin(X), np.cos(2 * X + 1)]) + 0.1 * rng.normal(size=(N, 3))
    Y[::5, 0] = np.nan
    names = ["rough", "smooth", "other"]
    return pd.DataFrame({"x": X}), pd.DataFrame(np.exp(0.5 * Y), columns=names)


X, Y = a_table()


@pytest.fixture(scope="module")
def model():
    return CMOGP(**QUICK, output_transform="log").fit(X, Y)


def test_every_prediction_accepts_observed(model):
    new = pd.DataFrame({"x": [2.03, 7.11]})
    known = pd.DataFrame({"smooth": [0.8, np.nan]})
    median, std = model.predict(new, return_std=True, observed=known)
    mean, cov = model.predict(new, return_cov=True, observed=known, statistic="mean")
    assert np.all(mean > median)  # of log-normal distributions
    assert_allclose(np.sqrt(np.einsum("mdd->md", cov)), std)
    low, middle, high = model.predict_quantiles(new, [0.05, 0.5, 0.95], observed=known)
    assert_allclose(middle, median, rtol=1e-6)
    assert np.all((low < middle) & (middle < high))
    exceedance = model.predict_exceedance(new, list(median[0]), observed=known)
    assert_allclose(exceedance[0], 0.5, atol=1e-6)
    assert model.sample_y(new, 3, observed=known).shape == (2, 3, 3)
    frame = model.predict_frame(new, observed=known)
    assert_allclose(frame["other"], median[:, 2])
    without = model.predict(new)
    assert abs(without[0, 0] - median[0, 0]) > 1e-3  # what is known matters
    assert_allclose(without[1], median[1], rtol=0.05)


def test_predictions_without_noise_have_less_variance(model):
    std, signal = (model.predict(X, True, include_noise=noise)[1] for noise in (True, False))
    assert (signal < std).all()


def test_attributes_describe_the_covariance(model):
    covariance = model.posterior_.covariance
    assert [kernel.length_scale for kernel in model.kernels_] == list(covariance.length_scales)
    assert len(model.own_kernels_) == 3
    assert model.weights_.shape == (1, 3)
    assert model.widths_.min() == 0
    assert list(model.length_scales_) == ["latent 0", "own process"]
    shared = np.sqrt(2 * model.widths_**2 + covariance.length_scales[0] ** 2)
    assert_allclose(model.length_scales_["latent 0"], shared)
    assert_allclose(model.variance_shares_.sum(axis=1), 1.0)
    assert list(model.variance_shares_) == ["latent 0", "own process", "noise"]
    parts = model.signal_correlations()
    at = ReadingLocations.all_outputs(np.zeros((1, 1)), 3)
    cov = covariance.between(at, at)
    scale = np.sqrt(np.diag(cov))
    assert_allclose(parts.sum(axis=0), cov / scale / scale[:, None])
    assert model.noise_.shape == (3,)


def test_all_searches_are_listed(model):
    searches = model.searches_
    assert list(searches) == ["log_likelihood", "log_density", "n_iter", "converged"]
    assert len(searches) == 2
    best = searches.loc[searches["log_density"].idxmax()]
    assert model.log_marginal_likelihood_value_ == best["log_likelihood"]
    assert (model.n_iter_, model.converged_) == (best["n_iter"], best["converged"])
    assert (searches["log_density"] < searches["log_likelihood"]).all()  # with a weak prior


def test_cross_validation_and_transfer(model):
    by_site, by_output = (model.cross_validate(by).summary()["rmse"] for by in ("site", "output"))
    assert by_output["rough"] < by_site["rough"]
    report = model.transfer_report("output").table
    assert_allclose(report["mae"], model.cross_validate("output").summary()["mae"])
    assert (report["mae_alone"] != report["mae"]).all()
    assert (report["difference"].abs() < 4 * report["standard_error"]).all()
    inputs, outputs = model.training_data()
    assert_allclose(inputs, X)
    assert_allclose(outputs, Y)
    assert model.n_rows_ignored_ == 0


def test_outputs_vary_at_different_scales(model):
    """The part of the smooth output has a longer length-scale than that of the rough one."""
    two = Y[["rough", "smooth"]]
    only = CMOGP(**QUICK, own_processes=False, output_transform="log").fit(X, two)
    scales = only.length_scales_["latent 0"]
    assert scales["smooth"] > 1.3 * scales["rough"]
    assert only.own_kernels_ == []
    assert list(only.variance_shares_) == ["latent 0", "noise"]


def test_permuted_outputs_permute_the_answer(model):
    order = ["other", "rough", "smooth"]
    permuted = CMOGP(**QUICK, output_transform="log").fit(X, Y[order])
    expected = model.predict_frame(X)
    assert_allclose(permuted.predict_frame(X)[order], expected[order], rtol=1e-8)
    assert_allclose(permuted.variance_shares_.loc[["rough"]], model.variance_shares_.loc[["rough"]])


def test_outputs_keep_to_their_bounds():
    kept = CMOGP(**QUICK).fit(X, Y)
    assert (kept.predict_quantiles(X, 0.001) >= 0).all()
    share = 100 * Y / Y.sum(axis=1, min_count=3).to_numpy()[:, None]
    parts = share.dropna()
    whole = CMOGP(**QUICK, compositions=[list(Y)], max_iter=2)
    with pytest.warns(ConvergenceWarning):
        whole.fit(X.loc[parts.index], parts)
    assert_allclose(whole.predict(X, statistic="mean").sum(axis=1), 100.0, rtol=1e-3)


def test_longitude_and_latitude_are_points_on_the_sphere():
    rng = np.random.default_rng(0)
    places = pd.DataFrame({"lon": rng.uniform(5, 8, 40), "lat": rng.uniform(45, 48, 40)})
    y = np.sin(3 * places["lon"].to_numpy())
    table = pd.DataFrame({"a": y, "b": 1 - y}) + 0.1 * rng.normal(size=(40, 2))
    model = CMOGP(crs="EPSG:4326", **QUICK, output_transform=None).fit(places, table)
    assert model.posterior_.covariance.n_inputs == 3
    grid = model.predict_grid(shape=(3, 4))
    assert dict(grid.sizes) == {"lat": 3, "lon": 4}


def test_models_can_be_compared():
    models = {"CMOGP": CMOGP(**QUICK), "alone": IndependentGP("rbf", random_state=0)}
    found = compare(models, X, Y[["rough", "smooth"]], by="output", n_folds=2)
    assert found.table().loc[("rough", "CMOGP"), "mae"] > 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Matern(), "only RBF kernels, because the convolutions of other kernels"),
        ("matern32", "only RBF kernels"),
        ("auto", "only RBF kernels"),
        ([RBF()], "only RBF kernels"),
        (RBF() + RBF(), "only RBF kernels"),
        (RBF([1.0, 2.0]), "a length-scale for each column"),
        (RBF(-1.0), "^kernel has length_scale=-1.0; expected finite positive"),
        ("cubic", "^kernel='cubic'; expected 'rbf', an RBF kernel, or None. CMOGP takes only RBF"),
    ],
)
def test_other_kernels_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        CMOGP(kernel).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_latents": 0}, "n_latents=0; expected a whole number of at least 1.$"),
        ({"n_latents": None}, "n_latents=None"),
        ({"n_latents": "auto"}, "n_latents='auto'"),
        ({"own_processes": "yes"}, "own_processes='yes'; expected True or False"),
        ({"prior": "strong"}, "prior='strong'"),
        ({"n_restarts": 0}, "n_restarts=0"),
        ({"max_iter": 2.5}, r"max_iter=2\.5"),
        ({"output_transform": "root"}, "output_transform='root'"),
    ],
)
def test_invalid_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CMOGP(**settings).fit(X, Y)


def test_too_many_readings_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_READINGS", 100)
    for method in (CMOGP(**QUICK).fit, CMOGP().plan):
        with pytest.raises(ValueError, match=r"has 196 readings; CMOGP takes at most 100.*EMGPR"):
            method(X, Y)


def test_a_failed_fit_changes_nothing(model):
    before = model.predict(X)
    with pytest.raises(ValueError, match="only RBF"):
        model.set_params(kernel="matern32").fit(X, 2 * Y)
    model.set_params(kernel="rbf")
    assert_allclose(model.predict(X), before)


def test_a_search_that_does_not_converge_is_reported():
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
        model = CMOGP(n_restarts=1, max_iter=1, random_state=0).fit(X, Y)
    assert not model.converged_


def test_the_first_look_fits_nothing():
    summary = CMOGP().first_look(X, Y)
    assert summary.n_rows == 70
    with pytest.raises(ValueError, match="only RBF"):
        CMOGP("matern12").first_look(X, Y)


# --- the Jura data (Table 1 of the paper)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "log_likelihood", "errors"),
    [("CMOGP*", -1048.8, (0.448, 0.460)), ("CMOGP", -955.3, (0.38, 0.400))],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_jura(row, log_likelihood, errors, seed):
    jura = jura_table()
    model = build(TABLE_1[row], random_state=seed).fit(jura.X, jura.Y)
    assert model.converged_
    assert model.log_marginal_likelihood_value_ >= log_likelihood
    truth, new = jura.truth["Cd"].to_numpy(), jura.X[jura.test]
    error = np.abs(model.predict(new)[:, 0] - truth).mean()
    assert errors[0] <= error <= errors[1]
    low, high = model.predict_quantiles(new, [0.025, 0.975])[..., 0]
    assert 0.90 <= np.mean((low <= truth) & (truth <= high)) <= 0.99
    assert (model.variance_shares_["noise"] < 0.6).all()
