"""Regular grids: positions around data and within bounds, also across the date line."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.geo import regular_grid
from emgpr.geo.grids import unwrap_longitudes

ORIGIN = np.zeros(1), np.zeros(1)


def test_longitudes_are_cut_at_their_widest_gap(rng):
    lon = rng.uniform(170, 190, 30)
    assert_allclose(unwrap_longitudes((lon + 180) % 360 - 180), lon, atol=1e-8)
    assert unwrap_longitudes(np.array([5.0])).tolist() == [5.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either spacing"),
        ({"spacing": 1, "shape": (2, 2)}, "either spacing"),
        ({"spacing": 0}, "positive number"),
        ({"spacing": (1, 1, 1)}, "positive number, or two"),
        ({"spacing": 1e-9}, r"cells; expected at most"),
        ({"shape": (10**5, 10**5)}, r"cells; expected at most"),
        ({"shape": (2,)}, r"two whole numbers: \(rows, columns\)"),
        ({"shape": (0, 4)}, "two whole numbers"),
        ({"spacing": 1, "bounds": (1, 2, 3)}, r"four numbers: \(west, south, east, north\)"),
        ({"spacing": 1, "bounds": (5, 0, 1, 1)}, "contain no cell"),
    ],
)
def test_impossible_grids_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        regular_grid(np.array([0.0, 1.0]), np.array([0.0, 1.0]), **options)


def test_bounds_may_cross_the_date_line_and_latitudes_end_at_the_pole():
    grid = regular_grid(*ORIGIN, 5, bounds=(170, 80, -170, 95), degrees=True)
    assert grid.x.tolist() == [170, 175, 180, 185, 190]
    assert grid.y.tolist() == [80, 85, 90]


def test_a_grid_around_the_globe_has_each_meridian_once():
    grid = regular_grid(*ORIGIN, 90, bounds=(-180, -90, 180, 90), degrees=True)
    assert grid.x.tolist() == [-180, -90, 0, 90]


def test_rounding_does_not_lose_the_last_row():
    assert len(regular_grid(*ORIGIN, 0.1, bounds=(0, 0, 0.3, 0.7)).y) == 8
