"""Step 1 by any learner: names, "auto", and learners of users."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.latents import FITC, LEARNERS, Latent, choose_learner
from emgpr.latents import fit as step_1
from emgpr.observations import Observations
from tests.simulated import smooth_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table_of(counts, N=60):
    """A table with so many readings of each output."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(N, len(counts)))
    for d, n in enumerate(counts):
        Y[n:, d] = np.nan
    return rng.uniform(size=(N, 2)), Y


@pytest.fixture
def small_limit(monkeypatch):
    """The exact likelihood is chosen up to 40 readings."""
    monkeypatch.setattr(step_1, "MAX_EXACT_READINGS", 40)


def test_auto_depends_on_the_output_with_most_readings(small_limit):
    for counts, chosen in {(40, 12): "exact", (12, 41): "vecchia"}.items():
        assert choose_learner("auto", Observations.from_table(*table_of(counts))) == chosen


@pytest.mark.parametrize("given", ["exact", FITC(5)])
def test_a_learner_that_is_given_is_not_replaced(small_limit, given):
    assert choose_learner(given, Observations.from_table(*table_of([50]))) == given


def test_auto_is_vecchia_for_many_readings(small_limit, tmp_path):
    X, Y = table_of([41, 30], N=41)
    model = IndependentGP(RBF(), random_state=0).fit(X, Y)
    assert model.latent_learner_ == "vecchia"
    assert model.latent_learner == "auto"
    assert "step 1: Vecchia" in model.approximations_[0]
    model.save(tmp_path / "model")
    assert emgpr.load(tmp_path / "model").latent_learner_ == "vecchia"
    explicit = IndependentGP(RBF(), latent_learner="vecchia", random_state=0).fit(X, Y)
    assert np.array_equal(explicit.predict(X), model.predict(X))


def test_auto_is_exact_for_few_readings():
    X, Y = table_of([60, 50])
    auto, exact = (
        IndependentGP(RBF(), latent_learner=own, random_state=0).fit(X, Y)
        for own in ("auto", "exact")
    )
    assert auto.latent_learner_ == "exact"
    assert np.array_equal(auto.predict(X), exact.predict(X))


@pytest.fixture
def table(rng):
    X, Y = smooth_table(rng, N=40)
    Y[:6, 1] = np.nan
    return X, Y


class Recorded(BaseEstimator):
    """A user's learner, which records what it is called with."""

    calls: ClassVar = []

    def learn(self, x, y, kernel):
        self.calls.append((len(x), str(kernel)))
        return Latent(clone(kernel).set_params(length_scale=0.3), 0.1, 0.0)


def test_a_users_learner_is_called_for_every_output_and_kernel(table):
    Recorded.calls.clear()
    model = EMGPR(
        latent_learner=Recorded(), refine=0, output_transform=None, random_state=0, max_iter=5
    )
    model.fit(*table)
    assert {n for n, _ in Recorded.calls} == {40, 34}  # readings of the outputs
    assert any("nu=0.5" in kernel for _, kernel in Recorded.calls)  # kernel="auto" tries each
    assert isinstance(model.latent_learner_, Recorded)
    one = IndependentGP(Matern(nu=1.5), latent_learner=Recorded(), random_state=0).fit(*table)
    assert all(isinstance(kernel, Matern) for kernel in one.kernels_)


def test_a_new_learner_is_one_entry_of_the_registry(table, monkeypatch):
    monkeypatch.setitem(LEARNERS, "recorded", Recorded)
    Recorded.calls.clear()
    model = IndependentGP(RBF(), latent_learner="recorded", random_state=0)
    assert model.plan(*table).unknown == ["step 1"]
    assert model.fit(*table).latent_learner_ == "recorded"
    assert len(Recorded.calls) == 3


def test_a_users_learner_is_stored_if_it_is_an_estimator(table, tmp_path):
    model = IndependentGP(RBF(), latent_learner=Recorded(), random_state=0).fit(*table)
    model.save(tmp_path / "model")
    again = emgpr.load(tmp_path / "model", classes=[Recorded])
    assert isinstance(again.latent_learner, Recorded)


class Fixed:
    """A learner that returns what it was given."""

    def __init__(self, latent):
        self.latent = latent

    def learn(self, x, y, kernel):
        assert np.ptp(y) > 0
        return self.latent


def test_a_learner_may_return_a_kernel_of_another_form(table):
    latent = Latent(ConstantKernel(2.0) * RBF(0.3), 0.1, 0.0)
    model = EMGPR(latent_learner=Fixed(latent), output_transform=None, max_iter=5, random_state=0)
    assert np.isfinite(model.fit(*table).predict(table[0])).all()


def test_a_learner_is_not_called_for_a_constant_output(table):
    X, Y = table
    Y[:, 2] = 7.0
    model = IndependentGP(RBF(), latent_learner=Fixed(Latent(RBF(0.3), 0.1, 0.0)))
    with pytest.warns(UserWarning, match="one value only"):
        model.fit(X, Y)
    assert np.all(model.predict(X)[:, 2] == 7.0)


@pytest.mark.parametrize(
    "latent", [None, Latent(RBF([1.0] * 3), 0.1, 0.0), Latent(RBF(), np.nan, 0.0)]
)
def test_an_invalid_result_is_refused(table, latent):
    learner = Fixed(latent)
    match = r"latent_learner=.*its method learn returned.*check_learner"
    with pytest.raises(ValueError, match=match):
        IndependentGP(RBF(), latent_learner=learner).fit(*table)
