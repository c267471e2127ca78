"""Lazy predictions at locations that Dask or xarray hold."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from emgpr import IndependentGP, observations
from emgpr import load as load_model
from tests.sameness import assert_same

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
xarray = pytest.importorskip("xarray")

from tests.lazy_tables import (  # noqa: E402  (it imports Dask)
    LOCATIONS,
    METALS,
    SITES,
    X,
    Y,
    as_array,
    as_data_array,
    as_dataset,
    as_frame,
    as_unknown,
    estimator,
    fail,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def model():
    return estimator().fit(SITES, METALS)


@pytest.fixture(scope="module")
def unnamed():
    """A model that was fitted to arrays."""
    return estimator().fit(X, Y)


PREDICTIONS = {
    "median": lambda m, X: (m.predict(X),),
    "std": lambda m, X: m.predict(X, return_std=True, statistic="mean"),
    "cov": lambda m, X: m.predict(X, return_cov=True, include_noise=False),
    "a quantile": lambda m, X: (m.predict_quantiles(X, 0.3),),
    "quantiles": lambda m, X: (m.predict_quantiles(X, [0.1, 0.5, 0.9]),),
    "exceedance": lambda m, X: (m.predict_exceedance(X, [0.0, 500.0, -1.0][: m.n_outputs_]),),
}


@pytest.mark.parametrize("name", PREDICTIONS)
@pytest.mark.parametrize("kind", [as_frame, as_array])
def test_lazy_predictions_equal_those_in_memory(kind, name, model, unnamed):
    own = model if kind is as_frame else unnamed
    locations = LOCATIONS if kind is as_frame else LOCATIONS.to_numpy()
    lazy = PREDICTIONS[name](own, kind(LOCATIONS))
    for values, expected in zip(lazy, PREDICTIONS[name](own, locations), strict=True):
        assert isinstance(values, da.Array)
        assert values.ndim == expected.ndim
        assert values.dtype == expected.dtype
        computed = values.compute()
        assert computed.shape == expected.shape
        assert_allclose(computed, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [as_unknown, as_data_array, as_dataset])
def test_other_tables_are_predicted_at(kind, model, unnamed):
    own = unnamed if kind is as_unknown else model
    assert_allclose(own.predict(kind(LOCATIONS)).compute(), model.predict(LOCATIONS), rtol=1e-12)


def test_predictions_of_a_one_dimensional_output_are_one_dimensional():
    one = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS["Zn"])
    for predict in PREDICTIONS.values():
        lazy, expected = predict(one, as_frame(LOCATIONS)), predict(one, LOCATIONS)
        for values, others in zip(lazy, expected, strict=True):
            assert_allclose(values.compute(), others, rtol=1e-9)


def test_a_frame_keeps_index_divisions_and_names(model):
    divided = dd.from_pandas(LOCATIONS, npartitions=3)
    lazy = model.predict_frame(divided)
    assert lazy.divisions == divided.divisions
    assert list(lazy.columns) == ["Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    pd.testing.assert_frame_equal(lazy.compute(), model.predict_frame(LOCATIONS))


@pytest.mark.parametrize("kind", [as_array, as_unknown])
def test_the_rows_of_a_frame_of_an_array_are_numbered(kind, unnamed):
    lazy = unnamed.predict_frame(kind(LOCATIONS), include_noise=False).compute()
    expected = unnamed.predict_frame(LOCATIONS.to_numpy(), include_noise=False)
    if kind is as_unknown:  # each block from 0
        lazy = lazy.reset_index(drop=True)
    pd.testing.assert_frame_equal(lazy, expected)


def test_nothing_is_computed_before_it_is_requested(unnamed):
    locations = as_array(LOCATIONS).map_blocks(fail, meta=np.empty((0, 0)))
    for predict in PREDICTIONS.values():
        for values in predict(unnamed, locations):
            with pytest.raises(AssertionError, match="was computed"):
                values.compute()
    frame = unnamed.predict_frame(locations)
    with pytest.raises(AssertionError, match="was computed"):
        frame.compute()


def test_blocks_without_rows_stay_empty(model):
    ordered = LOCATIONS.sort_values("east")
    some = as_frame(ordered)
    some = some[some["east"] > 0.7]  # only one of three partitions has rows
    expected = model.predict_frame(ordered[ordered["east"] > 0.7])
    pd.testing.assert_frame_equal(model.predict_frame(some).compute(), expected)
    assert_allclose(model.predict(some).compute(), expected[["Cd", "Ni", "Zn"]], rtol=1e-12)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_errors_in_a_block_say_where_its_rows_start(kind, model):
    odd = LOCATIONS.astype("Float64")
    odd.iloc[70, 1] = pd.NA
    lazy = dd.from_pandas(odd, npartitions=3)
    predict = model.predict if kind == "array" else model.predict_frame
    with pytest.raises(ValueError, match=r"NaN: input column 'north', row 10") as caught:
        predict(lazy).compute()
    assert caught.value.__notes__ == ["Row 0 is the first row of block 2 of the locations."]


def test_invalid_requests_are_rejected_at_once(model):
    locations = as_frame(LOCATIONS)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(as_frame(LOCATIONS.rename(columns={"east": "west"})))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_frame(as_frame(LOCATIONS[["north"]]))
    with pytest.raises(ValueError, match="3 features"), pytest.warns(UserWarning, match="names"):
        model.predict(da.zeros((5, 3)))
    with pytest.raises(ValueError, match="2D array"), pytest.warns(UserWarning, match="names"):
        model.predict(da.zeros(5))
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_quantiles(locations, [0.5, 2.0])
    with pytest.raises(ValueError, match="3: one for each"):
        model.predict_exceedance(locations, [1.0, 2.0])
    for predict in (model.predict, model.predict_frame):
        with pytest.raises(ValueError, match="would not be used in the others"):
            predict(locations, observed=METALS[:1])


def test_a_missing_package_is_named_with_its_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(ImportError, match=r"pip install 'emgpr\[dask\]'"):
        model.predict_frame(as_data_array(LOCATIONS))


def test_lazy_observed_outputs_are_brought_to_locations_in_memory(model):
    observed = pd.DataFrame({"Zn": np.full(90, -1.0)}, index=LOCATIONS.index)
    lazy = model.predict(LOCATIONS, observed=as_frame(observed))
    assert_array_equal(lazy, model.predict(LOCATIONS, observed=observed))


def test_a_lazy_prediction_does_not_change_if_the_model_is_fitted_again(unnamed):
    own = pickle.loads(pickle.dumps(unnamed))
    expected, lazy = own.predict(LOCATIONS.to_numpy()), own.predict(as_array(LOCATIONS))
    own.fit(X, -Y)
    assert_allclose(lazy.compute(), expected, rtol=1e-12)


def test_the_model_is_one_node_of_the_graph(model):
    (whole,) = dask.optimize(model.predict(as_frame(LOCATIONS)))
    nodes = [key for key in whole.__dask_graph__() if str(key).startswith("model-")]
    assert len(nodes) == 1


def test_zarr_arrays_store_predictions(model, tmp_path):
    zarr = pytest.importorskip("zarr")
    table = as_data_array(LOCATIONS)
    files = [
        zarr.open_array(str(tmp_path / name), mode="w", shape=(90, 3), chunks=(25, 3), dtype="f8")
        for name in ("median", "std")
    ]
    da.store(model.predict(table, return_std=True), files)
    for stored, expected in zip(files, model.predict(LOCATIONS, return_std=True), strict=True):
        assert_allclose(stored[:], expected, rtol=1e-12)


@pytest.fixture
def trees(monkeypatch):
    """The k-d trees that were built."""
    built, kd_tree = [], observations.kd_tree

    def build(points):
        built.append(points)
        return kd_tree(points)

    monkeypatch.setattr(observations, "kd_tree", build)
    return built


def test_trees_are_built_once_for_all_blocks_and_threads(trees):
    complete = estimator().fit(X, np.where(np.isnan(Y), 0.0, Y))
    locations = da.from_array(LOCATIONS.to_numpy(), chunks=(10, 2))
    for scheduler in ("synchronous", "threads"):
        own = pickle.loads(pickle.dumps(complete))
        trees.clear()
        with dask.config.set(scheduler=scheduler):
            own.predict(locations).compute()
            own.predict(locations).compute()
        assert len(trees) == 1


def test_trees_are_not_in_pickles_files_or_clones(model, tmp_path, trees):
    own = pickle.loads(pickle.dumps(model))
    expected = own.predict(LOCATIONS)
    own.save(tmp_path / "model.emgpr")
    n_trees = len(trees)
    for other in (pickle.loads(pickle.dumps(own)), load_model(tmp_path / "model.emgpr")):
        assert_same(other.posterior_.observations, own.posterior_.observations)
        assert_array_equal(other.predict(LOCATIONS), expected)
    assert len(trees) == 3 * n_trees
    assert_array_equal(clone(own).fit(SITES, METALS).predict(LOCATIONS), expected)
