"""CoKriging as an estimator: the family's methods, its attributes, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import CoKriging, IndependentGP, compare
from emgpr.datasets import jura_table
from emgpr.fitting import cokriging as fitting
from emgpr.fitting.cokriging import LOW_COVERAGE, left_out_coverage
from emgpr.kernels import Spherical

JURA = jura_table()
FIXED = [Spherical(0.2, "fixed"), Spherical(1.3, "fixed")]


@pytest.fixture(scope="module")
def model():
    return CoKriging(FIXED, output_transform="log").fit(JURA.X, JURA.Y)


def test_every_prediction_accepts_observed(model):
    new = JURA.X[JURA.test][:5] + 0.01
    known = JURA.Y[JURA.test][["Ni", "Zn"]][:5].set_axis(new.index)
    median, std = model.predict(new, return_std=True, observed=known)
    mean, cov = model.predict(new, return_cov=True, observed=known, statistic="mean")
    assert np.all(mean > median)  # of log-normal distributions
    assert_allclose(np.sqrt(np.einsum("mdd->md", cov)), std)
    low, middle, high = model.predict_quantiles(new, [0.05, 0.5, 0.95], observed=known)
    assert_allclose(middle, median, rtol=1e-6)
    assert np.all((low < middle) & (middle < high))
    assert_allclose(
        model.predict_exceedance(new, list(median[0]), observed=known)[0], 0.5, atol=1e-5
    )
    assert model.sample_y(new, 3, observed=known).shape == (5, 3, 3)
    assert_allclose(model.predict_frame(new, observed=known)["Zn"], median[:, 2])
    assert (std[:, 0] < model.predict(new, return_std=True)[1][:, 0]).all()


def test_attributes_describe_the_variograms(model):
    assert model.structures_["range"].tolist() == [0.2, 1.3]
    assert model.structures_["model"].tolist() == ["Spherical", "Spherical"]
    assert_allclose(model.sills_.loc["nugget"], model.noise_)
    assert_allclose(model.sills_.loc["1"], model.coregionalization_[1])
    assert list(model.sills_.columns) == ["Cd", "Ni", "Zn"]
    assert [kernel.length_scale for kernel in model.kernels_] == [0.2, 1.3]
    assert_allclose(model.variance_shares_.sum(axis=1), 1.0)
    total = np.diag(model.coregionalization_.sum(axis=0) + model.noise_)
    assert_allclose(model.variance_shares_["noise"], np.diag(model.noise_) / total)
    assert_allclose(total, 1.0, atol=0.25)  # about the variance of standardised outputs
    assert model.signal_correlations().shape == (2, 3, 3)
    assert_allclose(np.diagonal(model.signal_correlations().sum(axis=0)), 1.0)
    assert model.converged_
    assert model.misfit_ > 0
    assert model.conditioning_ == "all"


def test_fitted_variograms_are_near_the_empirical_ones(model):
    """Half of the lags within a quarter of the sill; it is not fitted to these lags exactly."""
    for pair in (("Cd", "Cd"), ("Cd", "Zn")):
        found = model.variograms([pair], n_lags=10)
        assert (np.abs(found["empirical"] - found["model"]) < 0.25).mean() > 0.5
    pseudo = model.variograms([("Cd", "Ni")], kind="pseudo", n_lags=5)
    assert (pseudo["model"] < 3).all()  # the unknown means have no part in it


def test_cross_validation_and_transfer(model):
    by_site, by_output = (model.cross_validate(by).summary()["mae"] for by in ("site", "output"))
    assert (by_output < by_site).all()
    report = model.transfer_report("output").table
    assert (report["verdict"] == "gains").all()
    assert_allclose(model.training_data()[1], JURA.Y)


def test_ranges_are_fitted_by_default():
    fitted = CoKriging(output_transform="log").fit(JURA.X, JURA.Y)
    short, long = fitted.structures_["range"]
    assert 0.1 < short < 0.3
    assert 0.9 < long < 1.6
    assert fitted.n_iter_ > 0


def test_none_means_two_spherical_structures(tmp_path):
    unset, default = (
        CoKriging(**kernel, output_transform="log").fit(JURA.X, JURA.Y)
        for kernel in ({"kernel": None}, {})
    )
    assert_allclose(unset.sills_, default.sills_)
    unset.save(tmp_path / "model.emgpr")
    assert CoKriging.load(tmp_path / "model.emgpr").kernel is None


def test_unknown_means_follow_the_readings():
    """With few sites, simple co-kriging returns to the average, ordinary co-kriging to the mean."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0, 1, (40, 1)), rng.uniform(9, 10, (3, 1))])
    y = np.where(X[:, 0] < 5, 0.0, 4.0) + 0.1 * rng.normal(size=43)
    settings = {"kernel": Spherical(2.0, "fixed"), "output_transform": None, "output_bounds": None}
    simple, ordinary = (
        CoKriging(**settings, mean_variance=v).fit(X, y).predict([[60.0]])[0] for v in (0.0, 1e4)
    )
    assert simple == pytest.approx(y.mean(), abs=1e-6)
    assert 1.0 < ordinary < 3.0  # two groups of sites, each of which is one independent value


