"""Maps: the axes that come back, what is on them, and grids with holes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from emgpr.plots import maps


@pytest.fixture
def drawn(rng):
    """A grid of 5 × 4 nodes, one of them missing, and 6 sites, one without a reading of Ni."""
    x, y = (part.ravel() for part in np.meshgrid(0.5 + 0.1 * np.arange(5), 0.1 * np.arange(4)))
    nodes = pd.DataFrame({"Xloc": x, "Yloc": y}).drop(index=7).reset_index(drop=True)
    values = pd.DataFrame(rng.uniform(1, 2, (19, 2)), columns=["Cd", "Ni"])
    readings = pd.DataFrame(rng.uniform(1, 2, (6, 2)), columns=["Cd", "Ni"])
    readings.loc[2, "Ni"] = np.nan
    sites = pd.DataFrame(rng.uniform(0, 0.4, (6, 2)), columns=["Xloc", "Yloc"])
    yield {
        "nodes": nodes, "prediction": values, "std": 0.1 * values, "sites": sites,
        "readings": readings, "unit": "mg/kg",
    }  # fmt: skip
    plt.close("all")


def test_a_column_an_output_prediction_above_deviation_below(drawn):
    axes = maps(**drawn)
    assert axes.shape == (2, 2)
    assert [ax.get_title() for ax in axes.flat] == [
        "Cd: predicted median", "Ni: predicted median",
        "Cd: standard deviation", "Ni: standard deviation",
    ]  # fmt: skip
    assert axes[1, 0].get_xlabel() == "Xloc (km)"
    assert axes[0, 0].get_ylabel() == "Yloc (km)"
    bars = [ax for ax in axes[0, 0].figure.axes if ax not in axes]
    assert [bar.get_title() for bar in bars] == ["mg/kg"] * 4
    axes[0, 0].figure.draw_without_rendering()


def test_values_stand_at_their_nodes_and_a_hole_stays_empty(drawn):
    mesh, points = maps(**drawn)[0, 1].collections[:2]
    table = mesh.get_array()
    assert table.shape == (4, 5)
    assert np.ma.getmaskarray(table).nonzero() == (1, 2)
    assert table[0, 0] == drawn["prediction"]["Ni"][0]
    assert table[3, 4] == drawn["prediction"]["Ni"][18]
    assert len(points.get_offsets()) == 5
    # A reading has the colour that its value has on the map.
    assert points.norm.vmin == mesh.norm.vmin
    assert points.norm.vmax == mesh.norm.vmax


def test_draws_on_the_axes_it_is_given(drawn):
    _, axes = plt.subplots(2, 2)
    assert maps(**drawn, axes=axes) is axes
    assert len(plt.get_fignums()) == 1


def test_nodes_off_a_grid_are_refused(drawn):
    drawn["nodes"].loc[3, "Xloc"] += 0.03
    with pytest.raises(ValueError, match=r"regular grid.*steps along a coordinate differ"):
        maps(**drawn)
