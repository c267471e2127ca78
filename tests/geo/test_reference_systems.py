"""Coordinate reference systems that estimators accept."""

import numpy as np
import pytest

from emgpr import EMGPR

pytest.importorskip("pyproj")


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        ("EPSG:0", "not recognised by pyproj as a coordinate reference system"),
        (4326, "is a int; expected a string such as 'EPSG:4326'"),
        ("EPSG:4978", "does not have two horizontal axes"),
        ("EPSG:4807", "in units of grad"),
    ],
)
def test_unsuitable_reference_systems_are_rejected_before_any_work(crs, message):
    with pytest.raises(ValueError, match=message):
        EMGPR(crs=crs).fit(np.zeros((3, 2)), np.zeros((3, 1)))
