"""Maps of chunked Datasets: lazy, equal to those in memory, and computed as they are written."""

import numpy as np
import pandas as pd
import pytest

from emgpr import EMGPR
from emgpr.io import read_map, write_map
from emgpr.mapping import MapVariables

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
xarray = pytest.importorskip("xarray")

RNG = np.random.default_rng(0)
ALL = {"quantiles": [0.1, 0.5, 0.9], "exceedance": {"rain": 1.0, "snow": 0.5}, "units": "mm"}


@pytest.fixture(scope="module", autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def model():
    X = pd.DataFrame(RNG.uniform(0, 3, (60, 3)), columns=["time", "x", "height"])
    f = np.sin(X["x"]) + X["height"] + np.cos(X["time"])
    Y = pd.DataFrame({"rain": f, "snow": f - X["height"]}) + 0.1 * RNG.normal(size=(60, 2))
    return EMGPR.paper(conditioning=6, batch_size=20, random_state=0).fit(X, Y)


@pytest.fixture
def terrain():
    """Heights along (y, x) in chunks of several lengths, with a hole; coordinates in memory."""
    height = RNG.uniform(0, 3, (7, 5))
    height[2, 3] = np.nan
    return xarray.Dataset(
        {"height": (("y", "x"), da.from_array(height, chunks=(3, 2)))},
        coords={"x": np.linspace(0, 3, 5), "time": [0.0, 1.0], "row": ("y", np.arange(7))},
    )


CASES = [({}, "float64"), (ALL, "float64"), (ALL, "float32")]


@pytest.mark.parametrize(("options", "dtype"), CASES)
def test_a_lazy_map_equals_that_in_memory(model, terrain, options, dtype):
    lazy = model.predict_dataset(terrain, dtype=dtype, **options)
    expected = model.predict_dataset(terrain.compute(), dtype=dtype, **options)
    assert all(isinstance(lazy[name].data, da.Array) for name in expected.data_vars)
    assert dict(lazy.chunksizes) | {"y": (3, 3, 1), "x": (2, 2, 1)} == dict(lazy.chunksizes)
    del lazy.attrs["history"], expected.attrs["history"]  # the time of the call
    xarray.testing.assert_identical(lazy.compute(), expected)
    for name in expected.variables:
        assert str(lazy[name].encoding) == str(expected[name].encoding)  # NaN does not equal NaN


def test_inputs_may_be_scalars_and_any_chunked_variable_sets_the_chunks(model):
    flat = xarray.Dataset(
        {"cut": (("y", "x"), da.zeros((4, 6), chunks=(2, 3)))},
        coords={"x": np.linspace(0, 3, 6), "height": ("y", np.linspace(0, 2, 4)), "time": 1.5},
    )
    lazy = model.predict_dataset(flat)
    assert lazy.chunksizes["x"] == (3, 3)
    xarray.testing.assert_allclose(lazy.compute(), model.predict_dataset(flat.compute()))


def test_nothing_is_computed_before_the_map_is(model, terrain):
    def fail(block):
        raise AssertionError("this was computed")

    failing = terrain.copy()
    height = failing["height"]
    failing["height"] = height.copy(data=height.data.map_blocks(fail, dtype=float))
    lazy = model.predict_dataset(failing, **ALL)
    with pytest.raises(AssertionError, match="was computed"):
        lazy.compute()


def test_each_block_is_predicted_once_for_all_variables(model, terrain, monkeypatch):
    sizes, cells = [], MapVariables.cells

    def count(self, locations, inside=None):
        sizes.append(len(locations))
        return cells(self, locations, inside)

    monkeypatch.setattr(MapVariables, "cells", count)
    model.predict_dataset(terrain, **ALL).compute()
    assert sorted(sizes) == sorted(2 * y * x for y in (3, 3, 1) for x in (2, 2, 1))


def test_a_lazy_map_is_written_to_zarr(model, terrain, tmp_path):
    pytest.importorskip("zarr")
    lazy = model.predict_dataset(terrain.chunk(x=2, y=3), **ALL)
    lazy.to_zarr(tmp_path / "map.zarr", consolidated=False)
    with xarray.open_zarr(tmp_path / "map.zarr", consolidated=False) as stored:
        xarray.testing.assert_allclose(stored.compute(), lazy.compute())
        assert stored["rain"].attrs == lazy["rain"].attrs


def test_a_lazy_map_is_written_to_netcdf(model, terrain, tmp_path):
    pytest.importorskip("h5netcdf")
    lazy = model.predict_dataset(terrain, **ALL)
    write_map(lazy, tmp_path / "map.nc")
    xarray.testing.assert_allclose(read_map(tmp_path / "map.nc"), lazy.compute())
