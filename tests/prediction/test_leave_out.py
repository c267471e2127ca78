"""Readings predicted from the others, against removing one set after another."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.arrays import JitterWarning
from emgpr.observations import Observations
from emgpr.prediction import (
    GaussianMixture,
    LMCModel,
    condition,
    condition_on_neighbours,
    leave_out,
    leave_out_from_batch,
    leave_out_from_neighbours,
    noise_given_sample,
)
from emgpr.prediction.leave_out import left_out_together
from tests.simulated import world

module = sys.modules[leave_out.__module__]

WORLDS = {
    "missing, correlated noise, repeated sites": {
        "missing": 0.3, "correlated": True, "repeated": True
    },
    "one output": {"D": 1, "Q": 2, "k": 1},
    "no transfer": {"separate": True, "missing": 0.3, "repeated": True},
    "an output without a signal": {"blank": True, "missing": 0.2},
}  # fmt: skip
BY = ["site", "output", "anything"]
N = 6


@dataclass(frozen=True)
class Case:
    """A table, a model of two members, and which readings are left out together."""

    table: Observations
    model: LMCModel
    groups: np.ndarray
    anything: np.ndarray

    def sets(self, by):
        D = self.table.n_outputs
        if by == "output":
            return np.arange(D * N).reshape(D, N)
        if by == "anything":
            return self.anything
        return np.tile(np.arange(N) if by == "site" else self.groups, (D, 1))


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def case(request, rng):
    return case_of(rng, request.param)


def case_of(rng, given):
    given = dict(given)
    repeated, separate, blank = (given.pop(key, False) for key in ("repeated", "separate", "blank"))
    made = world(rng, N=N, **given)
    X = made.X.copy()
    Q, D, k = made.W.shape
    if repeated:
        X[3] = X[2]
    W = rng.normal(size=(2, Q, D, k))
    if separate:
        W = np.stack([np.eye(D)[..., None], 2 * np.eye(D)[..., None]])
    if blank:
        W[:, :, 1] = 0.0
    table = Observations.from_table(X, made.Y)
    return Case(
        table, made.ensemble(W), rng.integers(3, size=N), rng.integers(4, size=made.Y.T.shape)
    )


def by_removal(case: Case, sets, predict, batch=None) -> GaussianMixture:
    """The definition: remove a set, condition on the rest, and predict its readings."""
    table, noise = case.table, case.model.noise
    mean, cov = np.full((2, N, len(noise)), np.nan), np.full((2, N, *noise.shape), np.nan)
    no_prior = np.zeros((1, *noise.shape))
    for label in np.unique(sets[table.observed]):
        gone = table.observed & (sets == label)
        kept = table.observed & ~gone
        rest = Observations(table.x, np.where(kept, table.y, 0.0), kept)
        for i in np.flatnonzero(gone.any(axis=0)):
            d = np.flatnonzero(gone[:, i])
            sample = np.where(kept[:, i], table.y[:, i], np.nan)[None]
            # A member with a batch also conditions on what remains of the sample itself.
            given = rest if batch is None else rest.at(np.union1d(batch, [i]))
            signals = predict(given, table.x[[i]], case.model)
            readings, _, own = noise_given_sample(signals, no_prior, noise, sample)
            mean[:, i, d] = readings.mean[:, 0, d]
            cov[:, i, d[:, None], d] = (readings.cov[:, 0] + own[0])[:, d[:, None], d]
    return GaussianMixture(mean, cov)


def agrees(fast: GaussianMixture, slow: GaussianMixture):
    assert_allclose(fast.mean, slow.mean, rtol=1e-8, atol=1e-8)
    together = ~np.isnan(slow.cov)
    assert_allclose(fast.cov[together], slow.cov[together], rtol=1e-8, atol=1e-8)
    apart = ~together & ~np.isnan(fast.cov)
    assert_array_equal(fast.cov[apart], 0.0)


@pytest.mark.parametrize("by", BY)
def test_one_inverse_replaces_removing_every_set(case, by):
    sets = case.sets(by)
    agrees(leave_out(case.table, sets, case.model), by_removal(case, sets, condition))


@pytest.mark.parametrize("by", BY)
def test_so_it_does_with_neighbours(case, by):
    def near(*given):
        return condition_on_neighbours(*given, 3)

    # Which of two repeated sites is nearer is arbitrary: here they are not quite the same.
    x = case.table.x + 1e-6 * np.arange(N)[:, None]
    case, sets = replace(case, table=replace(case.table, x=x)), case.sets(by)
    fast = leave_out_from_neighbours(case.table, sets, case.model, 3)
    agrees(fast, by_removal(case, sets, near))
    some = np.array([5, 1, 4])
    few = leave_out_from_neighbours(case.table, sets, case.model, 3, some)
    agrees(few, GaussianMixture(fast.mean[:, some], fast.cov[:, some]))


@pytest.mark.parametrize("by", BY)
def test_so_it_does_with_a_batch(case, by):
    batch, sets = np.array([0, 2, 5]), case.sets(by)
    slow = by_removal(case, sets, condition, batch)
    for member in range(2):
        fast = leave_out_from_batch(case.table, batch, sets, case.model.members([member]))
        agrees(fast, GaussianMixture(slow.mean[[member]], slow.cov[[member]]))


@pytest.fixture
def one(rng):
    return case_of(rng, WORLDS["missing, correlated noise, repeated sites"])


@pytest.mark.parametrize("how", ["all", "neighbours", "batch"])
def test_readings_with_negative_labels_are_used_but_not_predicted(one, how):
    """Others are predicted as if these readings were sets of their own."""
    table, D = one.table, one.table.n_outputs
    labels = one.sets("output")
    kept = np.where(np.arange(D)[:, None] == 0, labels, -1)

    def left_out(sets):
        if how == "all":
            return leave_out(table, sets, one.model)
        if how == "batch":
            return leave_out_from_batch(table, np.arange(4), sets, one.model.members([0]))
        return leave_out_from_neighbours(table, sets, one.model, 3)

    found, expected = left_out(kept), left_out(labels)
    read = table.observed[0]
    assert_allclose(found.mean[:, read, 0], expected.mean[:, read, 0])
    assert_allclose(found.cov[:, read, 0, 0], expected.cov[:, read, 0, 0])
    assert not found.mean[:, :, 1:][:, table.observed[1:].T].any()


def test_a_batch_of_all_sites_is_all(one):
    given = one.sets("groups"), one.model.members([0])
    everything = leave_out_from_batch(one.table, np.arange(N), *given)
    agrees(everything, leave_out(one.table, *given))


@pytest.mark.parametrize("kind", ["no transfer", "missing, correlated noise, repeated sites"])
def test_a_batch_may_hold_no_reading_of_an_output(rng, kind):
    """Here of the last one."""
    one = case_of(rng, WORLDS[kind])
    observed = one.table.observed.copy()
    observed[2, [0, 2, 5]], observed[2, 1] = False, True
    case = replace(one, table=replace(one.table, observed=observed))
    batch, sets = np.array([0, 2, 5]), case.sets("site")
    slow = by_removal(case, sets, condition, batch)
    fast = leave_out_from_batch(case.table, batch, sets, case.model.members([0]))
    agrees(fast, GaussianMixture(slow.mean[[0]], slow.cov[[0]]))


def test_chunks_change_nothing(one, monkeypatch):
    given = one.table, one.sets("output"), one.model, 3
    whole = leave_out_from_neighbours(*given)
    monkeypatch.setattr(module, "chunk_bytes", lambda device: 1.0)
    agrees(leave_out_from_neighbours(*given), whole)


def noted_sizes(monkeypatch):
    """Return a list to which the shapes of all tables that are factorised are added."""
    sizes, real = [], module.factor_readings

    def noted(table, *given):
        sizes.append(table.x.shape[:2])
        return real(table, *given)

    monkeypatch.setattr(module, "factor_readings", noted)
    return sizes


def test_chunks_fit_the_memory(one, monkeypatch):
    """n² (3 D² + Q + 2) numbers for each site, with its neighbours in a block of n sites."""
    sizes = noted_sizes(monkeypatch)
    given = one.table, one.sets("site"), one.model.members([0]), 2
    leave_out_from_neighbours(*given)
    [(n_blocks, n)] = sizes
    assert n_blocks == int(one.table.observed.any(axis=0).sum())
    sizes.clear()
    monkeypatch.setattr(module, "chunk_bytes", lambda device: 4.5 * 8 * n**2 * (27 + 3 + 2))
    leave_out_from_neighbours(*given)
    sizes = [m for m, _ in sizes]
    assert sizes == [4] * (n_blocks // 4) + [n_blocks % 4] * (n_blocks % 4 > 0)


def test_readings_of_a_site_with_the_same_neighbours_share_a_factorisation(rng, monkeypatch):
    """In a table without missing readings, all of them: as many systems as sites."""
    complete = case_of(rng, {"D": 3})
    sizes = noted_sizes(monkeypatch)
    leave_out_from_neighbours(complete.table, complete.sets("output"), complete.model, 3)
    assert [m for m, _ in sizes] == [N] * complete.model.n_members


@pytest.mark.parametrize("n_sets", [3, 1])
def test_readings_far_away_are_found_in_a_tree_of_the_remaining_ones(one, monkeypatch, n_sets, rng):
    """If many readings are left out together; with a single set, none remains."""
    x = rng.uniform(size=(60, 2))
    table = Observations.from_table(x, np.where(rng.uniform(size=(60, 3)) < 0.2, np.nan, 1.0))
    sets = np.sort(rng.integers(n_sets, size=(3, 60)))
    plain = leave_out_from_neighbours(table, sets, one.model, 4)
    monkeypatch.setattr(module, "MAX_SEARCHED", 8)
    found = leave_out_from_neighbours(table, sets, one.model, 4)
    assert_allclose(found.mean, plain.mean, rtol=1e-9)
    assert_allclose(found.cov, plain.cov, rtol=1e-9)


@pytest.mark.parametrize("by", ["site", "output"])
def test_on_a_device_it_is_the_same(one, device, by):
    sets, first = one.sets(by), one.model.members([0])
    for function, given in [
        (leave_out, (one.table, sets, one.model)),
        (leave_out_from_neighbours, (one.table, sets, one.model, 3)),
        (leave_out_from_batch, (one.table, np.arange(0, N, 2), sets, first)),
    ]:
        here, there = function(*given), function(*given, device=device)
        assert_allclose(there.mean, here.mean, rtol=1e-8, atol=1e-9)
        assert_allclose(there.cov, here.cov, rtol=1e-8, atol=1e-9)


def test_a_covariance_that_needs_jitter_is_reported(rng):
    made = world(rng, Q=1, D=1, k=1, N=3)
    twice = made.observations.at([0, 1, 2, 0, 1, 2])
    model = LMCModel(made.kernels, made.W[None], np.zeros((1, 1)))
    with pytest.warns(JitterWarning, match="covariance of the 6 readings"):
        leave_out(twice, np.arange(6)[None], model)


# --- which outputs are left out together at which sites


def together(table, sets):
    return [
        (sites.tolist(), outputs.tolist(), None if sample is None else sample.tolist())
        for sites, outputs, sample in left_out_together(table, np.asarray(sets))
    ]


NAN = np.nan


def tables_equal(found, expected):
    assert [(sites, outputs) for sites, outputs, _ in found] == [e[:2] for e in expected]
    for (_, _, ours), (_, _, theirs) in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert_array_equal(ours, theirs)


@pytest.fixture
def small():
    Y = np.array([[1.0, 2.0], [3.0, NAN], [5.0, 6.0], [NAN, NAN]])
    return Observations.from_table(np.zeros((4, 1)), Y)


def test_sites_that_are_left_out_whole_leave_nothing_of_the_sample(small):
    sets = np.tile(np.arange(4), (2, 1))
    tables_equal(together(small, sets), [([1], [0], None), ([0, 2], [0, 1], None)])


def test_groups_of_sites_are_like_sites(small):
    sets = np.tile([5, 5, 7, 7], (2, 1))
    tables_equal(together(small, sets), [([1], [0], None), ([0, 2], [0, 1], None)])


def test_of_a_reading_that_is_left_out_alone_the_rest_of_the_sample_is_known(small):
    expected = [
        ([1], [0], None),
        ([0, 2], [0], [[NAN, 2.0], [NAN, 6.0]]),
        ([0, 2], [1], [[1.0, NAN], [5.0, NAN]]),
    ]
    tables_equal(together(small, np.arange(8).reshape(2, 4)), expected)


def test_sites_may_differ_in_what_is_left_out_together():
    """At the first site outputs 0 and 2, at the second 1 and 2, whatever their labels."""
    table = Observations.from_table(np.zeros((2, 1)), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    sets = [[9, 1], [0, 0], [9, 0]]
    expected = [
        ([0], [0, 2], [[NAN, 2.0, NAN]]),
        ([0], [1], [[1.0, NAN, 3.0]]),
        ([1], [0], [[NAN, 5.0, 6.0]]),
        ([1], [1, 2], [[4.0, NAN, NAN]]),
    ]
    tables_equal(together(table, sets), expected)
