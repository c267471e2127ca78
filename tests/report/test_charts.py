"""Charts hold what the model predicts, on a grid that time allows."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr.plots import surface
from emgpr.report import charts

from .page_reader import unpack

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["metals", "cadmium", "globe", "hostile"])
def test_maps_hold_what_the_model_predicts(name, request, page_of):
    model = request.getfixturevalue(name)
    data = page_of(model).data["charts"]
    x, y = (axis["first"] + axis["step"] * np.arange(axis["n"]) for axis in (data["x"], data["y"]))
    right, up = (part.ravel() for part in np.meshgrid(x, y))
    columns = [axis["name"] for axis in data["inputs"]]
    X, Y = model.training_data()
    nodes = pd.DataFrame({columns[0]: right, columns[1]: up})[list(X.columns)]
    inside = ~np.isnan(unpack(data["outputs"][0]["centre"]))
    assert 0.3 < inside.mean() < 1
    named = hasattr(model, "feature_names_in_")
    asked = nodes[inside] if named else nodes[inside].to_numpy()
    mean, std = (np.reshape(part, (inside.sum(), -1)) for part in model.predict(asked, True))
    for d, output in enumerate(data["outputs"]):
        assert output["name"] == model.output_names_[d]
        for kind, expected in (("centre", mean), ("std", std)):
            values = unpack(output[kind])
            assert_allclose(values[inside], expected[:, d], rtol=1e-6)
            assert np.isnan(values[~inside]).all()
        assert_allclose(unpack(output["readings"]), Y.iloc[:, d], rtol=1e-6)


def test_lines_hold_medians_and_intervals(core, page_of):
    data = page_of(core).data["charts"]
    at = pd.DataFrame({"depth": unpack(data["x"], "<f8")})
    median, std = core.predict(at, return_std=True)
    low, high = core.predict_quantiles(at, [0.025, 0.975])
    for d, output in enumerate(data["outputs"]):
        expected = {"centre": median, "std": std, "low": low, "high": high}
        for kind, values in expected.items():
            assert_allclose(unpack(output[kind]), values[:, d], rtol=1e-5, atol=1e-6)
    assert [output["scale"]["log"] for output in data["outputs"]] == [False, True]


def test_the_table_has_the_extremes_and_where_they_are(core, page_of):
    page = page_of(core)
    table = page.tables["Lowest and highest predictions and their locations (depth)"]
    data = page.data["charts"]
    depths = unpack(data["x"], "<f8")
    for output, lowest, at in zip(
        data["outputs"], table.numbers("lowest"), table.column("lowest at").values(), strict=True
    ):
        median = unpack(output["centre"])
        assert lowest == pytest.approx(median.min(), rel=1e-6)
        assert float(at.text) == pytest.approx(depths[median.argmin()], abs=1e-3)


def test_maps_continue_across_the_date_line(globe, page_of):
    data = page_of(globe).data["charts"]
    assert [axis["name"] for axis in data["inputs"]] == ["lon", "lat"]
    assert 175 < data["x"]["first"] < 180 < data["x"]["first"] + data["x"]["step"] * data["x"]["n"]
    sites = unpack(data["sites"]["x"], "<f8")
    assert 176 <= sites.min() < 180 < sites.max() <= 184
    width, height = ((data[axis]["n"] - 1) * data[axis]["step"] for axis in "xy")
    middle = np.radians(data["y"]["first"] + height / 2)
    assert data["aspect"] == pytest.approx(height / (width * np.cos(middle)))


def test_of_many_outputs_and_sites_only_some_are_drawn_with_a_note(metals, monkeypatch):
    monkeypatch.setattr(charts, "MAX_OUTPUTS", 2)
    monkeypatch.setattr(charts, "MAX_SITES", 10)
    monkeypatch.setattr(charts, "MAX_LONGER_SIDE", charts.MIN_LONGER_SIDE)
    created = charts.create_charts(metals, {})
    assert [output["name"] for output in created.data["outputs"]] == ["Cd", "Ni"]
    assert created.note == "Only the first 2 of 3 outputs are drawn."
    assert len(unpack(created.data["sites"]["x"], "<f8")) == 10
    assert created.table.note.endswith("10 of the 90 sites are marked.")


def sites_and_cost(n_sites, n_operations, monkeypatch):
    """A stand-in for a model with sites on a square, whose maps cost this much for each node."""
    side = np.linspace(0, 1, 2)
    X = pd.DataFrame([(x, y) for x in side for y in side], columns=["x", "y"])
    inputs = SimpleNamespace(coordinates=SimpleNamespace(degrees=False))
    monkeypatch.setattr(surface, "check_keeps_readings", lambda model: None)
    monkeypatch.setattr(charts, "operations_per_node", lambda posterior: n_operations)
    posterior = SimpleNamespace(observations=SimpleNamespace(n_sites=n_sites))
    return SimpleNamespace(
        training_data=lambda: (X, None), input_spec_=inputs, posterior_=posterior
    )


@pytest.mark.parametrize(
    ("n_sites", "n_operations", "n_side"),
    [
        (150, 1e6, 100),
        (600, 1e6, 100),
        (6000, 1e6, 193),
        (60000, 1e6, 200),
        (6000, 1e8, 100),
        (6000, 1e12, 40),
    ],
)
def test_the_grid_follows_the_number_of_sites_and_the_cost(
    n_sites, n_operations, n_side, monkeypatch
):
    model = sites_and_cost(n_sites, n_operations, monkeypatch)
    assert charts.nodes_per_side(model) == n_side


def test_the_cost_of_a_node_grows_with_the_readings_it_is_conditioned_on(metals):
    posterior = metals.posterior_
    n, D, L = posterior.observations.n_readings, 3, 3
    assert charts.operations_per_node(replace(posterior, conditioning="all")) == L * D * n**2
    assert charts.operations_per_node(replace(posterior, conditioning="batch")) == D * n**2 / L
    few, many = (charts.operations_per_node(replace(posterior, conditioning=k)) for k in (8, 16))
    assert 4 * few < many < 8 * few


def test_the_resolution_can_be_given(metals):
    data = charts.create_charts(metals, {}, 30).data
    # Nodes at the corners can lie outside the convex hull of the sites.
    assert 26 <= max(data["x"]["n"], data["y"]["n"]) <= 30


def test_axes_in_metres_are_labelled_in_kilometres(metals):
    X, _ = metals.training_data()
    data = charts.create_charts(metals, {"Xloc": "m", "Yloc": "m"}, 12).data
    assert [axis["label"] for axis in data["inputs"]] == ["Xloc (m)", "Yloc (m)"]  # 4 m wide
    model = copy.copy(metals)
    model.posterior_ = replace(
        metals.posterior_,
        observations=replace(
            metals.posterior_.observations, x=1000 * metals.posterior_.observations.x
        ),
    )
    data = charts.create_charts(model, {"Xloc": "m", "Yloc": "m"}, 12).data
    assert [axis["label"] for axis in data["inputs"]] == ["Xloc (km)", "Yloc (km)"]
    assert [axis["scale"] for axis in data["inputs"]] == [1000.0, 1000.0]
    assert data["x"]["first"] == pytest.approx(1000 * X["Xloc"].min(), abs=800)  # in metres


def test_there_is_no_map_of_three_inputs(soil, page_of):
    page = page_of(soil)
    assert page.data == {"charts": None, "trace": None}
    assert "The model has 3 inputs (x, y, depth), and a map can show only two" in page.text
