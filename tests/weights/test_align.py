"""Weights told by common axes: the model stays, members that agree look alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.covariance.dense import coregionalization
from emgpr.weights import aligned


def turned(rng, W):
    """Every member's and every latent's weights rotated, each its own way."""
    *batch, _, k = W.shape
    return W @ np.linalg.qr(rng.normal(size=(*batch, k, k)))[0]


@pytest.mark.parametrize(("D", "k"), [(4, 1), (4, 2), (3, 3), (1, 1), (1, 2), (2, 5)])
def test_the_model_stays(rng, D, k):
    W = rng.normal(size=(5, 3, D, k))
    assert aligned(W).shape == (5, 3, D, min(D, k))
    assert_allclose(coregionalization(aligned(W)), coregionalization(W), atol=1e-12)


@pytest.mark.parametrize(("D", "k"), [(4, 1), (4, 2), (3, 3), (1, 1), (2, 5)])
def test_however_they_were_turned_it_is_the_same(rng, D, k):
    W = rng.normal(size=(5, 3, D, k))
    assert_allclose(aligned(turned(rng, W)), aligned(W), atol=1e-9)


def test_members_that_agree_look_alike(rng):
    one = rng.normal(size=(1, 3, 4, 2))
    W = aligned(turned(rng, np.repeat(one, 6, axis=0)))
    assert_allclose(W, np.broadcast_to(W[:1], W.shape), atol=1e-9)


def test_axes_are_principal_the_first_the_longest_and_point_up(rng):
    (W,) = aligned(rng.normal(size=(1, 3, 4, 2)))
    first, second = W[..., 0], W[..., 1]
    assert_allclose(np.sum(first * second, axis=-1), 0.0, atol=1e-12)
    assert (np.linalg.norm(first, axis=-1) > np.linalg.norm(second, axis=-1)).all()
    assert (W.sum(axis=1) > 0).all()


def test_a_latent_that_is_heard_by_nothing_stays_so(rng):
    W = rng.normal(size=(2, 3, 4, 2))
    W[:, 1] = 0.0
    assert (aligned(W)[:, 1] == 0).all()
