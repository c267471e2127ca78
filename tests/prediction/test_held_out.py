"""What is left out and predicted at once, against leaving it out in earnest, one set at a time."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import world

from emgpr.arrays import JitterWarning
from emgpr.observations import Observations
from emgpr.prediction import Belief, condition, condition_on_neighbours, turned_to_readings
from emgpr.prediction.held_out import held_out, held_out_of_batch, held_out_of_neighbours

WORLDS = {
    "missing, rank 2, joined noise, twins": {"missing": 0.3, "correlated": True, "twins": True},
    "full table": {"correlated": True},
    "one output": {"D": 1, "Q": 2, "k": 1},
    "no transfer": {"apart": True, "missing": 0.3, "twins": True},
    "an output that hears nothing": {"deaf": True, "missing": 0.2},
}
BY = ["site", "output", "groups"]
N = 9


@dataclass(frozen=True)
class Case:
    """A table, what governs it, two members' weights, and what leaves together."""

    known: Observations
    kernels: tuple
    W: np.ndarray
    noise: np.ndarray
    groups: np.ndarray

    def sets(self, by):
        D = self.known.n_tasks
        if by == "output":
            return np.arange(D * N).reshape(D, N)
        return np.tile(np.arange(N) if by == "site" else self.groups, (D, 1))


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def case(request, rng):
    setting = dict(request.param)
    twins, apart, deaf = (setting.pop(name, False) for name in ("twins", "apart", "deaf"))
    made = world(rng, N=N, **setting)
    X, Y = made.X.copy(), made.Y.copy()
    Q, D, k = made.W.shape
    if twins:
        X[3], X[6:8] = X[2], X[5]
    W = rng.normal(size=(2, Q, D, k))
    if apart:
        W = np.stack([np.eye(D)[..., None], 2 * np.eye(D)[..., None]])
    if deaf:
        W[:, :, 1] = 0.0
    known = Observations.from_table(X, Y)
    return Case(known, made.kernels, W, made.noise, rng.integers(3, size=N))


def by_removal(case: Case, sets, signals_at, part=None) -> Belief:
    """The definition: remove a set, condition on the rest, and predict what would be read."""
    known, noise = case.known, case.noise
    mean, cov = np.full((2, N, len(noise)), np.nan), np.full((2, N, *noise.shape), np.nan)
    no_prior = np.zeros((1, *noise.shape))
    for label in np.unique(sets[known.seen]):
        gone = known.seen & (sets == label)
        kept = known.seen & ~gone
        rest = Observations(known.x, np.where(kept, known.y, 0.0), kept)
        for i in np.flatnonzero(gone.any(axis=0)):
            of = np.flatnonzero(gone[:, i])
            sample = np.where(kept[:, i], known.y[:, i], np.nan)[None]
            # A member that knows its batch also knows what remains of the sample itself.
            given = rest if part is None else rest.at(np.union1d(part, [i]))
            signals = signals_at(given, known.x[[i]], case.kernels, case.W, noise)
            told, _, left = turned_to_readings(signals, no_prior, noise, sample)
            mean[:, i, of] = told.mean[:, 0, of]
            cov[:, i, of[:, None], of] = (told.cov[:, 0] + left[0])[:, of[:, None], of]
    return Belief(mean, cov)


def agrees(fast: Belief, slow: Belief):
    assert_allclose(fast.mean, slow.mean, rtol=1e-8, atol=1e-8)
    together = ~np.isnan(slow.cov)
    assert_allclose(fast.cov[together], slow.cov[together], rtol=1e-8, atol=1e-8)
    apart = ~together & ~np.isnan(fast.cov)
    assert_allclose(fast.cov[apart], 0.0)


@pytest.mark.parametrize("by", BY)
def test_one_inverse_is_leaving_out_every_set_in_turn(case, by):
    fast = held_out(case.known, case.sets(by), case.kernels, case.W, case.noise)
    agrees(fast, by_removal(case, case.sets(by), condition))


@pytest.mark.parametrize("by", BY)
def test_so_it_is_of_neighbours(case, by):
    def near(*given):
        return condition_on_neighbours(*given, n)

    n = 3

    # Which of two twins is nearer is nobody's business: here they are not quite at one place.
    x = case.known.x + 1e-6 * np.arange(N)[:, None]
    case = replace(case, known=replace(case.known, x=x))
    given = case.known, case.sets(by), case.kernels, case.W, case.noise
    agrees(held_out_of_neighbours(*given, n), by_removal(case, case.sets(by), near))


@pytest.mark.parametrize("by", BY)
def test_so_it_is_of_a_batch(case, by):
    part = np.array([0, 2, 3, 5])
    sets = case.sets(by)
    slow = by_removal(case, sets, condition, part)
    for member in range(2):
        W = case.W[[member]]
        fast = held_out_of_batch(case.known, part, sets, case.kernels, W, case.noise)
        agrees(fast, Belief(slow.mean[[member]], slow.cov[[member]]))


def test_a_batch_of_all_sites_is_all(case):
    given = case.sets("groups"), case.kernels, case.W[:1], case.noise
    everything = held_out_of_batch(case.known, np.arange(N), *given)
    agrees(everything, held_out(case.known, *given))


def test_chunks_change_nothing(case, monkeypatch):
    given = case.known, case.sets("output"), case.kernels, case.W, case.noise, 3
    whole = held_out_of_neighbours(*given)
    monkeypatch.setattr(sys.modules["emgpr.prediction.held_out"], "room", lambda device: 1.0)
    agrees(held_out_of_neighbours(*given), whole)


def test_a_covariance_that_needs_help_is_announced(rng):
    made = world(rng, Q=1, D=1, k=1, N=3)
    twice = Observations.from_table(np.tile(made.X, (2, 1)), np.tile(made.Y, (2, 1)))
    given = twice, np.arange(6)[None], made.kernels, made.W[None], np.zeros((1, 1))
    with pytest.warns(JitterWarning, match="6 readings cross-validated"):
        held_out(*given)
