"""Cholesky factors in batches, and the one jitter policy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.arrays import JITTERS, JitterWarning, NumericalError, factor

BATCHES = [(), (4,), (2, 3)]


def positive_definite(rng, *shape):
    A = rng.normal(size=(*shape, shape[-1]))
    return A @ np.swapaxes(A, -1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("batch", BATCHES)
def test_everything_agrees_with_numpy(rng, batch):
    A, b = positive_definite(rng, *batch, 5), rng.normal(size=(*batch, 5, 2))
    before = A.copy()
    L = factor(A)
    assert_array_equal(A, before)
    assert_allclose(L.lower, np.linalg.cholesky(A), atol=1e-12)
    assert_allclose(L.inverse(), np.linalg.inv(A), atol=1e-12)
    assert_allclose(L.solve(b), np.linalg.solve(A, b), atol=1e-12)
    assert_allclose(L.half_solve(b), np.linalg.solve(np.linalg.cholesky(A), b), atol=1e-12)
    assert_allclose(L.logdet(), np.linalg.slogdet(A)[1], atol=1e-12)
    assert_array_equal(L.jitter, np.zeros(batch))


def test_a_sound_matrix_needs_no_jitter_and_no_warning(rng):
    L = factor(positive_definite(rng, 3, 4))
    assert L.checked("matrix") is L


def with_eigenvalue(rng, smallest, n=6):
    """A matrix whose mean diagonal is 1 and whose smallest eigenvalue is this."""
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    rest = (n - smallest) / (n - 1)
    return Q @ np.diag([smallest, *[rest] * (n - 1)]) @ Q.T


@pytest.mark.parametrize(("smallest", "jitter"), [(-3e-11, 1e-10), (-3e-9, 1e-8), (-3e-7, 1e-6)])
def test_jitter_is_the_least_that_works_and_is_announced(rng, smallest, jitter):
    A = with_eigenvalue(rng, smallest)
    L = factor(A)
    assert_allclose(L.jitter, jitter)
    assert_allclose(L.lower @ L.lower.T, A + jitter * np.eye(6), atol=1e-14)
    with pytest.warns(JitterWarning, match=rf"covariance of test .* {jitter:g} of its mean"):
        L.checked("covariance of test")


def test_jitter_is_relative_to_the_size_of_the_matrix(rng):
    A = with_eigenvalue(rng, -3e-9)
    assert_allclose([factor(1e-12 * A).jitter, factor(1e12 * A).jitter], 1e-8)


def test_jitter_goes_only_to_the_matrices_that_need_it(rng):
    sound, shaky = positive_definite(rng, 6), with_eigenvalue(rng, -3e-9)
    L = factor(np.stack([sound, shaky]))
    assert_allclose(L.jitter, [0.0, 1e-8])
    assert_array_equal(L.lower[0], factor(sound).lower)


@pytest.mark.parametrize("hopeless", [-1e-5, np.nan, np.inf])
def test_beyond_the_largest_jitter_it_raises_and_says_what_to_look_for(rng, hopeless):
    A = with_eigenvalue(rng, hopeless) if np.isfinite(hopeless) else np.full((2, 2), hopeless)
    L = factor(A)
    assert np.isnan(L.jitter)
    with pytest.raises(NumericalError, match=f"covariance of test.*{JITTERS[-1]:g}.*duplicated"):
        L.checked("covariance of test")
