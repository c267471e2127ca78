"""The study of changing correlations: outputs that agree on the left and differ on the right."""

import numpy as np
import pytest

from benchmarks import changing_correlations
from emgpr import GPRN

pytestmark = pytest.mark.slow


def test_the_correlation_changes_unless_it_is_constant():
    x, Y = changing_correlations.draw(0)
    left, right = x[:, 0] < 0.3, x[:, 0] > 0.7
    assert np.corrcoef(Y[left].T)[0, 1] > 0.5
    assert np.corrcoef(Y[right].T)[0, 1] < -0.5
    x, Y = changing_correlations.draw(0, constant=True)
    assert np.corrcoef(Y[x[:, 0] > 0.7].T)[0, 1] > 0.3


def test_a_model_is_scored_at_the_withheld_sites(monkeypatch):
    quick = {"quick": lambda seed: GPRN(random_state=seed, max_iter=3, n_restarts=1)}
    monkeypatch.setattr(changing_correlations, "MODELS", quick)
    mae, nlpd, coverage = changing_correlations.scores("quick", 0)
    assert 0.1 < mae < 1.0
    assert np.isfinite(nlpd)
    assert 0.5 < coverage <= 1.0
