"""Correlations of signals, and what each latent brings to them."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.covariance.correlation import correlation_parts


def test_parts_sum_to_the_correlations_of_the_signals(rng):
    W, variances = rng.normal(size=(3, 4, 2)), np.array([0.5, 1.0, 2.0])
    B = W @ np.swapaxes(W, 1, 2)
    parts = correlation_parts(B, variances)
    total = np.einsum("qde,q->de", B, variances)
    spread = np.sqrt(np.diagonal(total))
    assert_allclose(parts.sum(axis=0), total / np.outer(spread, spread), rtol=1e-12)
    assert_allclose(parts[1], B[1] / np.outer(spread, spread), rtol=1e-12)


def test_an_output_without_a_signal_has_no_correlations(rng):
    W = rng.normal(size=(2, 3, 1))
    W[:, 1] = 0.0
    parts = correlation_parts(W @ np.swapaxes(W, 1, 2), np.ones(2))
    assert np.isnan(parts[:, 1]).all()
    assert np.isnan(parts[:, :, 1]).all()
    assert_array_equal(np.isfinite(parts[:, ::2, ::2]), True)