def test_a_neighbourhood_can_be_set(model):
    near = CoKriging(FIXED, output_transform="log", conditioning=20).fit(JURA.X, JURA.Y)
    assert near.conditioning_ == 20
    new = JURA.X[JURA.test]
    whole, part = (m.predict(new)[:, 0] for m in (model, near))
    assert np.corrcoef(whole, part)[0, 1] > 0.9
    assert np.abs(whole - part).max() > 1e-3
    many = CoKriging(FIXED, conditioning=400, output_transform="log").fit(JURA.X, JURA.Y)
    assert many.conditioning_ == "all"


def test_permuted_outputs_permute_the_answer(model):
    order = ["Zn", "Cd", "Ni"]
    permuted = CoKriging(FIXED, output_transform="log").fit(JURA.X, JURA.Y[order])
    new = JURA.X[JURA.test]
    expected = model.predict_frame(new)
    assert_allclose(permuted.predict_frame(new)[expected.columns], expected, rtol=1e-4)


def test_outputs_keep_to_their_bounds():
    model = CoKriging(FIXED).fit(JURA.X, JURA.Y)
    assert (model.predict_quantiles(JURA.X[JURA.test], 0.001) >= 0).all()


def test_maps_and_comparisons_take_it(model):
    grid = model.predict_grid(shape=(4, 3))
    assert set(grid.data_vars) >= {"Cd", "Cd_std"}
    models = {"ck": CoKriging(FIXED), "alone": IndependentGP("rbf", random_state=0)}
    found = compare(models, JURA.X[::3], JURA.Y[::3], by="output", n_folds=2)
    assert found.table().loc[("Zn", "ck"), "mae"] > 0


def test_longitude_and_latitude_are_points_on_the_sphere():
    rng = np.random.default_rng(0)
    places = pd.DataFrame({"lon": rng.uniform(5, 8, 50), "lat": rng.uniform(45, 48, 50)})
    y = np.sin(3 * places["lon"].to_numpy()) + 0.1 * rng.normal(size=50)
    model = CoKriging("exponential", crs="EPSG:4326", output_transform=None, max_lag=150)
    model.fit(places, y)
    assert 5 < model.structures_["range"][0] < 300  # km


def test_a_long_table_without_pairs_in_common():
    """Heterotopic sampling: cadmium and zinc at different sites."""
    Y = JURA.Y[["Ni", "Zn"]].copy()
    Y.iloc[::2, 0] = np.nan
    Y.iloc[1::2, 1] = np.nan
    model = CoKriging(FIXED, output_transform="log").fit(JURA.X, Y)
    assert model.coregionalization_[:, 0, 1].sum() > 0.3
    report = model.transfer_report("site").table
    assert np.isfinite(report["mae"]).all()


