"""Maps as files. That maps of predictions are kept is tested in tests/mapping."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from emgpr.io import read_map, write_map

xarray = pytest.importorskip("xarray")


def a_map(x=(0.0, 1.0, 2.0), y=(5.0, 4.0)):
    values = np.arange(float(len(x) * len(y))).reshape(len(y), len(x))
    return xarray.Dataset({"Cd": (("y", "x"), values)}, coords={"y": list(y), "x": list(x)})


def test_geotiff_is_north_up_whatever_the_order_of_rows_and_columns(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    transposed = a_map().transpose("x", "y")
    by_axis = transposed.rename(x="east", y="north")
    by_axis["east"].attrs["axis"], by_axis["north"].attrs["axis"] = "X", "Y"
    globe = transposed.rename(x="lon", y="lat")
    for data in (a_map(), a_map().isel(y=slice(None, None, -1)), transposed, by_axis, globe):
        write_map(data, tmp_path / "m.tif")
        with rasterio.open(tmp_path / "m.tif") as file:
            assert file.read(1).tolist() == [[0, 1, 2], [3, 4, 5]]
            assert (file.transform.c, file.transform.f) == (-0.5, 5.5)
            assert file.crs is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (a_map(x=(0.0, 1.0, 5.0)), "The steps along 'x' differ"),
        (a_map(y=(1.0,)), "one position along 'y'"),
        (xarray.Dataset({"t": ("x", [1.0])}), "no two-dimensional variable"),
    ],
)
def test_irregular_maps_are_not_written_as_geotiff(tmp_path, data, message):
    pytest.importorskip("rasterio")
    with pytest.raises(ValueError, match=message):
        write_map(data, tmp_path / "m.tif")
    assert not list(tmp_path.iterdir())


def test_maps_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(
        ValueError, match=r"from its ending; expected one of \.nc, \.nc4, \.zarr, \.tif"
    ):
        write_map(a_map(), tmp_path / "map.png")
    with pytest.raises(ValueError, match=r"from its ending; expected one of \.nc, \.nc4, \.zarr\."):
        read_map(tmp_path / "map.tif")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_map(tmp_path / "map.nc")
    (tmp_path / "map.nc").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"map\.nc cannot be read as NetCDF 4"):
        read_map(tmp_path / "map.nc")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(ImportError, match=r"GeoTIFF needs rasterio, .*pip install 'emgpr\[geo\]'"):
        write_map(a_map(), tmp_path / "m.tif")


def test_zarr_needs_two_extras(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"Zarr needs zarr, .*pip install 'emgpr\[geo,dask\]'"):
        write_map(a_map(), tmp_path / "m.zarr")


def test_a_lazy_map_is_not_begun_on_a_disk_that_is_too_small(tmp_path, monkeypatch):
    """Workers of a cluster write lazy maps, so errors in writing cannot be delayed."""
    pytest.importorskip("dask")
    write_map(a_map(), tmp_path / "m.nc")
    before = (tmp_path / "m.nc").read_bytes()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(OSError, match="No space left on device"):
        write_map(a_map().chunk(x=1), tmp_path / "m.nc")
    assert (tmp_path / "m.nc").read_bytes() == before
