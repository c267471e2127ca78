"""The search that maximises a log posterior density: bounds, progress, interruptions."""

import sys
from copy import deepcopy
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr.checkpoint import Checkpoint
from emgpr.noise import NoiseParameters
from emgpr.parallel import Execution
from emgpr.weights import (
    LMCParameters,
    ParameterVector,
    maximise,
    refine,
)

pytestmark = pytest.mark.slow
joint = sys.modules[refine.__module__]


@pytest.fixture
def bowl():
    """A vector of one length-scale and two noises, and a log posterior with its top inside."""
    start = LMCParameters(
        (RBF(1.0),), np.eye(2), np.zeros((1, 2, 1)), np.tile([np.exp(-1), np.exp(4)], (2, 1))
    )
    bounds = np.array([[-1.0, 4.0], [-1.0, 4.0], [-1.0, 4.0]])
    vector = ParameterVector(start, NoiseParameters(2, False), bounds, ("a", "b", "c"))
    top = np.array([1.0, 2.0, 5.0])  # the last one beyond its bound
    scale = np.array([1.0, 10.0, 0.5])

    def log_posterior(x):
        return float(7 - (scale * (x - top) ** 2).sum()), -2 * scale * (x - top)

    return vector, log_posterior


SEARCH = {
    "n_readings": 10, "max_iter": 50, "min_gain": 1e-12, "expected_gain": 0.0, "label": "Searching",
}  # fmt: skip


def test_a_search_maximises_within_the_bounds(bowl):
    vector, log_posterior = bowl
    result, values = maximise(vector, log_posterior, np.zeros(3), **SEARCH)
    assert_allclose(result.x[0], [1.0, 2.0, 4.0], atol=1e-5)
    assert result.converged[0]
    assert_array_equal(result.at_bound[0], [False, False, True])
    assert values[0] == log_posterior(np.zeros(3))[0]
    assert_allclose(values[-1], -result.value[0], rtol=1e-12)
    assert len(values) == 1 + result.n_iter[0]
    assert np.all(np.diff(values) > 0)


def test_a_start_beyond_its_bounds_is_kept(bowl):
    vector, log_posterior = bowl
    result, values = maximise(vector, log_posterior, np.array([0.0, 0.0, 4.5]), **SEARCH)
    assert values[0] == log_posterior(np.array([0.0, 0.0, 4.5]))[0]
    assert_allclose(result.x[0], [1.0, 2.0, 4.5], atol=1e-5)


def test_a_search_stops_when_told(bowl):
    vector, log_posterior = bowl
    short, values = maximise(vector, log_posterior, np.zeros(3), **SEARCH | {"max_iter": 2})
    assert (short.n_iter[0], len(values), bool(short.converged[0])) == (2, 3, False)
    easy, _ = maximise(vector, log_posterior, np.zeros(3), **SEARCH | {"expected_gain": 1e3})
    assert easy.converged[0]
    long, _ = maximise(vector, log_posterior, np.zeros(3), **SEARCH)
    assert easy.n_iter[0] < long.n_iter[0]


def test_progress_is_shown_if_asked_for(bowl, capsys):
    vector, log_posterior = bowl
    maximise(vector, log_posterior, np.zeros(3), **SEARCH)
    assert capsys.readouterr().err == ""
    result, _ = maximise(
        vector, log_posterior, np.zeros(3), **SEARCH, execution=Execution(verbose=1)
    )
    shown = capsys.readouterr().err
    assert "Searching" in shown
    assert f"iteration {result.n_iter[0]}," in shown


class InMemory(Checkpoint):
    """A checkpoint that keeps everything, always, and writes no file."""

    kept: ClassVar[dict] = {}
    due = True

    def find(self, key):
        return deepcopy(self.kept.get(key))

    def keep(self, key, piece):
        self.kept[key] = deepcopy(piece)

    def flush(self):
        assert self.kept


def test_an_interrupted_search_continues_from_its_checkpoint(bowl, capsys):
    """With the same bits as if it had not been interrupted, and no evaluation repeated."""
    vector, log_posterior = bowl
    whole, values = maximise(vector, log_posterior, np.zeros(3), **SEARCH)
    asked = []

    def interrupted(x):
        asked.append(x.copy())
        if len(asked) == 6:
            raise KeyboardInterrupt
        return log_posterior(x)

    def checkpointed(function, verbose=0, **changed):
        execution = Execution(checkpoint=InMemory("memory"), verbose=verbose)
        given = {**SEARCH, "key": ("data",), "execution": execution} | changed
        return maximise(vector, function, np.zeros(3), **given)

    with pytest.raises(KeyboardInterrupt):
        checkpointed(interrupted)
    result, again = checkpointed(interrupted, verbose=1)
    assert_array_equal(result.x, whole.x)
    assert again == values
    assert f"iteration {result.n_iter[0]}," in capsys.readouterr().err  # those before count too
    assert len(np.unique(asked[1:], axis=0)) >= len(asked) - 3
    n = len(asked)
    found, _ = checkpointed(interrupted)
    assert len(asked) == n  # it is finished, and nothing is evaluated again
    assert_array_equal(found.x, whole.x)
    for other in ({"max_iter": 49}, {"key": ("other data",)}, {"label": "Other"}):
        checkpointed(interrupted, **other)
        assert len(asked) > n  # another search
        n = len(asked)
