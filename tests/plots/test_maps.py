"""Maps and lines: the axes that are returned and what is on them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import LogNorm
from numpy.testing import assert_allclose

from emgpr.plots import maps
from emgpr.plots.surface import Locations

from .conftest import fit_arrays

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes():
    """A grid of 5 × 4 nodes, one of them missing."""
    x, y = (part.ravel() for part in np.meshgrid(2 + 0.5 * np.arange(5), 1 + 0.5 * np.arange(4)))
    return pd.DataFrame({"Xloc": x, "Yloc": y}).drop(index=7).reset_index(drop=True)


def test_each_output_has_a_column_with_its_standard_deviation_below(metals, nodes):
    units = {"Cd": "mg/kg", "Ni": "mg/kg", "Xloc": "km", "Yloc": "km"}
    axes = maps(metals, nodes, outputs=["Cd", "Ni"], units=units)
    assert [ax.get_title() for ax in axes.flat] == [
        "Cd: predicted median", "Ni: predicted median",
        "Cd: standard deviation", "Ni: standard deviation",
    ]  # fmt: skip
    assert axes.shape == (2, 2)
    assert (axes[1, 1].get_xlabel(), axes[0, 0].get_ylabel()) == ("Xloc (km)", "Yloc (km)")
    assert (axes[0, 0].get_xlabel(), axes[0, 1].get_ylabel()) == ("", "")
    bars = [ax for ax in axes[0, 0].figure.axes if ax not in axes]
    assert [bar.get_title() for bar in bars] == ["mg/kg"] * 4
    assert axes[0, 0].get_aspect() == 1


def test_values_are_drawn_at_their_nodes_and_a_hole_stays_empty(metals, nodes):
    axes = maps(metals, nodes)
    median, std = metals.predict(nodes, return_std=True)
    for row, values in zip(axes, (median, std), strict=True):
        table = row[0].collections[0].get_array()
        assert table.shape == (4, 5)
        assert np.ma.getmaskarray(table).nonzero() == (1, 2)
        assert_allclose(table.compressed(), values[:, 0])


def test_readings_have_the_colours_of_the_map_and_missing_ones_are_not_drawn(metals, nodes):
    mesh, points = maps(metals, nodes)[0, 0].collections[:2]
    X, Y = metals.training_data()
    observed = Y["Cd"].notna()
    assert 0 < observed.sum() < len(Y)
    assert_allclose(points.get_offsets(), X[observed])
    assert_allclose(points.get_array(), Y["Cd"][observed])
    assert (points.norm.vmin, points.norm.vmax) == (mesh.norm.vmin, mesh.norm.vmax)
    assert points.get_cmap() == mesh.get_cmap()
    assert isinstance(mesh.norm, LogNorm)  # the model has a log transform


def test_sites_are_drawn_with_longitude_to_the_right(channels):
    axes = maps(channels, outputs="ch05")
    X, Y = channels.training_data()
    observed = Y["ch05"].notna()
    assert (axes[1, 0].get_xlabel(), axes[0, 0].get_ylabel()) == ("lon", "lat")
    assert_allclose(axes[0, 0].collections[1].get_offsets(), X.loc[observed, ["lon", "lat"]])


def test_many_outputs_are_drawn_in_bands_of_two_rows(channels):
    axes = maps(channels, channels.training_data()[0].head(1), outputs=channels.output_names_[:7])
    assert axes.shape == (2, 7)
    rows = [[ax.get_subplotspec().rowspan.start for ax in row] for row in axes]
    assert rows == [[0, 0, 0, 0, 2, 2, 2], [1, 1, 1, 1, 3, 3, 3]]
    has_label = [bool(ax.get_xlabel()) for ax in axes[1]]
    assert has_label == [False, False, False, True, True, True, True]


def test_means_and_signals_are_drawn_on_request(cadmium):
    nodes = Locations.build(cadmium).nodes
    axes = maps(cadmium, nodes, statistic="mean", include_noise=False)
    assert axes[0, 0].get_title() == "Cd: predicted mean"
    assert not isinstance(axes[0, 0].collections[0].norm, LogNorm)
    _, std = cadmium.predict(nodes, return_std=True, include_noise=False)
    assert_allclose(axes[1, 0].collections[0].get_array().compressed(), std)


def test_one_input_gives_lines_with_intervals_and_readings(core):
    axes = maps(core, units={"depth": "m", "iron": "g/kg"})
    assert axes.shape == (1, 2)
    clay, iron = axes[0]
    assert (iron.get_title(), iron.get_ylabel()) == ("iron: median and 95% interval", "iron (g/kg)")
    assert iron.get_xlabel() == "depth (m)"
    assert (clay.get_yscale(), iron.get_yscale()) == ("linear", "log")
    line, points = iron.get_lines()
    _, Y = core.training_data()
    assert_allclose(points.get_ydata(), Y["iron"])
    nodes = pd.DataFrame({"depth": line.get_xdata()})
    assert_allclose(line.get_ydata(), core.predict(nodes)[:, 1])
    low, high = core.predict_quantiles(nodes, [0.025, 0.975])
    edge = iron.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose([edge.min(), edge.max()], [low[:, 1].min(), high[:, 1].max()])


def test_given_axes_are_used(metals, nodes):
    _, axes = plt.subplots(2, 3)
    assert (maps(metals, nodes, axes=axes) == axes).all()
    assert len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match="axes contains 6 axes; expected 4"):
        maps(metals, nodes, outputs=["Cd", "Zn"], axes=axes)


@pytest.mark.parametrize("P", [1, 2])
def test_a_model_fitted_to_arrays_is_drawn_without_warnings(P):
    axes = maps(fit_arrays(P))
    assert axes[-1, 0].get_xlabel() == "x0"


@pytest.mark.parametrize(
    ("outputs", "says"),
    [(["Au"], "outputs contains 'Au', which is not .*Cd, Ni, Zn"), ([], "outputs is empty")],
)
def test_outputs_that_the_model_does_not_have_are_refused(metals, outputs, says):
    with pytest.raises(ValueError, match=says):
        maps(metals, outputs=outputs)


@pytest.mark.parametrize("resolution", [0, 11, 1001])
def test_a_resolution_out_of_range_is_refused(metals, resolution):
    with pytest.raises(ValueError, match=f"resolution={resolution}; expected a number of nodes"):
        maps(metals, resolution=resolution)


def test_the_resolution_of_a_line(core):
    for resolution, n in ((None, 200), (30, 30)):
        line = maps(core, resolution=resolution)[0, 0].lines[0]
        assert len(line.get_xdata()) == n