@pytest.mark.filterwarnings("error")
def test_a_variogram_that_still_rises_at_the_longest_lag_is_no_failure():
    x = np.linspace(0, 1, 60)
    y = x + 0.01 * np.random.default_rng(0).normal(size=60)
    model = CoKriging("spherical", output_transform=None, output_bounds=None).fit(x[:, None], y)
    assert 0.8 < model.structures_["range"][0] <= 1.0  # twice the longest lag, which is half
    assert model.converged_


def series(seed=0):
    """Three noisy series of which two have gaps, at different places."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, size=(40, 1)), axis=0)
    signal = np.sin(x) + 0.5 * np.sin(2.7 * x)
    Y = signal * [1.0, 1.3, 1.6] + np.cos(x) * [0.0, 0.4, 0.8] + 0.1 * rng.normal(size=(40, 3))
    Y[13:20, 0] = Y[::5, 2] = np.nan
    return x, Y


def similar(seed, D=3, N=80):
    """Noisy readings of outputs whose signals are linear functions of each other."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    f = np.sin(6 * X[:, 0]) + X[:, 1]
    Y = np.column_stack([f, 2 * f + 1, -f])[:, :D] + 0.1 * rng.normal(size=(N, D))
    return X, Y, rng


PLAIN = {"output_transform": None, "output_bounds": None}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("missing", ["every sixth of one", "30% of one", "15% of all"])
def test_intervals_remain_calibrated_if_readings_are_missing(seed, missing):
    X, Y, rng = similar(seed)
    if missing == "every sixth of one":
        Y[::6, 0] = np.nan
    elif missing == "30% of one":
        Y[rng.uniform(size=80) < 0.3, 0] = np.nan
    else:
        Y[rng.uniform(size=Y.shape) < 0.15] = np.nan
    measured = ~np.isnan(Y).all(axis=1)
    model = CoKriging(**PLAIN).fit(X[measured], Y[measured])
    coverage = model.cross_validate("output").summary()["coverage"]
    assert coverage.min() > 0.85
    assert coverage.mean() > 0.9


def test_intervals_that_are_too_narrow_are_reported():
    """Half of the readings of three similar outputs are missing, so that few sites are common."""
    X, Y, rng = similar(1)
    Y[rng.uniform(size=Y.shape) < 0.5] = np.nan
    measured = ~np.isnan(Y).all(axis=1)
    with pytest.warns(UserWarning, match=r"inside their 95% intervals is \d\d% for [012]"):
        model = CoKriging(**PLAIN).fit(X[measured], Y[measured])
    low = left_out_coverage(model.posterior_) < LOW_COVERAGE
    observed = model.cross_validate("output").summary()["coverage"]
    assert low.any()
    assert (observed[low] < LOW_COVERAGE).all()


def test_the_check_of_intervals_uses_some_of_many_sites(monkeypatch):
    X, Y, _ = similar(0)
    model = CoKriging(**PLAIN).fit(X, Y)
    whole = left_out_coverage(model.posterior_)
    summary = model.cross_validate("output").summary()
    assert_allclose(whole, summary["coverage"], atol=0.02)
    monkeypatch.setattr(fitting, "MAX_CHECKED", 90)
    some = left_out_coverage(model.posterior_)
    assert_allclose(some * 30, (some * 30).round(), atol=1e-9)  # of 30 sites
    assert some.min() > 0.8


@pytest.mark.filterwarnings("error")
def test_outputs_without_common_sites_and_without_nuggets_are_reported():
    X, Y, _ = similar(1, D=2)
    Y[::2, 0] = Y[1::2, 1] = np.nan
    with pytest.warns(UserWarning, match="The nuggets of all outputs are zero"):
        CoKriging(**PLAIN).fit(X, Y)
    CoKriging(**PLAIN).fit(X[::2], Y[::2, 1])  # a single output is not predicted from others


