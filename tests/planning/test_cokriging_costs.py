"""Plans of co-kriging: the steps of the fit, and costs that grow with sites and outputs."""

import numpy as np
import pytest

from emgpr import CoKriging
from emgpr.cokriging.empirical import MAX_SITES
from emgpr.planning import cokriging_costs
from emgpr.planning.speed import MachineSpeed


@pytest.fixture(autouse=True)
def speed(monkeypatch):
    """A machine whose speed does not change from run to run."""
    monkeypatch.setattr(cokriging_costs, "measure_speed", lambda device: MachineSpeed(4e10, 2e-9))


def plan(N, D=3, *, missing=False, **settings):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(N, 2)), rng.normal(size=(N, D))
    if missing:
        Y[::2, 0] = np.nan
    return CoKriging(output_transform=None, **settings).plan(X, Y)


def test_few_sites_have_exact_variograms_and_predictions():
    found = plan(100)
    assert [step.name for step in found.steps] == ["table", "variograms", "intervals"]
    assert found.approximations == []
    assert found.prediction.side == 300
    assert found.steps[-1].side == 300


def test_many_sites_are_sampled():
    found = plan(6000)
    assert f"variograms: computed from {MAX_SITES} of 6000 sites" in found.approximations
    assert "from at least 16 neighbours" in found.prediction.method
    assert plan(6000, conditioning=8).prediction.method == "from 8 neighbours of each output"
    assert found.steps[1].seconds == plan(2000).steps[1].seconds


def test_one_output_has_no_intervals_to_check():
    assert [step.name for step in plan(100, D=1).steps] == ["table", "variograms"]


def test_more_sites_outputs_and_gaps_take_longer():
    few, many, of_more, with_gaps = (
        plan(*size, missing=gaps).steps[1]
        for size, gaps in (((200,), False), ((1000,), False), ((1000, 6), False), ((1000,), True))
    )
    assert few.seconds < many.seconds < with_gaps.seconds < of_more.seconds
    assert many.bytes > 20 * few.bytes


def test_invalid_settings_are_refused():
    with pytest.raises(ValueError, match="kernel='cubic' is not a variogram model"):
        plan(50, kernel="cubic")
