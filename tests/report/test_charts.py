"""Charts hold what the model predicts, on a grid that time allows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

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


def test_maps_are_coarser_where_predictions_are_expensive(metals, monkeypatch):
    posterior = metals.posterior_
    finest = charts.nodes_per_side(posterior)
    monkeypatch.setattr(charts, "MAX_OPERATIONS", charts.MAX_OPERATIONS / 20)
    assert charts.MIN_LONGER_SIDE < charts.nodes_per_side(posterior) < finest
    assert finest == charts.MAX_LONGER_SIDE
    monkeypatch.setattr(charts, "MAX_OPERATIONS", 1.0)
    assert charts.nodes_per_side(posterior) == charts.MIN_LONGER_SIDE


def test_there_is_no_map_of_three_inputs(soil, page_of):
    page = page_of(soil)
    assert page.data == {"charts": None, "trace": None}
    assert "The model has 3 inputs (x, y, depth), and a map can show only two" in page.text
