"""Tables that Dask or xarray hold are brought into memory to fit a model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.inputs import convert

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
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


@pytest.fixture(scope="module", autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def model():
    return estimator().fit(SITES, METALS)


@pytest.mark.parametrize("kind", [as_array, as_unknown, as_frame, as_data_array, as_dataset])
def test_a_fit_equals_that_of_the_same_table_in_memory(kind, model):
    lazy = estimator().fit(kind(SITES), kind(METALS))
    assert_array_equal(lazy.weights_, model.weights_)
    assert_array_equal(lazy.posterior_.observations.x, X)
    if kind not in (as_array, as_unknown):
        assert_array_equal(lazy.feature_names_in_, model.feature_names_in_)
        assert lazy.output_names_ == model.output_names_


def test_the_index_of_a_frame_and_the_name_of_a_series_are_kept():
    lazy = estimator().fit(as_frame(SITES), as_frame(METALS)["Zn"])
    assert list(lazy.input_spec_.index) == list(SITES.index)
    assert lazy.output_names_ == ["Zn"]
    assert lazy.predict(LOCATIONS).shape == (90,)


def test_inputs_and_outputs_of_one_table_are_computed_together():
    lengths = []

    def read(block):
        lengths.append(len(block))
        return block

    whole = da.from_array(np.hstack([X, Y]), chunks=(20, 5)).map_blocks(read, dtype=float, meta=X)
    estimator().fit(whole[:, :2], whole[:, 2:])
    assert lengths == [20, 20]


@pytest.mark.parametrize("kind", [as_frame, as_array, as_unknown, as_dataset])
def test_tables_larger_than_memory_are_rejected_with_their_size(kind, monkeypatch):
    monkeypatch.setattr(convert, "free_memory", lambda: 40 * (2 + 3) * 16 - 1.0)
    with pytest.raises(MemoryError, match=r"200 values.*8·N·\(P \+ D\) bytes"):
        convert.as_tables(kind(SITES), kind(METALS))
    monkeypatch.setattr(convert, "free_memory", lambda: 40 * (2 + 3) * 16.0)
    inputs, outputs = convert.as_tables(kind(SITES), kind(METALS))
    assert_array_equal(np.asarray(inputs), X)
    assert_array_equal(np.asarray(outputs), Y)


def test_too_large_an_array_is_rejected_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(convert, "free_memory", lambda: 1e9)
    huge = da.zeros((10**9, 2), chunks=(10**6, 2)).map_blocks(fail, meta=np.empty((0, 0)))
    with pytest.raises(MemoryError, match=r"32\.0 GB"):
        estimator().fit(huge, huge)


def test_a_dataset_must_be_a_table():
    grid = xarray.Dataset({"a": (("y", "x"), np.zeros((2, 3)))})
    with pytest.raises(ValueError, match=r"\['y', 'x'\].*data.stack"):
        estimator().fit(grid, METALS)
    stray = as_dataset(SITES).set_coords("north")
    with pytest.raises(ValueError, match=r"coordinates \['north'\] beside.*X.reset_coords"):
        estimator().fit(stray, METALS)
    both = as_dataset(SITES).set_coords(["east", "north"])
    assert list(convert.as_table(both).columns) == ["east", "north"]


def test_scores_equal_those_in_memory(model):
    reordered = METALS[["Zn", "Cd", "Ni"]]
    assert_allclose(model.score(as_frame(SITES), as_frame(reordered)), model.score(SITES, METALS))
