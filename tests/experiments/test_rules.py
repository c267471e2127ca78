"""The combination rules, all with the members of one fit."""

import numpy as np
import pandas as pd
import pytest

from emgpr.ensemble import RULES
from emgpr.experiments import rules
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

SETTINGS = {
    "estimator": "EMGPR.paper",
    "batch_size": 9,
    "conditioning": "batch",
    "max_iter": 3,
    "n_restarts": 1,
}


@pytest.fixture(scope="module")
def row():
    X, Y = smooth_table(np.random.default_rng(5), N=32)
    tables = {"smooth": (pd.DataFrame(X), pd.DataFrame(Y, columns=["a", "b", "c"]))}
    job = {"data": "smooth", "settings": SETTINGS, "fold": 0}
    return job | rules.work(tables, job)


def test_every_rule_has_scores_of_its_own(row):
    """The mean and the variance of a mixture are those of "average"; other rules differ."""
    scores = row["scores"]
    assert list(scores) == list(RULES)
    assert scores["mean"]["mae"] == pytest.approx(scores["average"]["mae"], rel=0.2)
    densities = {rule: own["nlpd"] for rule, own in scores.items() if rule != "average"}
    assert len(set(densities.values())) == len(densities)


def test_the_table_shows_the_scores_of_every_rule(row):
    lines = rules.text([row]).splitlines()
    assert lines[0].split("|")[2].strip() == "smooth, batch"
    for line, (rule, own) in zip(lines[2:], row["scores"].items(), strict=True):
        cell = f"{own['mae']:.3f}; {own['nlpd']:.2f}; {100 * own['coverage']:.0f}%"
        assert [part.strip() for part in line.split("|")[1:3]] == [rule, cell]
