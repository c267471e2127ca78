"""Tables of other libraries as NumPy arrays or pandas frames."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from emgpr.inputs import as_table, is_lazy
from emgpr.inputs.convert import as_tables, check_stray_coordinates, dataset_columns, is_xarray

VALUES = np.array([[1.0, np.nan], [3.0, 4.0]])


class ArrayLike:
    """An object that NumPy can convert, and that has no methods of an array."""

    def __array__(self, dtype=None, copy=None):
        return VALUES.astype(dtype or float)

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"{func.__name__} was called before the conversion")


@pytest.mark.parametrize(
    "table",
    [
        VALUES,
        VALUES.tolist(),
        np.ma.masked_invalid(VALUES),
        [np.ma.masked_invalid(row) for row in VALUES],
        [[1.0, pd.NA], [3.0, 4.0]],
        [[1.0, np.ma.masked], [3.0, 4.0]],
        np.array([[1.0, None], [3.0, 4.0]], dtype=object),
        pd.DataFrame(VALUES, dtype=object).where(~np.isnan(VALUES), pd.NA),
        pd.DataFrame(VALUES).astype(pd.SparseDtype(float)),
        ArrayLike(),
    ],
    ids=lambda table: type(table).__name__,
)
def test_missing_values_of_every_kind_of_table_become_nan(table):
    converted = as_table(table)
    assert isinstance(converted, np.ndarray | pd.DataFrame | list)
    assert_array_equal(np.asarray(converted, dtype=float), VALUES)


def test_a_fill_value_beneath_a_mask_is_not_taken_for_a_reading():
    masked = np.ma.masked_equal([[1.0, -9999.0]], -9999.0)
    assert_array_equal(as_table(masked), [[1.0, np.nan]])


def test_the_name_of_a_series_is_kept():
    assert as_table(pd.Series([1.0, None], dtype=object, name="Zn")).name == "Zn"


def test_rows_of_different_lengths_are_left_to_the_validation():
    ragged = [[1.0, 2.0], [3.0]]
    assert as_table(ragged) is ragged


def test_xarray_tables_become_frames():
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset(
        {"Cd": ("site", [1.0, 2.0]), "Zn": ("site", [3.0, 4.0])}, coords={"site": ["a", "b"]}
    )
    assert is_xarray(data)
    frame = as_table(data)
    assert frame.index.tolist() == ["a", "b"]
    assert_array_equal(frame[["Cd", "Zn"]], [[1.0, 3.0], [2.0, 4.0]])
    column = as_table(data["Cd"])
    assert isinstance(column, pd.Series)
    assert column.name == "Cd"
    plain = xarray.DataArray(VALUES, dims=("site", "output"))
    assert_array_equal(as_table(plain), VALUES)
    named = as_table(plain.assign_coords(output=["Cd", "Zn"]))
    assert list(named) == ["Cd", "Zn"]


def test_a_dataset_of_several_dimensions_is_refused():
    xarray = pytest.importorskip("xarray")
    grid = xarray.Dataset({"Cd": (("y", "x"), VALUES)})
    with pytest.raises(ValueError, match=r"dimensions \[\['y', 'x'\]\].*Reshape the Dataset"):
        dataset_columns(grid)


def test_coordinates_that_may_be_meant_as_inputs_are_refused():
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset(
        {"depth": ("site", [1.0, 2.0])}, coords={"lon": ("site", [7.0, 8.0]), "site": [0, 1]}
    )
    with pytest.raises(ValueError, match=r"coordinates \['lon'\] besides .*X.reset_coords\(\)"):
        as_tables(data, [1.0, 2.0])
    check_stray_coordinates(data.drop_vars("lon"))
    check_stray_coordinates(pd.DataFrame(VALUES))


def test_dask_tables_are_lazy():
    dask = pytest.importorskip("dask.array")
    table = dask.from_array(VALUES, chunks=1)
    assert is_lazy(table)
    assert not is_lazy(VALUES)
    assert_array_equal(as_table(table), VALUES)
