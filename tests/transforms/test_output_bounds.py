"""The parameter output_bounds: accepted values, automatic bounds, messages."""

import numpy as np
import pytest

from emgpr.transforms import OutputScaler, bounds_per_output, check_output_bounds

NAMES = ["rain", "T"]
Y = np.array([[0.0, -3.0], [5.0, 20.0], [np.nan, 1.0]])
AUTO = ["auto", "auto"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("auto", [(0.0, np.inf), None]),
        (None, [None, None]),
        ((-10, 50), [(-10.0, 50.0)] * 2),
        ((-10, None), [(-10.0, np.inf)] * 2),
        ([(0, 100), None], [(0.0, 100.0), None]),
        ([None, (-5, 40)], [None, (-5.0, 40.0)]),
        ({"T": (-10, 50)}, [(0.0, np.inf), (-10.0, 50.0)]),
        ({"rain": None}, [None, None]),
        ({"rain": (None, None)}, [None, None]),
    ],
)
def test_bounds_of_every_output(given, expected):
    check_output_bounds(given)
    assert bounds_per_output(given, NAMES, Y, AUTO) == expected


def test_readings_beyond_a_bound_by_rounding_are_at_the_bound():
    y = np.array([[10.0], [40.0], [100.00000000000001], [70.0]])
    scaler = OutputScaler.fit(y, "softplus", bounds=(0, 100))
    assert scaler.to_original(scaler.standardise(y))[2, 0] == 100.0


def test_automatic_bounds_respect_the_users_transform():
    assert bounds_per_output("auto", NAMES, np.abs(Y), [None, "log"]) == [None, (0.0, np.inf)]
    assert bounds_per_output({"rain": (0, 9)}, NAMES, Y, [None, None])[0] == (0.0, 9.0)


@pytest.mark.parametrize("bad", ["positive", 3, (0, 1, 2), (5, 5), (2, 1), {"T": "x"}, (0, "a")])
def test_invalid_bounds_are_rejected(bad):
    with pytest.raises(ValueError, match="output_bounds contains"):
        check_output_bounds(bad)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Pb": (0, 1)}, r"keys \['Pb'\], which are not outputs"),
        ([(0, 1), (0, 1), None], "3 elements for 2 outputs"),
        ({"T": (0, 15)}, r"'T' has 2 readings outside its bounds \(0.0, 15.0\).*-3, in row 0"),
    ],
)
def test_bounds_that_do_not_fit_the_table_are_rejected(given, message):
    with pytest.raises(ValueError, match=message):
        bounds_per_output(given, NAMES, Y, AUTO)
