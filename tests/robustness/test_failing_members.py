"""Members of an ensemble that fail are left out, as long as half of them succeed."""

import numpy as np
import pytest

from emgpr import EMGPR, EnsembleWarning, IndependentGP, load
from emgpr.arrays import NumericalError
from emgpr.weights import fit as step_2
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Batches of:UserWarning"
    ),
]
X, Y = smooth_table(np.random.default_rng(3), N=30)
QUICK = {"max_iter": 8, "n_restarts": 1, "random_state": 0}


@pytest.fixture
def fail(monkeypatch):
    """Make members whose batch holds one of these sites fail in step 2, at every attempt."""

    def those(sites, error):
        original = step_2._fit

        def work(problem):
            if np.isin(X[sites], problem.tables.x).any():
                raise error
            return original(problem)

        monkeypatch.setattr(step_2, "_fit", work)

    return those


@pytest.mark.parametrize("settings", [{}, {"refine": 1}, {"refine": "joint"}], ids=str)
def test_a_member_that_fails_is_left_out(settings, fail, tmp_path):
    """Of five strided batches the first has site 0 and the second site 1."""
    fail([0, 1], MemoryError("no room"))
    model = EMGPR.paper(batch_size=6, **QUICK | settings)
    with pytest.warns(EnsembleWarning, match=r"2 of 5 members failed twice.*MemoryError: no room"):
        model.fit(X, Y)
    assert model.n_members_failed_ == 2
    assert len(model.weights_) == len(model.batches_) == 3
    assert not np.isin([0, 1], np.concatenate(model.batches_)).any()
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").n_members_failed_ == 2


def test_a_likelihood_that_cannot_be_evaluated_is_a_failure(monkeypatch):
    original = step_2._fit

    def work(problem):
        fitted = original(problem)
        fitted.log_likelihood[0] = -np.inf
        return fitted

    monkeypatch.setattr(step_2, "_fit", work)
    with pytest.warns(EnsembleWarning, match=r"1 of 5 members .*could not be evaluated"):
        model = EMGPR.paper(batch_size=6, **QUICK).fit(X, Y)
    assert len(model.weights_) == 4


def test_a_fit_fails_if_fewer_than_half_of_the_members_succeed(fail):
    fail([0, 1, 2], NumericalError("not positive definite"))
    with pytest.raises(NumericalError, match=r"3 of 5 members.*not positive definite.*batch_size"):
        EMGPR.paper(batch_size=6, **QUICK).fit(X, Y)


def test_members_do_not_fail_normally():
    assert EMGPR.paper(batch_size=6, **QUICK).fit(X, Y).n_members_failed_ == 0
    assert IndependentGP(**QUICK).fit(X, Y).n_members_failed_ == 0
