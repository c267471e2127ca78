"""Patterns: which outputs are predicted, and which are known at the location."""

import sys

import numpy as np
import pytest

from emgpr.observations import Observations
from emgpr.stacking import known_sets, patterns_in_sample
from emgpr.stacking.patterns import KnownOutputs, patterns_left_out, table_pattern

NAN = np.nan


def as_lists(patterns):
    return {pattern: rows.tolist() for pattern, rows in patterns.items()}


def test_rows_are_grouped_by_the_outputs_that_are_known():
    sample = np.array([[1, NAN, NAN], [1, 2, NAN], [NAN, NAN, NAN], [3, NAN, NAN], [1, 2, 3]])
    assert as_lists(patterns_in_sample(sample)) == {
        (1, (0,)): [0, 3],
        (2, (0,)): [0, 3],
        (2, (0, 1)): [1],
    }


def test_every_missing_output_of_a_row_is_predicted_once(rng):
    sample = np.where(rng.uniform(size=(60, 4)) < 0.5, NAN, 1.0)
    found = np.zeros((60, 4), int)
    for (d, known), rows in patterns_in_sample(sample).items():
        found[rows, d] += 1
        expected = np.isin(np.arange(4), known)
        assert (~np.isnan(sample[rows]) == expected).all()
    something = ~np.isnan(sample).all(axis=1)
    assert (found == np.isnan(sample) * something[:, None]).all()


def test_patterns_without_known_outputs_are_left_out():
    assert known_sets(np.zeros((3, 2), bool)) == []


def test_a_left_out_reading_asks_for_its_output_given_the_other_sets():
    """Site 0: all outputs left out together; site 1: one by one; site 2: output 1 is missing."""
    observed = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1]], bool)
    sets = np.array([[0, 1, 4], [0, 2, 5], [0, 3, 6]])
    assert as_lists(patterns_left_out(observed, sets)) == {
        (0, (1, 2)): [1],
        (0, (2,)): [2],
        (1, (0, 2)): [1],
        (2, (0, 1)): [1],
        (2, (0,)): [2],
    }


def line(*columns):
    x = np.arange(len(columns[0]), dtype=float)[:, None]
    return Observations.from_table(x, np.column_stack(columns))


def test_a_complete_table_asks_for_an_output_given_all_others():
    table = line(np.ones(9), np.ones(9), np.ones(9))
    found = table_pattern(table, 1, 1.0)
    assert (found.pattern, found.n_missing, found.in_gap) == ((1, (0, 2)), 0, False)


def test_the_most_frequent_pattern_of_missing_readings_is_returned():
    a, b, c = np.ones((3, 30))
    b[3:12:2] = c[20] = NAN
    b[[15, 20]] = NAN
    a[15] = NAN
    found = table_pattern(line(a, b, c), 1, 1.0)
    assert (found.pattern, found.n_missing, found.in_gap) == ((1, (0, 2)), 5, False)


@pytest.mark.parametrize(("n_missing", "in_gap"), [(2, False), (20, True)])
def test_a_gap_is_far_from_the_readings_of_the_output(n_missing, in_gap):
    b = np.ones(40)
    b[10 : 10 + n_missing] = NAN
    table = line(np.ones(40), b)
    found = table_pattern(table, 1, 1.0)
    assert (found.pattern, found.n_missing, found.in_gap) == ((1, (0,)), n_missing, in_gap)


def test_scattered_readings_are_no_gap_however_rare_they_are(rng):
    x = rng.uniform(size=(300, 2))
    Y = np.ones((300, 2))
    Y[15:, 1] = NAN
    assert not table_pattern(Observations.from_table(x, Y), 1, 1.0).in_gap


def test_repeated_measurements_do_not_make_a_gap():
    """Sites that were measured twice are at the same distance from others as before."""
    b = np.ones(40)
    b[[7, 15, 30]] = NAN
    x, Y = np.arange(40.0)[:, None], np.column_stack([np.ones(40), b])
    twice = Observations.from_table(np.vstack([x, x]), np.vstack([Y, Y]))
    assert not table_pattern(twice, 1, 1.0).in_gap


