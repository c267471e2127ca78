"""Which readings are left out together, and blocks of neighbouring sites."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from emgpr.cross_validation import LeaveOutSets, spatial_blocks
from emgpr.inputs import InputSpec
from emgpr.observations import Observations

N, D = 12, 3
NAMES = ["Cd", "Ni", "Zn"]


@pytest.fixture
def table(rng):
    """Observations of eleven sites of twelve rows: nothing was measured in row 3."""
    rows = np.delete(np.arange(N), 3)
    inputs = InputSpec("EMGPR", None, 2, None, pd.RangeIndex(N), rows)
    sites, readings = rng.uniform(size=(N - 1, 2)), rng.normal(size=(N - 1, D))
    return Observations.from_table(sites, readings), inputs


def build(by, table):
    return LeaveOutSets.build(by, *table, NAMES)


def test_by_site_all_outputs_of_a_site_are_left_out_together(table):
    made = build("site", table)
    assert made.by == "site"
    assert_array_equal(made.sets, np.tile(np.arange(N - 1), (D, 1)))
    assert_array_equal(made.groups, np.arange(N - 1))


def test_by_output_each_reading_is_left_out_alone(table):
    made = build("output", table)
    assert made.by == "output"
    assert len(np.unique(made.sets)) == D * (N - 1)
    assert_array_equal(made.groups, np.arange(N - 1))


def test_by_labels_the_sites_that_share_one_are_left_out_together(table):
    labels = np.array(["north", "south"] * 6, dtype=object)
    labels[3] = None  # nothing was measured there
    made = build(labels, table)
    assert made.by == "2 groups"
    assert_array_equal(made.groups, pd.factorize(np.delete(labels, 3))[0])
    assert_array_equal(made.sets, np.tile(made.groups, (D, 1)))


def test_by_block_at_most_half_as_many_blocks_as_sites_are_left_out(table):
    made = build("block", table)
    assert made.by == "5 groups"
    observations, _ = table
    assert_array_equal(made.groups, spatial_blocks(observations.x, 5, 0))


def test_by_gap_the_other_outputs_of_a_block_are_known(table):
    blocks, made = build("block", table), build("gap", table)
    assert made.by == "gap"
    assert_array_equal(made.groups, blocks.groups)
    for d in range(D):
        assert_array_equal(made.sets[d] == made.sets[d, 0], blocks.groups == blocks.groups[0])
        others = np.delete(made.sets, d, axis=0)
        assert not np.isin(others, made.sets[d]).any()


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (
            "sites",
            'by=\'sites\'; expected "site", "output", "block", "gap", or 12 labels, one for each',
        ),
        (5, "by=5; expected .*spatial_blocks"),
        (np.zeros((12, 2)), r"by \(shape \(12, 2\)\); expected"),
        (np.arange(11), "by has 11 labels; expected .* 12 labels"),
        ([1, np.nan] * 6, r"no label for 5 rows .* first of them rows 1, 5, 7, 9, 11 "),
        (["a"] * 12, "all readings into one group, 'a'"),
    ],
)
def test_labels_that_divide_nothing_are_refused(table, by, message):
    with pytest.raises(ValueError, match=message):
        build(by, table)


@pytest.mark.parametrize("by", ["block", "gap"])
def test_blocks_of_one_location_are_refused(by, rng):
    observations = Observations.from_table(np.zeros((N, 2)), rng.normal(size=(N, D)))
    inputs = InputSpec("EMGPR", None, 2, None, pd.RangeIndex(N), np.arange(N))
    with pytest.raises(ValueError, match=f'by="{by}" leaves out blocks .* at one location; set by'):
        build(by, (observations, inputs))
    build("site", (observations, inputs))


def test_a_group_with_every_reading_of_an_output_is_refused(rng):
    Y = rng.normal(size=(N, D))
    Y[6:, 1] = np.nan
    observations = Observations.from_table(rng.uniform(size=(N, 2)), Y)
    inputs = InputSpec("EMGPR", None, 2, None, pd.RangeIndex(N), np.arange(N))
    with pytest.raises(ValueError, match="Group 'west' contains all 6 readings of output 'Ni'"):
        build(["west"] * 6 + ["east"] * 6, (observations, inputs))


def test_a_block_with_every_reading_of_an_output_is_refused(rng):
    Y = rng.normal(size=(N, D))
    Y[1:, 1] = np.nan
    observations = Observations.from_table(rng.uniform(size=(N, 2)), Y)
    inputs = InputSpec("EMGPR", None, 2, None, pd.RangeIndex(N), np.arange(N))
    with pytest.raises(ValueError, match=r"A block contains all 1 .* 'Ni'.*\. Set by=\"site\"\."):
        build("block", (observations, inputs))
    build("site", (observations, inputs))


def test_blocks_are_of_neighbours_in_any_units(rng):
    X = rng.uniform(size=(80, 2)) * [1.0, 1e4]
    blocks = spatial_blocks(X, 4, random_state=1)
    assert_array_equal(blocks, spatial_blocks(X, 4, random_state=1))
    assert sorted(set(blocks)) == [0, 1, 2, 3]
    assert_array_equal(np.unique(blocks, return_index=True)[1].argsort(), range(4))
    scaled = X / X.std(axis=0)
    centres = np.array([scaled[blocks == b].mean(axis=0) for b in range(4)])
    nearest = np.linalg.norm(scaled[:, None] - centres, axis=-1).argmin(axis=1)
    assert_array_equal(nearest, blocks)


@pytest.mark.parametrize("n", [1, 5, True])
def test_a_number_of_blocks_beyond_the_sites_is_refused(n):
    with pytest.raises(ValueError, match=f"n_blocks={n}; expected a whole number from 2 to 4"):
        spatial_blocks(np.arange(4.0)[:, None], n)
