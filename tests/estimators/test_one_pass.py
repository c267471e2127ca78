"""OnePassGP: fits and predictions from sums, whatever the chunks, and what it refuses."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from benchmarks.one_pass import BOX, NOISE, Truth, compare_with_dense, measure
from emgpr import OnePassGP
from emgpr.estimators import one_pass
from emgpr.fourier.grid import FourierSums
from tests.smooth_fields import quick, table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return table(np.random.default_rng(7))


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(*data)


@pytest.fixture(scope="module")
def started(data):
    return quick().start(*data)


def test_it_agrees_with_the_dense_model():
    """The criterion of the benchmark at 2000 sites, at as many as a test has time for."""
    row = compare_with_dense(200)
    assert row["at most"] < 0.02  # of a standard deviation
    assert 0.99 < row["sd over dense, least"] <= row["sd over dense, most"] < 1.02
    assert abs(row["log-likelihood"] / row["dense"] - 1) < 0.001


def test_a_known_model_is_recovered():
    """Of 80,000 new readings, 95% ± 0.4% are inside: five standard errors, of one fixed draw."""
    row = measure(20_000, n_functions=241, n_start=200, tolerance=0.01)
    assert 0.946 < row["readings inside"] < 0.954
    assert row["signals inside"] > 0.92
    assert row["error over ideal"] < 1.03
    assert row["error of noise"] < 0.05


def test_the_simulated_table_has_the_noise_of_its_model():
    truth = Truth(np.random.default_rng(0))
    X, Y = truth.chunk(4000, np.random.default_rng(1))
    noise = Y - truth.signals(X)
    complete = noise[~np.isnan(noise).any(axis=1)]
    assert_allclose(np.cov(complete.T), NOISE, atol=0.02)


def test_chunks_may_be_summed_anywhere_and_in_any_order(data, started):
    X, Y = data
    whole = copy.deepcopy(started).absorb(started.summed(X, Y))
    elsewhere = pickle.loads(pickle.dumps(started))
    parts = [elsewhere.summed(X[part], Y[part]) for part in np.array_split(np.arange(400)[::-1], 3)]
    joined = copy.deepcopy(started).absorb(parts[2] + (parts[0] + parts[1]))
    in_turn = copy.deepcopy(started)
    for i in range(0, 400, 100):
        in_turn.partial_fit(X[i : i + 100], Y[i : i + 100], learn=False)
    in_turn.learn()
    assert whole.n_sites_ == joined.n_sites_ == in_turn.n_sites_
    for model in (joined, in_turn):
        value = model.log_marginal_likelihood_value_
        assert_allclose(value, whole.log_marginal_likelihood_value_, atol=0.05)
        for mine, theirs in zip(
            model.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True
        ):
            assert_allclose(mine, theirs, atol=1e-3)


def test_nothing_that_grows_with_the_sites_is_kept(data, started):
    small = copy.deepcopy(started).absorb(started.summed(*data), learn=False)
    more = table(np.random.default_rng(1), N=5000)
    large = copy.deepcopy(started).absorb(started.summed(*more), learn=False)
    assert large.n_sites_ > 10 * small.n_sites_
    assert len(pickle.dumps(large)) < 1.01 * len(pickle.dumps(small))


def test_rows_without_readings_are_ignored(data, started):
    X, Y = data
    more = np.vstack([X, [[0.3, 0.3]]]), np.vstack([Y, [[np.nan, np.nan]]])
    one, other = (copy.deepcopy(started).partial_fit(*each, learn=False) for each in (data, more))
    assert other.n_sites_ == one.n_sites_ == int((~np.isnan(Y)).any(axis=1).sum())
    assert other.n_readings_ == int((~np.isnan(Y)).sum())
    assert_allclose(other.log_marginal_likelihood_value_, one.log_marginal_likelihood_value_)


def test_predictions_are_transformed_back(data, fitted):
    X, Y = data
    logs = quick(output_transform="log").fit(X, np.exp(Y))
    assert_allclose(logs.predict(X), np.exp(fitted.predict(X)), rtol=1e-6)
    q = [0.1, 0.9]
    expected = np.exp(fitted.predict_quantiles(X, q))
    assert_allclose(logs.predict_quantiles(X, q), expected, rtol=1e-6)
    mean, std = fitted.predict(X, return_std=True)
    assert_allclose(fitted.predict_exceedance(X, 1.0), norm.sf(1.0, mean, std), atol=1e-9)


def test_frames_keep_their_names_and_index(data):
    X = pd.DataFrame(data[0], columns=["east", "north"], index=[f"s{i}" for i in range(400)])
    Y = pd.DataFrame(data[1], columns=["Cd", "Zn"], index=X.index)
    model = quick().start(X, Y)
    model.partial_fit(X[:200], Y[:200], learn=False)
    model.partial_fit(X[200:], Y.loc[X.index[200:], ["Zn", "Cd"]], learn=False)
    frame = model.predict_frame(X[:3])
    assert frame.columns.tolist() == ["Cd", "Cd_std", "Zn", "Zn_std"]
    assert frame.index.tolist() == ["s0", "s1", "s2"]
    assert model.score(X, Y[["Zn", "Cd"]]) > 0.8
    assert model.variance_shares_.index.tolist() == ["Cd", "Zn"]
    assert_allclose(model.variance_shares_.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=re.escape("y has the outputs ['Cd'], but this model")):
        model.partial_fit(X, Y[["Cd"]])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(X[["north", "east"]], Y)


def test_one_output_may_be_a_vector(data):
    X, Y = data
    read = ~np.isnan(Y[:, 0])
    model = quick().fit(X[read], Y[read, 0])
    assert model.predict(X).shape == (400,)
    assert model.noise_.shape == (1,)
    assert model.sample_y(X[:4], 3).shape == (4, 3)


def test_the_noise_is_a_covariance_or_variances(data, fitted):
    assert fitted.noise_.shape == (2, 2)
    assert fitted.noise_[0, 1] != 0
    assert quick(noise="independent").fit(*data).noise_.shape == (2,)


def test_a_constant_output_is_predicted_everywhere(data):
    X, Y = data
    for outputs in (np.column_stack([Y[:, 0], np.full(400, 5.0)]), np.full((400, 1), 5.0)):
        with pytest.warns(UserWarning, match="Output '.*value"):
            model = quick().fit(X, outputs)
        assert_allclose(model.predict(X)[:, -1], 5.0)


def test_an_output_with_few_readings_is_in_the_sample(rng):
    X, Y = table(rng, N=3000, missing=0.0)
    Y[40:, 1] = np.nan
    model = quick(n_start=50).fit(X, Y)
    assert np.isfinite(model.predict(X[:5])).all()


@pytest.mark.parametrize("P", [1, 3])
def test_one_and_three_inputs(P, rng):
    X = rng.uniform(size=(500, P))
    y = 3 * np.sin(3 * X.sum(axis=1)) + 0.1 * rng.normal(size=500)
    model = quick(kernel=RBF(0.5), n_functions=201).fit(X, y)
    assert model.score(X, y) > 0.95


def test_a_column_that_has_no_effect_because_of_its_unit_is_warned_of(rng):
    X = rng.uniform(size=(80, 2)) * [1e6, 1.0]
    Y = np.sin(X[:, :1] / 2e5) + X[:, 1:]
    with pytest.warns(UserWarning, match=r"The values of '1' vary so much .*Set a kernel with"):
        quick().fit(X, Y)
    quick(kernel=Matern([1.0, 1.0], nu=2.5)).fit(X, Y)


def test_maps_cover_the_box(data):
    pytest.importorskip("xarray")
    model = quick(crs="EPSG:32632").partial_fit(*data, learn=False)
    grid = model.predict_grid(shape=(4, 5), quantiles=[0.1])
    assert grid["output_0"].shape == (4, 5)
    corner = np.array([[grid["x"].values[0], grid["y"].values[0]]])
    assert_allclose(grid["output_0"].values[0, 0], model.predict(corner)[0, 0])
    assert_allclose(corner[0], model.box_[0])
    assert str(model.n_sites_) in grid.attrs["source"]


def test_longitude_and_latitude_are_points_on_the_sphere(rng):
    pytest.importorskip("pyproj")
    lon, lat = rng.uniform(-180, 180, 600), np.degrees(np.arcsin(rng.uniform(-1, 1, 600)))
    y = np.sin(np.radians(lat)) + np.cos(np.radians(lat)) * np.cos(np.radians(lon))
    y += 0.1 * rng.normal(size=600)
    model = quick(crs="EPSG:4326", n_functions=201).fit(np.column_stack([lon, lat]), y)
    west, east = model.predict([[179.999, 10.0], [-179.999, 10.0]])
    assert abs(west - east) < 0.01
    with pytest.raises(ValueError, match=r"pass bounds=\(west"):
        model.predict_grid(10.0)
    assert model.predict_grid(shape=(3, 4), bounds=(-40, -20, 40, 20))["output_0"].shape == (3, 4)


REFUSED = [
    ({"kernel": [RBF()]}, "kernel is a list of 1 kernels for 2 latent processes"),
    ({"kernel": RationalQuadratic()}, r"RationalQuadratic.* expected RBF, Matern"),
    ({"kernel": RBF([1.0, 1.0, 1.0])}, "3 length-scales and X has 2 columns"),
    ({"kernel": WhiteKernel()}, "noise"),
    ({"box": ([0, 1], [1, 1])}, "Input 1 ranges from 1 to 1"),
    ({"box": ([0, 0], [0.5, 0.5])}, "locations are too far outside the box"),
    ({"tolerance": 2.0}, "tolerance=2.0"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=str)
def test_a_parameter_that_does_not_suit_the_table_is_refused(settings, message, data):
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(*data)


def test_fields_too_rough_for_the_features_are_refused(rng):
    X = rng.uniform(size=(400, 2))
    y = np.sin(60 * X[:, 0]) * np.cos(60 * X[:, 1])
    with pytest.raises(
        ValueError, match=r"leave out 0\.\d+ of the variance of output '0'.*too much"
    ):
        quick(kernel=Matern(0.02, "fixed", nu=0.5)).fit(X, y)


def test_sums_need_a_start_and_the_same_one(data, started):
    one, other = copy.deepcopy(started), quick(box=BOX).start(*data)
    for early in (
        lambda: quick().summed(*data),
        lambda: quick().learn(),
        lambda: quick().absorb(one.summed(*data)),
    ):
        with pytest.raises(ValueError, match="has not been started; call start, fit or partial"):
            early()
    with pytest.raises(ValueError, match=r"expected the result of summed\(X, y\)"):
        one.absorb(None)
    with pytest.raises(ValueError, match="cannot be added"):
        one.absorb(other.summed(*data))
    with pytest.raises(NotFittedError):
        one.predict(data[0])
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = one.weights_
    with pytest.raises(ValueError, match="have no reading of output '1'"):
        one.absorb(one.summed(data[0], np.column_stack([data[1][:, 0], np.full(400, np.nan)])))
    assert isinstance(one.summed(*data), FourierSums)
    assert one.absorb(one.summed(*data), learn=False).n_sites_ > 0  # errors left nothing behind
    with pytest.raises(AttributeError, match=r"not been optimised yet; call learn\(\)"):
        _ = one.history_


def test_a_new_start_removes_the_readings(data, fitted):
    model = copy.deepcopy(fitted).start(*data)
    with pytest.raises(NotFittedError):
        model.predict(data[0])


@pytest.mark.parametrize("method", ["fit", "partial_fit", "start", "learn"])
def test_a_call_that_is_interrupted_leaves_the_model_as_it_was(method, data, fitted, monkeypatch):
    model = copy.deepcopy(fitted)
    attributes, before = dict(vars(model)), model.predict(data[0])

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(one_pass, "optimise", interrupt)
    monkeypatch.setattr(one_pass, "start_fit", interrupt)
    other = pd.DataFrame(data[0] + 1.0, columns=["east", "north"]), data[1] + 5.0
    given = {"learn": (), "partial_fit": data}.get(method, other)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(*given)
    assert vars(model) == attributes
    assert_allclose(model.predict(data[0]), before)


def test_a_chunk_that_fails_leaves_the_model_as_it_was(data, fitted):
    model = copy.deepcopy(fitted)
    before = model.predict(data[0])
    with pytest.raises(ValueError, match="too far outside"):
        model.partial_fit(data[0] + 9.0, data[1])
    assert_allclose(model.predict(data[0]), before)
    assert model.n_sites_ == fitted.n_sites_


def test_a_code_for_missing_values_in_a_later_chunk_gives_a_warning(data, started):
    X, Y = data[0], data[1].copy()
    Y[:3, 1] = -9999.0
    with pytest.warns(UserWarning, match=r"Output '1' contains -9999 \(3 of .* looks like a code"):
        started.summed(X, Y)


@pytest.mark.parametrize("value", [0.0, -1e9])
def test_an_output_that_was_constant_at_the_start_must_stay_constant(value, data):
    X, Y = data
    constant = np.column_stack([Y[:, 0], np.full(len(Y), value)])
    with pytest.warns(UserWarning, match="Output '.*value"):
        model = quick(box=BOX).partial_fit(X[:200], constant[:200], learn=False)
    model.partial_fit(X[200:], constant[200:], learn=False)
    before, n = model.predict(X), model.n_sites_
    constant[-1, 1] += 1.0
    with pytest.raises(ValueError, match=r"Output '1' was constant .* with start\(X, y\)"):
        model.partial_fit(X[200:], constant[200:])
    assert model.n_sites_ == n
    assert_allclose(model.predict(X), before)


def test_an_optimisation_that_does_not_converge_gives_a_warning(data, started):
    model = copy.deepcopy(started).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
        model.partial_fit(*data)
    assert not model.converged_


def test_parameters_are_stored_and_cloned():
    model = clone(OnePassGP(RBF(0.2), output_transform="log"))
    assert model.get_params()["kernel__length_scale"] == 0.2
    assert not hasattr(model, "transform")


# --- scikit-learn's checks

CHECKED = quick(n_functions=21, n_start=30, max_iter=5, tolerance=0.999)
# These checks fit more than three inputs, for which Fourier features are too many.
TOO_MANY_INPUTS = {
    "check_dtype_object": 10,
    "check_estimators_dtypes": 5,
    "check_n_features_in_after_fitting": 4,
    "check_non_transformer_estimators_n_iter": 4,
    "check_positive_only_tag_during_fit": 4,
    "check_regressor_data_not_an_array": 10,
    "check_regressor_multioutput": 10,
    "check_regressors_int": 10,
    "check_regressors_no_decision_function": 4,
    "check_regressors_train": 10,
}


def expected_failures(_):
    return {name: f"the check has {P} inputs" for name, P in TOO_MANY_INPUTS.items()}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED], expected_failed_checks=expected_failures)
def test_it_passes_every_check_of_scikit_learn_with_up_to_three_inputs(estimator, check):
    check(estimator)


def two_columns(X):
    """Select two columns, of which one explains the output if there are ten."""
    return X[:, [0, 4]] if X.shape[1] == 10 else X[:, :2]


def checks_of_two_columns():
    pipeline = make_pipeline(FunctionTransformer(two_columns, validate=True), CHECKED)
    for estimator, check in estimator_checks_generator(pipeline):
        if check.func.__name__ in TOO_MANY_INPUTS:
            yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks_of_two_columns()))
def test_it_passes_the_other_checks_with_two_of_their_inputs(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*codes of classes")
@pytest.mark.parametrize("name", TOO_MANY_INPUTS)
def test_the_other_checks_fail_because_of_their_number_of_inputs(name):
    for estimator, check in estimator_checks_generator(CHECKED):
        if check.func.__name__ == name:
            with pytest.raises((ValueError, AssertionError)) as failure:
                check(estimator)
            message = f"{failure.value} {failure.value.__cause__}"
            assert f"{TOO_MANY_INPUTS[name]} input columns; expected at most 3" in message


@pytest.mark.filterwarnings("ignore:Outputs .* have one value only")
def test_a_single_site_needs_a_box(data):
    X, Y = data
    with pytest.raises(ValueError, match=r"Found 1 sample.*at least two sites, or box="):
        quick().fit(X[:1], Y[:1])
