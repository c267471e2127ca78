"""Transforms and scales of a training table, and messages about outputs that do not fit them."""

import numpy as np
import pandas as pd
import pytest

from emgpr import IndependentGP

pytestmark = pytest.mark.filterwarnings("ignore:Nothing was measured in 3 of 30 rows")
EMPTY = [0, 1, 5]  # rows in which nothing was measured, which are ignored


@pytest.fixture
def table(rng):
    X = rng.uniform(size=(30, 2))
    Y = pd.DataFrame(rng.dirichlet([3.0, 2.0, 1.0], 30), columns=["sand", "silt", "clay"])
    Y.iloc[EMPTY] = np.nan
    return X, Y


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        ({"output_transform": "log"}, {"silt": -1.0}),
        ({"output_transform": "softplus", "output_bounds": (0, None)}, {"silt": -1.0}),
        ({"output_bounds": {"clay": (0, 1)}}, {"clay": 3.0}),
        ({"compositions": [["sand", "silt", "clay"]]}, {"clay": 3.0}),
        ({"compositions": [["sand", "silt", "clay"]]}, {"clay": 0.0}),
    ],
)
@pytest.mark.parametrize("method", ["fit", "first_look"])
def test_messages_count_the_rows_of_the_users_table(table, settings, change, method):
    X, Y = table
    Y.loc[8, list(change)] = list(change.values())
    with pytest.raises(ValueError, match=r"in row 8 \(counted from 0\)"):
        getattr(IndependentGP(**settings), method)(X, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {"output_transform": {"gravel": "log"}},
        {"output_bounds": {"gravel": (0, 1)}},
        {"compositions": [["sand", "gravel"]]},
    ],
)
def test_messages_list_the_outputs_in_the_order_of_their_columns(table, settings):
    X, Y = table
    for names in (["sand", "silt", "clay"], ["clay", "sand", "silt"]):
        with pytest.raises(ValueError, match=str(names).replace("[", r"\[")):
            IndependentGP(**settings).fit(X, Y[names])
