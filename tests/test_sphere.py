"""Points on the sphere as inputs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import IndependentGP, on_sphere


def test_predictions_across_the_date_line_equal_those_elsewhere(rng):
    kernel = RBF(300.0, "fixed") + WhiteKernel(0.01, "fixed")
    east, lat = rng.uniform(-5, 5, 18), rng.uniform(0, 10, 18)
    y = np.sin(east) + np.cos(lat)
    predicted = []
    for centre in (180.0, 90.0):
        lon = (east + centre + 180) % 360 - 180
        model = IndependentGP(kernel).fit(on_sphere(lon, lat), y)
        predicted.append(model.predict(on_sphere([centre], [3.0])))
    assert_allclose(*predicted, rtol=1e-9)


def test_series_give_a_frame_with_their_index():
    rows = pd.Index(["a", "b"])
    frame = on_sphere(pd.Series([0.0, 90.0], rows), pd.Series([0.0, 0.0], rows))
    assert list(frame.columns) == ["x_km", "y_km", "z_km"]
    assert_allclose(frame.loc["b"], [0, 6371.0088, 0], atol=1e-9)


def test_values_that_are_not_degrees_and_different_lengths_are_rejected():
    with pytest.raises(ValueError, match=r"latitude contains 120 in row 1 .*; expected degrees"):
        on_sphere([0.0, 50.0], [10.0, 120.0])
    with pytest.raises(ValueError, match=r"shape \(2,\) and latitude \(1,\)"):
        on_sphere([0.0, 50.0], [10.0])
