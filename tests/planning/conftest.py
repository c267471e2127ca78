import numpy as np
import pytest

from emgpr.planning import fit_costs
from emgpr.planning.speed import MachineSpeed
from tests.simulated import smooth_table


@pytest.fixture(autouse=True)
def constant_speed(monkeypatch):
    """A machine whose speed does not change from run to run."""
    monkeypatch.setattr(fit_costs, "measure_speed", lambda device: MachineSpeed(4e10, 2e-9))


@pytest.fixture
def small():
    """A table of 30 sites and three outputs."""
    return smooth_table(np.random.default_rng(3), N=30)


@pytest.fixture
def big():
    """A function that returns a table of N sites."""

    def big(N, D=3):
        rng = np.random.default_rng(0)
        return rng.uniform(size=(N, 2)), rng.normal(size=(N, D))

    return big
