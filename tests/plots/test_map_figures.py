"""Maps and lines: the axes that come back, what is on them, and grids with holes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import LogNorm
from numpy.testing import assert_allclose
from simulated import known_model, world

from emgpr.plots import maps
from emgpr.plots.surface import as_on_paper, places


@pytest.fixture
def nodes():
    """A grid of 5 × 4 nodes, one of them missing."""
    x, y = (part.ravel() for part in np.meshgrid(2 + 0.5 * np.arange(5), 1 + 0.5 * np.arange(4)))
    return pd.DataFrame({"Xloc": x, "Yloc": y}).drop(index=7).reset_index(drop=True)


def test_a_column_an_output_prediction_above_deviation_below(metals, nodes):
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


def test_values_stand_at_their_nodes_and_a_hole_stays_empty(metals, nodes):
    axes = maps(metals, nodes)
    median, std = metals.predict(nodes, return_std=True)
    for row, values in zip(axes, (median, std), strict=True):
        table = row[0].collections[0].get_array()
        assert table.shape == (4, 5)
        assert np.ma.getmaskarray(table).nonzero() == (1, 2)
        assert_allclose(table.compressed(), values[:, 0])


def test_readings_have_the_colour_of_their_value_and_missing_ones_none(metals, nodes):
    mesh, points = maps(metals, nodes)[0, 0].collections[:2]
    X, Y = metals.training_data()
    made = Y["Cd"].notna()
    assert 0 < made.sum() < len(Y)
    assert_allclose(points.get_offsets(), X[made])
    assert_allclose(points.get_array(), Y["Cd"][made])
    assert (points.norm.vmin, points.norm.vmax) == (mesh.norm.vmin, mesh.norm.vmax)
    assert points.get_cmap() == mesh.get_cmap()
    assert isinstance(mesh.norm, LogNorm)  # as the model works on logarithms


def test_a_model_as_it_is_has_even_colours(cadmium):
    assert not isinstance(maps(cadmium)[0, 0].collections[0].norm, LogNorm)


def test_means_and_signals_if_asked(cadmium):
    nodes = places(cadmium.training_data()[0], None)
    axes = maps(cadmium, nodes, statistic="mean", include_noise=False)
    assert axes[0, 0].get_title() == "Cd: predicted mean"
    _, std = cadmium.predict(nodes, return_std=True, include_noise=False)
    assert_allclose(axes[1, 0].collections[0].get_array().compressed(), std)


def test_without_nodes_it_is_a_grid_inside_the_outline_of_the_sites():
    sites = pd.DataFrame({"E": [0.0, 4.0, 0.0], "N": [0.0, 0.0, 2.0]})
    grid = places(sites, None)
    assert (grid["E"] / 4 + grid["N"] / 2 <= 1 + 1e-9).all()
    assert len(grid) == pytest.approx(20 * 10 / 2, rel=0.15)
    in_a_row = places(sites.assign(N=1.0), None)
    assert in_a_row["N"].agg(["min", "max"]).tolist() == [0.5, 1.5]


def test_longitude_goes_to_the_right(channels):
    axes = maps(channels, outputs=["ch03"])
    assert (axes[1, 0].get_xlabel(), axes[1, 0].get_ylabel()) == ("lon", "lat")
    X, _ = channels.training_data()
    made = X.iloc[:, ::-1][channels.training_data()[1]["ch03"].notna()]
    assert_allclose(axes[0, 0].collections[1].get_offsets(), made)
    assert as_on_paper(X).columns.tolist() == ["lon", "lat"]


def test_one_input_is_a_line_with_its_band_and_readings(core):
    axes = maps(core, units={"depth": "m", "iron": "g/kg"})
    assert axes.shape == (1, 2)
    clay, iron = axes[0]
    assert (iron.get_title(), iron.get_ylabel()) == ("iron: median and 95% band", "iron (g/kg)")
    assert iron.get_xlabel() == "depth (m)"
    assert (clay.get_yscale(), iron.get_yscale()) == ("linear", "log")
    line, points = iron.get_lines()
    _, Y = core.training_data()
    assert_allclose(points.get_ydata(), Y["iron"])
    x = line.get_xdata()[:, None]
    assert_allclose(line.get_ydata(), core.predict(pd.DataFrame(x, columns=["depth"]))[:, 1])
    low, high = core.predict_quantiles(pd.DataFrame(x, columns=["depth"]), [0.025, 0.975])
    edge = iron.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose([edge.min(), edge.max()], [low[:, 1].min(), high[:, 1].max()])


def test_draws_on_the_axes_it_is_given(metals, nodes):
    _, axes = plt.subplots(2, 3)
    assert (maps(metals, nodes, axes=axes) == axes).all()
    assert len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match="axes holds 6 axes; this picture has 4 panels"):
        maps(metals, nodes, outputs=["Cd", "Zn"], axes=axes)


def test_nodes_may_have_other_columns_or_be_an_array(metals, nodes):
    framed = maps(metals, nodes.assign(Rock="chalk")[["Rock", "Yloc", "Xloc"]])
    plain = maps(metals, nodes.to_numpy())
    tables = [axes[0, 0].collections[0].get_array() for axes in (framed, plain)]
    assert_allclose(*(table.compressed() for table in tables))
    with pytest.raises(ValueError, match="nodes have 3 columns; the model has 2 inputs"):
        maps(metals, np.zeros((4, 3)))


def test_nodes_off_a_grid_are_refused(metals, nodes):
    nodes.loc[3, "Xloc"] += 0.03
    with pytest.raises(ValueError, match=r"regular grid.*steps along a coordinate differ"):
        maps(metals, nodes)


@pytest.mark.parametrize("P", [1, 2])
def test_a_model_of_arrays_is_drawn_without_warnings(rng, P):
    axes = maps(known_model(world(rng, P=P)))
    assert axes[-1, 0].get_xlabel() == "x0"


def test_three_inputs_are_refused(rng):
    with pytest.raises(ValueError, match=r"3 inputs.*only 1 .* or 2"):
        maps(known_model(world(rng, P=3)))


@pytest.mark.parametrize(("outputs", "what"), [(["Au"], "'Au', which is none"), ([], "none")])
def test_outputs_that_are_none_are_refused(metals, outputs, what):
    with pytest.raises(ValueError, match=f"outputs names {what}; this model has Cd, Ni, Zn"):
        maps(metals, outputs=outputs)
