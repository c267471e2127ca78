"""Training tables: the sites where anything was measured."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from emgpr.inputs import read_training_table

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(18.0).reshape(6, 3) ** 0.5


def read(X=X, y=Y, **options):
    return read_training_table(X, y, estimator="EMGPR", **options)


def test_rows_without_readings_are_left_out_and_counted():
    gaps = Y.copy()
    gaps[2] = np.nan
    gaps[4, 1] = np.nan
    table = read(y=gaps)
    rows = [0, 1, 3, 4, 5]
    assert_array_equal(table.inputs.rows, rows)
    assert_array_equal(table.x, X[rows])
    assert_array_equal(table.Y, gaps[rows])
    assert table.n_rows == 6
    assert [str(warning)[:20] for warning in table.warnings] == ["Nothing was measured"]
    with pytest.warns(UserWarning, match="Nothing was measured in 1 of 6 rows"):
        table.warn()


def test_names_and_index_of_frames_are_kept():
    sites = pd.DataFrame(X, columns=["east", "north"], index=list("abcdef"))
    table = read(sites, pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"]))
    assert table.inputs.feature_names == ("east", "north")
    assert table.inputs.index.tolist() == list("abcdef")
    assert table.output_names == ("Cd", "Ni", "Zn")
    assert not table.one_dimensional
    assert read(y=Y[:, 0]).one_dimensional


def test_other_tables_are_converted():
    for convert in (np.ndarray.tolist, lambda a: pd.DataFrame(a).astype("Float64")):
        table = read(convert(X), convert(Y))
        assert_array_equal(table.x, X)
        assert_array_equal(table.Y, Y)


def test_an_output_without_readings_is_refused():
    gaps = Y.copy()
    gaps[:, 1] = np.nan
    with pytest.raises(ValueError, match="Output '1' was never measured: all 6 of its values"):
        read(y=gaps)


def test_degrees_become_points_on_the_sphere():
    pytest.importorskip("pyproj")
    table = read(pd.DataFrame(X, columns=["lon", "lat"]), crs="EPSG:4326")
    assert table.x.shape == (6, 3)
    assert table.warnings == ()
    flat = read(pd.DataFrame(X, columns=["lon", "lat"]))
    assert [warning.kind for warning in flat.warnings] == ["degrees"]