def test_a_sample_of_many_missing_readings_tells_whether_they_are_in_a_gap(rng, monkeypatch):
    x = rng.uniform(size=(600, 2))
    for missing in (x[:, 0] < 0.4, rng.uniform(size=600) < 0.4):
        Y = np.column_stack([np.ones(600), np.where(missing, NAN, 1.0)])
        exact = table_pattern(Observations.from_table(x, Y), 1, 1.0)
        with monkeypatch.context() as limited:
            limited.setattr("emgpr.stacking.patterns.MAX_MISSING", 50)
            limited.setattr(sys.modules["emgpr.latents.search_space"], "MAX_PAIRS", 50)
            assert table_pattern(Observations.from_table(x, Y), 1, 1.0) == exact


@pytest.mark.parametrize("D", [1, 3, 20])
def test_known_sets_are_the_different_rows(rng, D):
    known = rng.uniform(size=(5, D))[rng.integers(5, size=80)] < 0.5
    rows, of_row = np.unique(known, axis=0, return_inverse=True)
    expected = [
        (tuple(np.flatnonzero(row)), np.flatnonzero(of_row.ravel() == i).tolist())
        for i, row in enumerate(rows)
        if row.any()
    ]
    assert [(found, at.tolist()) for found, at in known_sets(known)] == expected


def known_outputs(observed):
    """What is known at the sites of a table, with outputs that are correlated with the first."""
    observed = np.array(observed, bool)
    noise = np.random.default_rng(0).normal(size=observed.shape)
    y = noise[:1] + 0.2 * np.arange(len(observed))[:, None] ** 2 * noise
    table = Observations(np.arange(len(y.T))[:, None].astype(float), y, observed)
    return KnownOutputs.in_table(table, np.arange(len(y.T)))


def test_sets_that_were_measured_together_often_enough_are_kept():
    usable = known_outputs(np.ones((3, 12)))
    assert [usable.reduce(p) for p in ((0, (1, 2)), (2, (1,)))] == [(0, (1, 2)), (2, (1,))]


def test_outputs_that_were_not_measured_together_are_not_used_together():
    """Outputs 1 and 2 were never measured at the same site; 1 is more correlated with 0."""
    observed = np.ones((3, 40), bool)
    observed[1, ::2] = observed[2, 1::2] = False
    usable = known_outputs(observed)
    assert usable.reduce((0, (1, 2))) == (0, (1,))
    assert usable.reduce((0, (2,))) == (0, (2,))
    assert usable.reduce((1, (0, 2))) == (1, (0,))
    assert usable.reduce((1, (2,))) == (1, ())


def test_large_sets_are_kept_if_they_are_complete_or_frequent():
    observed = np.ones((6, 60), bool)
    observed[5, :10] = False  # 0 to 4 are known at ten sites
    usable = known_outputs(observed)
    assert usable.reduce((0, (1, 2, 3, 4, 5))) == (0, (1, 2, 3, 4, 5))
    assert usable.reduce((5, (0, 1, 2, 3, 4))) == (5, (0, 1, 2, 3, 4))
    assert usable.reduce((0, (2, 3, 4, 5))) == (0, (2, 3, 4))  # the most correlated ones
    observed[1:, :10] = True
    observed[1, :10] = False  # 0 and 2 to 5 are known at ten sites
    assert known_outputs(observed).reduce((1, (0, 2, 3, 4, 5))) == (1, (0, 2, 3, 4, 5))


def test_only_the_sites_that_are_scored_count():
    observed = np.ones((2, 40), bool)
    table = Observations(np.arange(40.0)[:, None], np.zeros((2, 40)), observed)
    few, enough = (KnownOutputs.in_table(table, np.arange(n)) for n in (9, 10))
    assert (few.reduce((0, (1,))), enough.reduce((0, (1,)))) == ((0, ()), (0, (1,)))
