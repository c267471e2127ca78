"""Maps of Datasets in chunks: lazy, as those in memory, and written as they are worked out."""

import numpy as np
import pandas as pd
import pytest

from emgpr import EMGPR
from emgpr.io import read_map, write_map

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
    """A height of (y, x) in chunks of several lengths, with a hole, and axes in memory."""
    height = RNG.uniform(0, 3, (7, 5))
    height[2, 3] = np.nan
    return xarray.Dataset(
        {"height": (("y", "x"), da.from_array(height, chunks=(3, 2)))},
        coords={"x": np.linspace(0, 3, 5), "time": [0.0, 1.0], "row": ("y", np.arange(7))},
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("asked", [{}, ALL], ids=["plain", "all"])
def test_a_map_in_chunks_is_the_map_in_memory(model, terrain, asked, dtype):
    lazy = model.predict_dataset(terrain, dtype=dtype, **asked)
    expected = model.predict_dataset(terrain.compute(), dtype=dtype, **asked)
    assert all(isinstance(lazy[name].data, da.Array) for name in expected.data_vars)
    assert dict(lazy.chunksizes) | {"y": (3, 3, 1), "x": (2, 2, 1)} == dict(lazy.chunksizes)
    del lazy.attrs["history"], expected.attrs["history"]  # the second in which it was asked
    xarray.testing.assert_identical(lazy.compute(), expected)
    for name in expected.variables:
        assert str(lazy[name].encoding) == str(expected[name].encoding)  # NaN is no NaN


def test_a_place_that_all_cells_share_and_other_variables_chunks_will_do(model):
    """Of axes alone, some variable in chunks says how the map is cut."""
    flat = xarray.Dataset(
        {"cut": (("y", "x"), da.zeros((4, 6), chunks=(2, 3)))},
        coords={"x": np.linspace(0, 3, 6), "height": ("y", np.linspace(0, 2, 4)), "time": 1.5},
    )
    lazy = model.predict_dataset(flat)
    assert lazy.chunksizes["x"] == (3, 3)
    expected = model.predict_dataset(flat.compute())
    xarray.testing.assert_allclose(lazy.compute(), expected)


def test_nothing_is_worked_out_before_the_map_is_written(model, terrain):
    def never(block):
        raise AssertionError("this was worked out")

    odd = terrain.copy()
    odd["height"] = odd["height"].copy(data=odd["height"].data.map_blocks(never, dtype=float))
    lazy = model.predict_dataset(odd, **ALL)
    with pytest.raises(AssertionError, match="worked out"):
        lazy.compute()


def test_each_block_is_predicted_once_for_all_variables(model, terrain, monkeypatch):
    asked, mapped = [], type(model)._mapped

    def count(self, places, *wanted):
        asked.append(len(places))
        return mapped(self, places, *wanted)

    monkeypatch.setattr(type(model), "_mapped", count)
    model.predict_dataset(terrain, **ALL).compute()
    assert sorted(asked) == sorted(2 * y * x for y in (3, 3, 1) for x in (2, 2, 1))


def test_zarr_holds_the_map(model, terrain, tmp_path):
    pytest.importorskip("zarr")
    lazy = model.predict_dataset(terrain.chunk(x=2, y=3), **ALL)
    lazy.to_zarr(tmp_path / "map.zarr", consolidated=False)
    with xarray.open_zarr(tmp_path / "map.zarr", consolidated=False) as stored:
        xarray.testing.assert_allclose(stored.compute(), lazy.compute())
        assert stored["rain"].attrs == lazy["rain"].attrs


def test_netcdf_holds_the_map(model, terrain, tmp_path):
    pytest.importorskip("h5netcdf")
    lazy = model.predict_dataset(terrain, **ALL)
    write_map(lazy, tmp_path / "map.nc")
    xarray.testing.assert_allclose(read_map(tmp_path / "map.nc"), lazy.compute())


def test_zarr_holds_predictions_of_a_table(model, tmp_path):
    zarr = pytest.importorskip("zarr")
    places = pd.DataFrame(RNG.uniform(0, 3, (50, 3)), columns=["time", "x", "height"])
    table = xarray.DataArray(places, dims=("place", "input")).chunk(place=20)
    told = model.predict(table, return_std=True)
    kept = [
        zarr.open_array(str(tmp_path / name), mode="w", shape=(50, 2), chunks=(20, 2), dtype="f8")
        for name in ("mean", "std")
    ]
    da.store(told, kept)
    for stored, expected in zip(kept, model.predict(places, return_std=True), strict=True):
        np.testing.assert_allclose(stored[:], expected, rtol=1e-12)
