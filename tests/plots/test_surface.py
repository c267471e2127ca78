"""Nodes at which figures show predictions: given ones, and grids that span the sites."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr.plots.surface import Locations, colour_scale, nodes_spanning

from .conftest import fit_arrays


def test_a_grid_lies_inside_the_convex_hull_of_the_sites():
    sites = pd.DataFrame({"E": [0.0, 4.0, 0.0], "N": [0.0, 0.0, 2.0]})
    grid = nodes_spanning(sites)
    assert (grid["E"] / 4 + grid["N"] / 2 <= 1 + 1e-9).all()
    assert len(grid) == pytest.approx(20 * 10 / 2, rel=0.15)


def test_sites_on_one_line_have_a_grid_around_them():
    sites = pd.DataFrame({"E": [0.0, 4.0, 0.0], "N": [1.0, 1.0, 1.0]})
    assert nodes_spanning(sites)["N"].agg(["min", "max"]).tolist() == [0.5, 1.5]


def test_a_hull_between_the_nodes_has_the_whole_grid():
    sites = pd.DataFrame({"E": [0.0, 1.0, 0.5], "N": [0.0, 1.0, 0.5 + 1e-7]})
    assert len(nodes_spanning(sites, 4)) in (4, 16)


def test_longitude_is_the_horizontal_axis(channels):
    locations = Locations.build(channels)
    assert list(locations.nodes.columns) == ["lat", "lon"]
    assert locations.axes == ["lon", "lat"]


def test_nodes_of_a_line_are_sorted(core):
    locations = Locations.build(core, [[3.0], [1.0], [2.0]])
    assert locations.nodes["depth"].tolist() == [1.0, 2.0, 3.0]
    assert_allclose(locations.X, [[1.0], [2.0], [3.0]])


def test_nodes_may_have_more_columns_or_be_an_array(metals):
    nodes = pd.DataFrame({"Rock": "chalk", "Yloc": [1.0, 2.0], "Xloc": [3.0, 4.0]})
    for given in (nodes, nodes[["Xloc", "Yloc"]].to_numpy()):
        assert_allclose(Locations.build(metals, given).X, [[3.0, 1.0], [4.0, 2.0]])
    with pytest.raises(ValueError, match="nodes has 3 columns; expected 2"):
        Locations.build(metals, np.zeros((4, 3)))


def test_values_are_arranged_on_the_grid_with_nan_in_its_holes(metals):
    nodes = [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [1.0, 7.0], [3.0, 7.0]]
    x, y, table = Locations.build(metals, nodes).mesh(np.arange(5.0))
    assert (x.tolist(), y.tolist()) == ([1, 2, 3], [5, 7])
    assert_allclose(table, [[0, 1, 2], [3, np.nan, 4]])


def test_nodes_off_a_regular_grid_are_refused(metals):
    nodes = [[1.0, 5.0], [2.0, 5.0], [3.03, 5.0], [1.0, 7.0]]
    with pytest.raises(ValueError, match=r"regular grid.*steps along a coordinate differ"):
        Locations.build(metals, nodes).mesh(np.zeros(4))


def test_three_inputs_are_refused():
    with pytest.raises(ValueError, match=r"3 inputs \(x0, x1, x2\); only models with 1 .* or 2"):
        Locations.build(fit_arrays(P=3))


@pytest.mark.parametrize("log", [False, True])
def test_the_scale_of_a_constant_has_a_width(log):
    scale = colour_scale(np.full(5, 3.0), (0.02, 0.98), log)
    assert scale.vmin < 3.0 < scale.vmax
