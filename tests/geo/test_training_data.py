"""What a model on the globe was fitted to comes back as it was given, and can be drawn."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr import IndependentGP, plots

pytest.importorskip("pyproj")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_data_are_in_degrees_as_they_were_given(rng):
    X = pd.DataFrame(
        {
            "depth": rng.uniform(size=20),
            "lat": rng.uniform(40, 60, size=20),
            "lon": rng.uniform(-5, 10, size=20),
        }
    )
    model = IndependentGP(crs="EPSG:4326", random_state=0).fit(X, rng.normal(size=20))
    inputs, outputs = model.training_data()
    assert list(inputs.columns) == ["depth", "lat", "lon"]
    assert_allclose(inputs, X, atol=1e-9)
    assert outputs.shape == (20, 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_maps_of_a_model_on_the_globe_show_its_sites_in_degrees(rng):
    X = pd.DataFrame({"lon": rng.uniform(-5, 10, size=30), "lat": rng.uniform(40, 60, size=30)})
    Y = np.column_stack([np.sin(X["lon"] / 4), np.cos(X["lat"] / 5)])
    model = IndependentGP(crs="EPSG:4326", random_state=0).fit(X, Y)
    lon, lat = np.meshgrid(np.linspace(-5, 10, 6), np.linspace(40, 60, 5))
    axes = plots.maps(model, pd.DataFrame({"lon": lon.ravel(), "lat": lat.ravel()}))
    low, high = np.ravel(axes)[0].get_xlim()
    assert -8 < low < high < 13


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_maps_across_the_date_line_are_one_map(rng):
    X = pd.DataFrame({"lon": rng.uniform(176, 184, 30), "lat": rng.uniform(50, 55, 30)})
    X["lon"] = (X["lon"] + 180) % 360 - 180
    model = IndependentGP(RBF(300.0, "fixed"), crs="EPSG:4326").fit(X, np.sin(X["lat"]))
    for picture in (plots.maps, plots.latents):
        ax = np.ravel(picture(model))[0]
        low, high = ax.get_xlim()
        assert 175 < low < 180 < high < 185
        for drawn in ax.lines:  # the sites too
            assert 176 <= drawn.get_xdata().min() < drawn.get_xdata().max() <= 184
