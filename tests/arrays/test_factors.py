"""Cholesky factors in batches, and the one jitter policy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.arrays import JITTERS, JitterWarning, NumericalError, factor, fetch, products, put
from emgpr.arrays.lapack import inverse_triangle

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


@pytest.mark.parametrize("batch", BATCHES)
def test_what_may_be_overwritten_gives_the_same(rng, batch):
    A, b = positive_definite(rng, *batch, 5), rng.normal(size=(*batch, 5, 1))
    assert_allclose(factor(A.copy).solve(b), np.linalg.solve(A, b), atol=1e-12)
    below = np.tril(factor(A.copy).inverse_triangle())
    assert_allclose(below, np.tril(np.linalg.inv(A)), atol=1e-12)
    below = np.tril(factor(A.copy).inverse_less_square(b))
    less = np.linalg.inv(A) - b @ np.swapaxes(b, -1, -2)
    assert_allclose(below, np.tril(less), atol=1e-12)


@pytest.mark.parametrize("batch", BATCHES)
def test_what_is_above_the_diagonal_is_not_read(rng, batch):
    A = positive_definite(rng, *batch, 5)
    below = np.where(np.tri(5, dtype=bool), A, np.nan)
    assert_allclose(factor(below.copy).logdet(), factor(A).logdet(), rtol=1e-13)


def test_an_inverse_of_several_blocks_is_mirrored_whole(rng):
    A = positive_definite(rng, 300)
    assert_allclose(factor(A).inverse(), np.linalg.inv(A), atol=1e-10)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_jitter_is_found_whether_or_not_the_matrix_is_overwritten(rng, overwrite, turned):
    A = with_eigenvalue(rng, -3e-9)

    def make():
        return np.asfortranarray(A) if turned else A.copy()

    L = factor(make if overwrite else make())
    lower = np.tril(L.lower)
    assert_allclose(L.jitter, 1e-8)
    assert_allclose(lower @ lower.T, A + 1e-8 * np.eye(6), atol=1e-14)


@pytest.mark.parametrize("leaf", [640, 4, 2, 1])
@pytest.mark.parametrize("batch", BATCHES)
def test_a_device_gives_the_same(rng, device, batch, leaf, monkeypatch):
    monkeypatch.setattr(products, "LEAF", leaf)
    A, b = positive_definite(rng, *batch, 5), rng.normal(size=(*batch, 5, 2))
    ours, theirs = factor(A), factor(put(A, device))
    there = put(b, device)
    pairs = [
        (ours.lower, theirs.lower),
        (ours.jitter, theirs.jitter),
        (ours.logdet(), theirs.logdet()),
        (ours.solve(b), theirs.solve(there)),
        (ours.half_solve(b), theirs.half_solve(there)),
        (ours.inverse(), theirs.inverse()),
        (np.tril(factor(A).inverse_triangle()), np.tril(fetch(theirs.inverse_triangle()))),
    ]
    v = b[..., :1]
    less = factor(A).inverse_less_square(v), theirs.inverse_less_square(put(v, device))
    pairs.append(tuple(np.tril(fetch(each)) for each in less))
    for own, other in pairs:
        assert_allclose(fetch(other), own, atol=1e-12)


def test_a_device_has_the_same_jitter_policy(rng, device):
    A = np.stack([positive_definite(rng, 6), with_eigenvalue(rng, -3e-9), np.full((6, 6), np.nan)])
    L = factor(put(A, device))
    assert_allclose(fetch(L.jitter), [0.0, 1e-8, np.nan])
    assert_allclose(fetch(L.lower)[2], np.eye(6))
    with pytest.raises(NumericalError, match="covariance of test"):
        L.checked("covariance of test")
    with pytest.warns(JitterWarning, match="1e-08 of its mean"):
        factor(put(A[:2], device)).checked("covariance of test")


def test_an_inverse_in_place_of_what_lies_by_columns(rng):
    A = rng.normal(size=(70, 70))
    L = np.linalg.cholesky(A @ A.T + 70 * np.eye(70))
    expected = np.tril(np.linalg.inv(L @ L.T))
    for lies in (np.ascontiguousarray, np.asfortranarray):
        inverse = inverse_triangle(lies(L.copy()), overwrite=True)
        assert_allclose(np.tril(inverse), expected, atol=1e-12)
