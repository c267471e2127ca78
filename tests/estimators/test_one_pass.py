"""Learning and predicting from sums: the exact model's answers, whatever the chunks."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
)

from benchmarks.one_pass import NOISE, Truth, beside_dense, row_of
from emgpr.covariance import Expansion, Fineness, Sums, basis_on
from emgpr.estimators.from_sums import Ascent
from emgpr.observations import Observations
from emgpr.prediction import condition
from emgpr.weights import Mixture
from tests.finite_differences import assert_is_the_gradient
from tests.smooth_fields import quick, table


@pytest.fixture(scope="module")
def data():
    return table(np.random.default_rng(7))


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(*data)


def test_it_is_the_dense_model_in_fewer_numbers():
    """The bar of the benchmark at 2000 places, at as many as a test has time for."""
    row = beside_dense(300)
    assert row["at most"] < 0.02  # of a standard deviation
    assert 0.99 < row["sd over dense, least"] <= row["sd over dense, most"] < 1.02
    assert abs(row["log-likelihood"] / row["dense, there"] - 1) < 0.001


def test_a_known_truth_is_found():
    """Of 100,000 new readings, 95% ± 0.4% are inside: six standard errors, and drawn once."""
    row = row_of(20_000, n_functions=241, n_start=300, tolerance=0.01)
    assert 0.946 < row["readings inside"] < 0.954
    assert row["signals inside"] > 0.92
    assert row["beside the least"] < 1.03
    assert row["noise off by"] < 0.05


def test_the_ascent_follows_the_gradient(rng):
    """With what waves leave out, and a kernel whose variance at a place is learned too."""
    X, Y = table(rng, N=60, missing=0.3)
    seen = Observations.from_table(X, Y)
    kernels = Matern(0.3, nu=1.5), ConstantKernel(0.7) * RBF(0.4) + Matern([0.3, 0.5], nu=2.5)
    noise, W = np.array([[0.2, 0.05], [0.05, 0.3]]), rng.normal(size=(2, 2, 2))
    start = Mixture(kernels, noise, W, np.tile([1e-8, 1e2], (2, 1)))
    few = Fineness(0.01, 0.01, 31, 31)
    basis = basis_on(np.zeros(2), np.ones(2), kernels, np.ones(2), few)
    assert (basis.left_out(kernels) > 0.05).all()
    ascent = Ascent.around(start, seen, True, ["0", "1"])
    loss = ascent.objective(Expansion(Sums.of(basis.lattice, seen), basis, 2))
    which = np.arange(1)
    at = ascent.row(start)
    assert_is_the_gradient(
        loss(at[None], which)[1][0], lambda row: loss(row[None], which)[0][0], at
    )


def test_chunks_may_be_summed_anywhere_and_in_any_order(data):
    X, Y = data
    begun = quick().start(X, Y)
    whole = copy.deepcopy(begun).absorb(begun.summed(X, Y))
    elsewhere = pickle.loads(pickle.dumps(begun))
    parts = [elsewhere.summed(X[part], Y[part]) for part in np.array_split(np.arange(400)[::-1], 3)]
    joined = copy.deepcopy(begun).absorb(parts[2] + (parts[0] + parts[1]))
    by_and_by = copy.deepcopy(begun)
    for i in range(0, 400, 100):
        by_and_by.partial_fit(X[i : i + 100], Y[i : i + 100], learn=False)
    by_and_by.learn()
    assert whole.n_sites_ == joined.n_sites_ == by_and_by.n_sites_
    for model in (joined, by_and_by):
        value = model.log_marginal_likelihood_value_
        assert_allclose(value, whole.log_marginal_likelihood_value_, atol=0.05)
    for mine, theirs in zip(
        joined.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True
    ):
        assert_allclose(mine, theirs, atol=1e-4)


def test_processes_sum_to_the_same(data, monkeypatch):
    monkeypatch.setattr("emgpr.estimators.passes.PIECE", 100)
    monkeypatch.setattr("emgpr.estimators.passes.AT_A_TIME", 2)
    begun = quick().start(*data)
    alone, two = (begun.set_params(n_jobs=n).summed(*data) for n in (None, 2))
    for outputs, term in alone.terms.items():
        assert_array_equal(two.terms[outputs].places, term.places)
        assert_array_equal(two.terms[outputs].outputs, term.outputs)


def test_without_learning_readings_are_conditioned_on(data, fitted):
    X, Y = data
    place, value = np.array([[0.5, 0.5]]), np.array([[3.0, -3.0]])
    more = copy.deepcopy(fitted)
    for _ in range(30):
        more.partial_fit(place, value, learn=False)
    assert more.n_sites_ == fitted.n_sites_ + 30
    assert more.kernels_ == fitted.kernels_
    assert_allclose(more.noise_, fitted.noise_)
    before, after = (np.abs(model.predict(place) - value) for model in (fitted, more))
    assert (after < 0.7 * before).all()
    seen = Observations.from_table(
        np.vstack([X, np.repeat(place, 30, axis=0)]),
        fitted._scale.forward(np.vstack([Y, np.repeat(value, 30, axis=0)])),
    )
    dense = condition(seen, place, more.kernels_, more.weights_, more._noise)
    told = more._believe(place, None, with_cov=True, include_noise=False)
    assert_allclose(told.mean, dense.mean, atol=0.02)


def test_nothing_that_grows_with_the_places_is_kept(data):
    begun = quick().start(*data)
    X, Y = table(np.random.default_rng(1), N=5000)
    small = copy.deepcopy(begun).absorb(begun.summed(*data), learn=False)
    large = copy.deepcopy(begun).absorb(begun.summed(X, Y), learn=False)
    assert large.n_sites_ > 10 * small.n_sites_
    assert len(pickle.dumps(large)) < 1.01 * len(pickle.dumps(small))


def test_rows_without_readings_say_nothing(data, fitted):
    X, Y = data
    more = quick().fit(np.vstack([X, [[0.3, 0.3]]]), np.vstack([Y, [[np.nan, np.nan]]]))
    assert more.n_sites_ == fitted.n_sites_ == int((~np.isnan(Y)).any(axis=1).sum())
    assert_allclose(more.log_marginal_likelihood_value_, fitted.log_marginal_likelihood_value_)


def test_outputs_known_at_a_place_inform_the_others_there(data, fitted):
    x = np.array([[0.4, 0.6], [0.2, 0.9]])
    known = np.array([[2.0, np.nan], [np.nan, np.nan]])
    seen = Observations.from_table(data[0], fitted._scale.forward(data[1]))
    extra = Observations.from_table(x[:1], fitted._scale.forward(known[:1]))
    model = fitted.kernels_, fitted.weights_, fitted._noise
    shift = condition(seen.extended(extra), x, *model).mean - condition(seen, x, *model).mean
    told, untold = (
        fitted._believe(x, observed, with_cov=True, include_noise=False)
        for observed in (known, None)
    )
    assert_allclose((told.mean - untold.mean)[0, 0], shift[0, 0], rtol=0.1)
    assert_allclose(told.mean[0, 1], untold.mean[0, 1])  # nothing is known there
    plain, std = fitted.predict(x, return_std=True)
    informed, less = fitted.predict(x, return_std=True, observed=known)
    assert informed[0, 1] != plain[0, 1]
    assert less[0, 1] < std[0, 1]
    assert_allclose(less[1], std[1])


def test_what_waves_leave_out_is_uncertainty(data):
    with pytest.warns(UserWarning, match=r"functions leave out .* more than tolerance=0.001"):
        few = quick(kernel=Matern(0.2, "fixed", nu=1.5), tolerance=1e-3, n_functions=41).fit(*data)
    assert (few.left_out_ > 0.01).all()
    _, std = few.predict(data[0], return_std=True, include_noise=False)
    signal = few.coregionalization_.sum(axis=0)
    left = few._missing.diagonal() * few._scale.scale**2
    assert (std**2 > 0.999 * left).all()
    assert_allclose(few._missing.diagonal() / (signal + few._noise).diagonal(), few.left_out_)


def test_a_transform_is_undone(data):
    X, Y = data
    logs, plain = quick(transform="log").fit(X, np.exp(Y)), quick().fit(X, Y)
    assert_allclose(logs.predict(X), np.exp(plain.predict(X)), rtol=1e-6)
    assert_allclose(
        logs.predict_quantiles(X, [0.1, 0.9]),
        np.exp(plain.predict_quantiles(X, [0.1, 0.9])),
        rtol=1e-6,
    )
    mean, std = plain.predict(X, return_std=True)
    assert_allclose(plain.predict_exceedance(X, 1.0), norm.sf(1.0, mean, std), atol=1e-9)


def test_draws_are_of_the_belief(data, fitted):
    """500 draws: means within 5 standard errors, deviations within 20%."""
    x = data[0][:30]
    mean, std = fitted.predict(x, return_std=True)
    drawn = fitted.sample_y(x, 500, random_state=1)
    assert drawn.shape == (30, 2, 500)
    assert (np.abs(drawn.mean(axis=2) - mean) < 5 * std / np.sqrt(500)).all()
    assert_allclose(drawn.std(axis=2), std, rtol=0.2)
    signals = fitted.sample_y(x, 500, include_noise=False)
    assert (signals.std(axis=2) < drawn.std(axis=2)).all()
    near = np.array([[0.5, 0.5], [0.501, 0.5], [0.9, 0.1]])
    together = np.corrcoef(fitted.sample_y(near, 500, include_noise=False)[:, 0])
    assert together[0, 1] > 0.9 > abs(together[0, 2])
    with pytest.raises(ValueError, match="partial_fit"):
        fitted.sample_y(x, observed=np.zeros((30, 2)))


def test_frames_go_in_and_come_out(data):
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
    with pytest.raises(ValueError, match=re.escape("y has the outputs ['Cd'], and this model")):
        model.partial_fit(X, Y[["Cd"]])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(X[["north", "east"]], Y)


def test_one_output_may_be_a_column(data):
    X, Y = data
    read = ~np.isnan(Y[:, 0])
    model = quick().fit(X[read], Y[read, 0])
    assert model.predict(X).shape == (400,)
    assert model.noise_.shape == (1,)
    assert model.sample_y(X[:4], 3).shape == (4, 3)


@pytest.mark.parametrize(("noise", "shape"), [("correlated", (2, 2)), ("independent", (2,))])
def test_noise_may_be_correlated(noise, shape, data):
    assert quick(noise=noise).fit(*data).noise_.shape == shape


def test_an_output_of_one_value_is_predicted_everywhere(data):
    X, Y = data
    with pytest.warns(UserWarning, match="has one value only"):
        model = quick().fit(X, np.column_stack([Y[:, 0], np.full(400, 5.0)]))
    assert_allclose(model.predict(X)[:, 1], 5.0)
    with pytest.warns(UserWarning, match="has one value only"):
        alone = quick().fit(X, np.full(400, 5.0))
    assert_allclose(alone.predict(X), 5.0)


def test_an_output_that_was_hardly_read_is_in_the_sample(rng):
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


def test_maps_are_drawn_around_the_box(data):
    pytest.importorskip("xarray")
    model = quick(crs="EPSG:32632").fit(*data)
    grid = model.predict_grid(shape=(4, 5), quantiles=[0.1])
    assert grid["output_0"].shape == (4, 5)
    corner = np.array([[grid["x"].values[0], grid["y"].values[0]]])
    assert_allclose(grid["output_0"].values[0, 0], model.predict(corner)[0, 0])
    assert_allclose(corner[0], model.box_[0])
    assert str(model.n_sites_) in grid.attrs["source"]


def test_the_sphere_is_three_inputs(rng):
    pytest.importorskip("pyproj")
    lon, lat = rng.uniform(-180, 180, 600), np.degrees(np.arcsin(rng.uniform(-1, 1, 600)))
    y = np.sin(np.radians(lat)) + np.cos(np.radians(lat)) * np.cos(np.radians(lon))
    y += 0.1 * rng.normal(size=600)
    model = quick(crs="EPSG:4326", n_functions=201).fit(np.column_stack([lon, lat]), y)
    west, east = model.predict([[179.999, 10.0], [-179.999, 10.0]])
    assert abs(west - east) < 0.01
    with pytest.raises(ValueError, match=r"give bounds=\(west"):
        model.predict_grid(10.0)
    assert model.predict_grid(shape=(3, 4), bounds=(-40, -20, 40, 20))["output_0"].shape == (3, 4)


def test_bounds_of_the_truth_are_those_of_the_benchmark():
    truth = Truth(np.random.default_rng(0))
    X, Y = truth.chunk(4000, np.random.default_rng(1))
    left = Y - truth.signals(X)
    complete = left[~np.isnan(left).any(axis=1)]
    assert_allclose(np.cov(complete.T), NOISE, atol=0.02)
