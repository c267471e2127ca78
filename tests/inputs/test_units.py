"""Units of columns: found in attributes and headers, stored in the model, used by its maps."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import IndependentGP, OnePassGP
from emgpr.inputs.units import unit_in_header, units_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = pd.DataFrame(np.random.default_rng(0).uniform(size=(20, 2)), columns=["east", "north"])
Y = pd.DataFrame({"Cd": np.sin(6 * X["east"]), "Zn (mg/kg)": np.cos(6 * X["north"])})


def with_units(table, units):
    table = table.copy()
    table.attrs["units"] = units
    return table


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("Cd (mg/kg)", "mg/kg"),
        ("Cd [µg/l]", "µg/l"),
        ("T(°C)", "°C"),
        ("rain (mm/d)", "mm/d"),
        ("flux [kg m-2 s-1]", "kg m-2 s-1"),
        ("area (m²)", "m²"),
        ("clay (%)", "%"),
        ("Zn (total)", ""),
        ("pH (CaCl2)", ""),
        ("T (max)", ""),
        ("depth (0-10 cm)", ""),
        ("depth (m) upper", ""),
        ("(m)", ""),
        ("depth (m]", ""),
    ],
)
def test_units_in_headers(header, unit):
    assert unit_in_header(header) == unit


def test_attributes_precede_headers_and_name_columns_of_both_tables():
    table = with_units(pd.concat([X, Y], axis=1), {"Cd": "ppm", "Zn (mg/kg)": "g/t", "gone": "m"})
    units = units_of(table[["east", "north"]], table[["Cd", "Zn (mg/kg)"]])
    assert units == {"Cd": "ppm", "Zn (mg/kg)": "g/t"}
    assert units_of(with_units(X, "km"), Y["Cd"]) == {"east": "km", "north": "km"}
    assert units_of(with_units(X, {"east": 3, "north": ""}), Y["Cd"]) == {}
    assert units_of(X.to_numpy(), Y.to_numpy()) == {}


def test_units_of_xarray_variables():
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({name: ("site", X[name]) for name in X})
    data["east"].attrs["units"] = "km"
    reading = xarray.DataArray(Y["Cd"], dims="site", name="Cd", attrs={"units": "mg/kg"})
    assert units_of(data, reading) == {"east": "km", "Cd": "mg/kg"}


def test_projected_coordinates_have_the_unit_of_the_projection():
    pytest.importorskip("pyproj")
    assert units_of(X, Y[["Cd"]], "EPSG:32632") == {"east": "m", "north": "m"}
    assert units_of(with_units(X, "km"), Y[["Cd"]], "EPSG:32632")["east"] == "km"
    assert units_of(X, Y[["Cd"]], "EPSG:4326") == {}


@pytest.mark.parametrize("estimator", [IndependentGP, OnePassGP])
def test_a_model_keeps_units_in_its_file_and_its_predictions_have_them(estimator, tmp_path):
    model = estimator(RBF(0.3), max_iter=2, n_restarts=1, random_state=0)
    if estimator is OnePassGP:
        model.set_params(n_functions=41, tolerance=0.5)
    given = {"Cd": "mg/kg", "east": "km", "north": "km"}
    units = {**given, "Zn (mg/kg)": "mg/kg"}
    model.fit(with_units(X, given), Y)
    assert model.units_ == units
    model.save(tmp_path / "model.emgpr")
    again = estimator.load(tmp_path / "model.emgpr")
    assert again.units_ == units
    frame = again.predict_frame(X, quantiles=[0.9], exceedance={"Cd": 0.5})
    assert frame.attrs["units"] == {
        **dict.fromkeys(["Cd", "Cd_std", "Cd_q0.9"], "mg/kg"), "Cd_above_0.5": "1",
        **dict.fromkeys([f"Zn (mg/kg){part}" for part in ("", "_std", "_q0.9")], "mg/kg"),
    }  # fmt: skip


def test_maps_have_the_stored_units_unless_others_are_given():
    pytest.importorskip("xarray")
    model = IndependentGP(RBF(0.3), max_iter=2, n_restarts=1, random_state=0)
    model.fit(with_units(X, {"Cd": "mg/kg", "east": "km"}), Y[["Cd"]])
    grid = model.predict_grid(0.5)
    assert [grid[name].attrs.get("units") for name in ("Cd", "Cd_std", "east")] == [
        "mg/kg", "mg/kg", "km",
    ]  # fmt: skip
    assert model.predict_grid(0.5, units="ppm")["Cd"].attrs["units"] == "ppm"


def test_a_fit_without_units_has_none():
    model = IndependentGP(RBF(0.3), max_iter=2, n_restarts=1, random_state=0).fit(X, Y[["Cd"]])
    assert model.units_ == {}
    assert model.predict_frame(X).attrs == {}
