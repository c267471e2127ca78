"""latent_learner="auto": exact while that is affordable, and it says when it is not."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP, load
from emgpr.latents import FITC, auto, choose_learner, poe
from emgpr.observations import Observations


def table(counts, N=60):
    """So many readings of each output."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(N, len(counts)))
    for d, n in enumerate(counts):
        Y[n:, d] = np.nan
    return rng.uniform(size=(N, 2)), Y


@pytest.fixture
def few(monkeypatch):
    """What is affordable is 40 readings."""
    monkeypatch.setattr(auto, "AFFORDABLE", 40)


def test_the_most_readings_of_an_output_decide(few):
    for counts, chosen in {(40, 12): "exact", (12, 41): "poe"}.items():
        learner, why = choose_learner("auto", Observations.from_table(*table(counts)))
        assert learner == chosen
        assert bool(why) == (chosen == "poe")


@pytest.mark.parametrize("given", ["exact", "vfe", FITC(5)])
def test_what_was_asked_for_is_not_doubted(few, given):
    assert choose_learner(given, Observations.from_table(*table([50]))) == (given, "")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_says_what_it_chose_and_why(few, tmp_path):
    X, Y = table([41, 30], N=41)
    with pytest.warns(UserWarning, match=r'latent_learner="auto": .* 41 readings.*Set .*"poe"'):
        model = IndependentGP(RBF(), random_state=0).fit(X, Y)
    assert model.latent_learner_ == "poe"
    assert model.latent_learner == "auto"  # what was given is as it was
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").latent_learner_ == "poe"
    quiet = IndependentGP(RBF(), latent_learner="poe", random_state=0).fit(X, Y)
    assert np.array_equal(quiet.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_while_it_is_affordable_nothing_changes():
    X, Y = table([60, 50])
    settings = {"random_state": 0, "max_iter": 10, "transform": None}
    auto, exact = (EMGPR(latent_learner=own, **settings).fit(X, Y) for own in ("auto", "exact"))
    assert auto.latent_learner_ == "exact"
    assert np.array_equal(auto.predict(X), exact.predict(X))


def test_batches_of_many_sites_are_as_many_as_may_be(rng):
    table = Observations.from_table(rng.uniform(size=(1000, 2)), rng.normal(size=(1000, 1)))
    assert poe.PoE(100, 3).taken(table).n_sites == 300
    assert poe.PoE(100, 30).taken(table).n_sites == 1000
    assert poe.PoE(5000).taken(table) is table
