"""Coordinate reference systems that estimators accept."""

import numpy as np
import pytest

from emgpr import EMGPR
from emgpr.geo.reference_systems import cf_grid_mapping

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


def test_a_grid_whose_parameters_are_unknown_to_cf_is_described_by_its_wkt(recwarn):
    """The Swiss grid has an angle that CF lacks."""
    attributes = cf_grid_mapping("EPSG:2056")
    assert "Angle from Rectified to Skew Grid" in attributes["crs_wkt"]
    assert not recwarn
