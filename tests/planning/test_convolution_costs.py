"""Plans of convolved processes: the steps of the fit, and costs that grow with the readings."""

import numpy as np

from emgpr import CMOGP
from emgpr.convolution import SEARCH_READINGS


def plan(N, **settings):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(N, 2)), rng.normal(size=(N, 3))
    Y[::2, 0] = np.nan
    return CMOGP(output_transform=None, **settings).plan(X, Y)


def test_few_readings_are_fitted_at_once():
    found = plan(100)
    assert [step.name for step in found.steps] == ["table", "step 1", "starting points"]
    search = found.steps[-1]
    assert (search.n_readings, search.n_matrices, search.side) == (250, 5, 250)
    assert found.approximations == []
    assert found.prediction.side == 250


def test_many_readings_are_fitted_in_two_steps():
    found = plan(600, n_restarts=7)
    tried, last = found.steps[-2:]
    assert (tried.n_readings, tried.n_matrices) == (SEARCH_READINGS, 7)
    assert (last.n_readings, last.n_matrices) == (1500, 2)
    assert "starting points: tried on 1000 of 1500 readings" in found.approximations


def test_more_readings_and_starts_take_longer():
    few, many = plan(100), plan(400)
    assert many.steps[-1].seconds > 3 * few.steps[-1].seconds
    assert many.steps[-1].bytes == 16 * few.steps[-1].bytes
    few, many = (plan(300, n_restarts=n).steps[-1].seconds for n in (2, 8))
    assert many > 2 * few  # four times as long, but for the measured speed of the machine
