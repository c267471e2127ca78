"""Aligned weights: the model stays, and members that agree have the same weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.covariance import coregionalization
from emgpr.weights import aligned


def rotate(rng, W):
    """Rotate the weights of every member and latent at random."""
    *batch, _, k = W.shape
    return W @ np.linalg.qr(rng.normal(size=(*batch, k, k)))[0]


@pytest.mark.parametrize(("D", "k"), [(4, 1), (4, 2), (3, 3), (1, 1), (1, 2), (2, 5)])
def test_alignment_keeps_the_model_and_does_not_depend_on_rotations(rng, D, k):
    W = rng.normal(size=(5, 3, D, k))
    assert aligned(W).shape == (5, 3, D, min(D, k))
    assert_allclose(coregionalization(aligned(W)), coregionalization(W), atol=1e-12)
    assert_allclose(aligned(rotate(rng, W)), aligned(W), atol=1e-9)


def test_members_that_agree_have_the_same_weights(rng):
    one = rng.normal(size=(1, 3, 4, 2))
    W = aligned(rotate(rng, np.repeat(one, 6, axis=0)))
    assert_allclose(W, np.broadcast_to(W[:1], W.shape), atol=1e-9)


def test_axes_are_principal_longest_first_and_have_positive_sums(rng):
    (W,) = aligned(rng.normal(size=(1, 3, 4, 2)))
    first, second = W[..., 0], W[..., 1]
    assert_allclose(np.sum(first * second, axis=-1), 0.0, atol=1e-12)
    assert (np.linalg.norm(first, axis=-1) > np.linalg.norm(second, axis=-1)).all()
    assert (W.sum(axis=1) > 0).all()


def test_weights_of_zero_stay_zero(rng):
    W = rng.normal(size=(2, 3, 4, 2))
    W[:, 1] = 0.0
    assert (aligned(W)[:, 1] == 0).all()
