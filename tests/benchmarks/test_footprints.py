"""The study of footprints: its tables are one process, smoothed more and more."""

import numpy as np
import pytest

from benchmarks import footprints
from emgpr import CMOGP

pytestmark = pytest.mark.slow


def test_outputs_are_one_process_that_is_smoothed_more_and_more():
    x, Y = footprints.draw(0)
    assert x.shape == (250, 2)
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    near = (distance > 0) & (distance < 0.06)
    roughness = [np.mean((y[:, None] - y)[near] ** 2) for y in Y.T]
    assert roughness[0] > roughness[1] > roughness[2]
    assert np.corrcoef(Y.T)[0, 1] > 0.5
    assert np.array_equal(footprints.draw(0)[1], Y)


def test_a_model_is_scored_at_the_withheld_sites(monkeypatch):
    quick = {"quick": lambda seed: CMOGP(random_state=seed, max_iter=3, n_restarts=1)}
    monkeypatch.setattr(footprints, "MODELS", quick)
    mae, nlpd, coverage = footprints.scores("quick", 0)
    assert 0.1 < mae < 1.0
    assert np.isfinite(nlpd)
    assert 0.5 < coverage <= 1.0
