"""On a real granule, smaller than in the tables: what the channels share is worth something."""

import numpy as np

from emgpr.datasets import read_atms
from emgpr.experiments.atms import METHODS, NO_TRANSFER, Protocol, jobs, usable, work


def test_emgpr_is_better_than_no_transfer(granule):
    """300 sites and five channels; in the tables, with 800 and ten, the gain is some 8%."""
    swath = read_atms(*granule[:2])
    protocol = Protocol(sites=400, folds=4, channels=("ch03", "ch04", "ch05", "ch06", "ch07"))
    table = usable(swath, protocol)
    errors = {}
    for name in (NO_TRANSFER, "EMGPR (no ensemble)"):
        first, second, *_ = jobs(swath, {name: METHODS[name]}, 1, protocol)
        rows = [work(table, job)["mse"] for job in (first, second)]
        errors[name] = np.mean([list(row.values()) for row in rows])
    assert errors["EMGPR (no ensemble)"] < 0.98 * errors[NO_TRANSFER] < 0.05
