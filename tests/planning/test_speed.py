"""The machine's speed is measured, and turns counted work into seconds."""

import pytest

from emgpr.latents import Evaluations, Exact
from emgpr.planning.speed import SECONDS_PER_CALL, MachineSpeed, measure_speed

SPEED = MachineSpeed(4e10, 2e-9)


def test_the_measured_speed_is_that_of_a_computer():
    speed = measure_speed("cpu")
    assert 1e8 < speed.operations < 1e14
    assert 1e-12 < speed.value < 1e-5


def test_an_exact_search_is_as_long_as_its_likelihoods():
    start, search = Exact().work(500).parts
    assert SPEED.evaluations(search) == pytest.approx(6 * SPEED.likelihood(500, 500**2))
    each = SPEED.likelihood(128, 128**2) - 0.6 * SECONDS_PER_CALL  # outputs share the overhead
    assert SPEED.evaluations(start) == pytest.approx(7 * each)


def test_every_part_of_an_evaluation_takes_time():
    none = SPEED.evaluations(Evaluations(1, calls=0.0))
    assert none == 0
    parts = {
        "calls": 1.0,
        "kernel_values": 1e6,
        "operations": 1e9,
    }
    alone = [SPEED.evaluations(Evaluations(1, **{"calls": 0.0, k: v})) for k, v in parts.items()]
    blocks = SPEED.evaluations(Evaluations(1, blocks=3.0, block_size=50, calls=0.0))
    assert blocks == pytest.approx(3 * SPEED.factorisation(50))
    together = SPEED.evaluations(Evaluations(2, blocks=3.0, block_size=50, **parts))
    assert together == pytest.approx(2 * (sum(alone) + blocks))
    assert min(alone) > 0
