"""Weights of candidates near an output's readings, in a gap, and in between."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.stacking import CANDIDATES, CandidateWeights
from emgpr.stacking.weights import NEGLIGIBLE, without_negligible

NEAR, FAR = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.1, 0.8])
WEIGHTS = CandidateWeights(NEAR, FAR, (0.01, 0.2), np.array([2.0, 3.0, 1.0]))


def at(distance):
    return WEIGHTS.at(WEIGHTS.far_share(np.atleast_1d(distance)))


@pytest.mark.parametrize(
    ("distances", "weights", "factors"),
    [([0.0, 0.005, 0.01], NEAR, 1.0), ([0.2, 0.5, 1e9], FAR, [[2], [3], [1]])],
    ids=["near", "far"],
)
def test_weights_are_constant_outside_the_two_distances(distances, weights, factors):
    found = at(np.array(distances))
    assert_allclose(found[0], np.tile(weights[:, None], 3))
    assert_allclose(found[1], np.broadcast_to(factors, (3, 3)))


def test_between_the_distances_weights_change_monotonically():
    distances = np.geomspace(0.01, 0.2, 30)
    share = WEIGHTS.far_share(distances)
    assert (np.diff(share) > 0).all()
    assert_allclose(share, np.linspace(0, 1, 30), atol=1e-12)  # linear in the logarithm
    weights, factors = at(distances)
    assert_allclose(weights.sum(axis=0), 1.0)
    for change, sign in zip(np.diff(weights), np.sign(FAR - NEAR), strict=True):
        assert (sign * change > 0).all()
    assert (np.diff(factors[:2]) > 0).all()
    assert_array_equal(factors[2], 1.0)


def test_half_way_is_the_geometric_mean_of_the_distances():
    weights, factors = at(np.sqrt(0.01 * 0.2))
    assert_allclose(weights[:, 0], (NEAR + FAR) / 2)
    assert_allclose(factors[:, 0], [1.5, 2.0, 1.0])


@pytest.mark.parametrize("distances", [(1.0, 1.0), (2.0, 1.0)])
def test_without_two_different_distances_the_weights_are_those_near_readings(distances):
    weights = CandidateWeights(NEAR, FAR, distances)
    assert_array_equal(weights.far_share(np.array([0.0, 1.5, 9.0])), 0.0)


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_a_single_candidate_is_used_everywhere(candidate):
    one = CandidateWeights.of_one(candidate)
    weights, factors = one.at(one.far_share(np.array([0.0, 1.0, 1e9])))
    assert_array_equal(weights, np.repeat([[name == candidate] for name in CANDIDATES], 3, axis=1))
    assert_array_equal(factors, 1.0)
    assert np.isnan(one.log_scores).all()


def test_negligible_weights_are_removed_and_others_keep_their_ratios():
    weights = np.array([0.5 * NEGLIGIBLE, 0.3, 0.7 - 0.5 * NEGLIGIBLE])
    kept = without_negligible(weights)
    assert kept[0] == 0
    assert_allclose(kept.sum(), 1.0)
    assert_allclose(kept[1] / kept[2], weights[1] / weights[2])
    assert_allclose(without_negligible(NEAR), NEAR)
