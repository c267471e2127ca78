"""Maps of models in longitude and latitude."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import IndependentGP, plots

pytest.importorskip("pyproj")


def model(rng, west, east):
    X = pd.DataFrame({"lon": rng.uniform(west, east, size=30), "lat": rng.uniform(50, 55, size=30)})
    X["lon"] = (X["lon"] + 180) % 360 - 180
    kernel = RBF(300.0, "fixed") + WhiteKernel(0.01, "fixed")
    return IndependentGP(kernel, crs="EPSG:4326").fit(X, np.sin(X["lat"]))


def test_maps_at_given_locations_are_in_degrees(rng):
    lon, lat = np.meshgrid(np.linspace(-5, 10, 6), np.linspace(50, 55, 5))
    locations = pd.DataFrame({"lon": lon.ravel(), "lat": lat.ravel()})
    axes = plots.maps(model(rng, -5, 10), locations)
    low, high = np.ravel(axes)[0].get_xlim()
    assert -8 < low < high < 13


def test_maps_across_the_date_line_are_contiguous(rng):
    across = model(rng, 176, 184)
    for plot in (plots.maps, plots.latents):
        ax = np.ravel(plot(across))[0]
        low, high = ax.get_xlim()
        assert 175 < low < 180 < high < 185
        for line in ax.lines:  # the sites
            assert 176 <= line.get_xdata().min() < line.get_xdata().max() <= 184