@pytest.mark.parametrize("apart", [False, True])
def test_a_constant_added_to_an_output_is_added_to_its_predictions(apart):
    """Also if outputs are not standardised, and are measured at different sites."""
    X, Y, rng = similar(2, D=2)
    if apart:
        Y[::2, 0] = Y[1::2, 1] = np.nan
    new, constants = rng.uniform(size=(5, 2)), np.array([1e4, -30.0])
    known = np.column_stack([np.full(5, np.nan), rng.normal(size=5)])
    with warnings.catch_warnings(action="ignore"):
        before, after = (
            CoKriging(FIXED, normalize_y=False, **PLAIN).fit(X, Y + c) for c in (0.0, constants)
        )
    for observed in (None, known):
        moved = None if observed is None else observed + constants
        (mean, std), (mean_after, std_after) = (
            model.predict(new, return_std=True, observed=given)
            for model, given in ((before, observed), (after, moved))
        )
        assert_allclose(mean_after, mean + constants, atol=1e-6)
        assert_allclose(std_after, std, atol=1e-7)
    assert_allclose(after.sills_, before.sills_, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "x",
    [
        [[0.0], [1.0]],
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]],
        [[0.0], [0.0], [1.0], [1.0]],
    ],
    ids=["two sites", "corners of a square", "two locations"],
)
def test_few_sites_are_within_the_longest_lag(x):
    Y = np.random.default_rng(0).normal(size=(len(x), 2))
    model = CoKriging(output_transform=None, output_bounds=None).fit(x, Y)
    assert np.isfinite(model.predict(x, return_std=True)).all()


def test_a_longest_lag_without_pairs_is_refused():
    x, Y = series()
    message = r"max_lag=1e-09, but the two closest sites are .* set max_lag to at least \d"
    with pytest.raises(ValueError, match=message):
        CoKriging(max_lag=1e-9).fit(x, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "cubic"}, "'cubic' is not a variogram model"),
        ({"kernel": RBF([1.0, 1.0])}, "one length-scale for all inputs"),
        ({"n_lags": 0}, "n_lags=0"),
        ({"max_lag": -1.0}, r"max_lag=-1\.0; expected a positive distance"),
        ({"max_lag": True}, "max_lag=True"),
        ({"mean_variance": -1.0}, r"mean_variance=-1\.0; expected a number from 0"),
        ({"mean_variance": np.inf}, "mean_variance=inf"),
        ({"mean_variance": "large"}, "mean_variance='large'"),
        ({"conditioning": "batch"}, "conditioning='batch'; expected a whole number"),
        ({"conditioning": 0}, r'at least 1 \(neighbouring sites\) or "auto" or "all"\.'),
        ({"kernel": Spherical(-0.5, "fixed")}, "length_scale=-0.5; expected one length-scale"),
        ({"output_transform": "root"}, "output_transform='root'"),
    ],
)
def test_invalid_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CoKriging(**settings).fit(JURA.X, JURA.Y)


def test_the_spherical_model_is_refused_for_many_inputs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    with pytest.raises(ValueError, match="up to 3 inputs, and there are 4"):
        CoKriging().fit(X, y)
    fixed = Matern(0.5, "fixed", nu=0.5)
    assert CoKriging(fixed, output_transform=None).fit(X, y).n_features_in_ == 4


def test_parameters_are_cloned_and_set():
    model = CoKriging(Matern(2.0, nu=1.5), n_lags=7)
    assert clone(model).get_params()["kernel__length_scale"] == 2.0
    assert model.set_params(kernel__length_scale=3.0).kernel.length_scale == 3.0
    with pytest.raises(TypeError, match="positional"):
        CoKriging("spherical", 7)
    with pytest.raises(TypeError, match="output_transform"):
        CoKriging(transform="log")


def test_the_first_look_fits_nothing():
    assert CoKriging().first_look(JURA.X, JURA.Y).n_rows == 359
    with pytest.raises(ValueError, match="not a variogram model"):
        CoKriging("cubic").first_look(JURA.X, JURA.Y)
