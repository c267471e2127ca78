"""Cholesky factors of batches against NumPy, on the CPU and on a device, and the jitter policy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.arrays import (
    JITTERS,
    CholeskyFactor,
    JitterWarning,
    NumericalError,
    cholesky,
    to_device,
    to_numpy,
)

BATCHES = [(), (4,), (2, 3)]


def positive_definite(rng, *shape):
    A = rng.normal(size=(*shape, shape[-1]))
    return A @ np.swapaxes(A, -1, -2) + np.eye(shape[-1])


def with_smallest_eigenvalue(rng, smallest, n=6):
    """A matrix whose mean diagonal is 1 and whose smallest eigenvalue is this."""
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    others = (n - smallest) / (n - 1)
    return Q @ np.diag([smallest, *[others] * (n - 1)]) @ Q.T


@pytest.mark.parametrize("batch", BATCHES)
def test_factor_solutions_and_inverse_agree_with_numpy(rng, batch):
    A, b = positive_definite(rng, *batch, 5), rng.normal(size=(*batch, 5, 2))
    before = A.copy()
    L = cholesky(A)
    assert_array_equal(A, before)
    assert_allclose(L.lower, np.linalg.cholesky(A), atol=1e-12)
    assert_allclose(L.inverse(), np.linalg.inv(A), atol=1e-12)
    assert_allclose(L.solve(b), np.linalg.solve(A, b), atol=1e-12)
    assert_allclose(L.half_solve(b), np.linalg.solve(np.linalg.cholesky(A), b), atol=1e-12)
    assert_allclose(L.logdet(), np.linalg.slogdet(A)[1], atol=1e-12)
    assert_array_equal(L.jitter, np.zeros(batch))
    assert L.checked("matrix") is L  # without a warning


@pytest.mark.parametrize("batch", BATCHES)
def test_overwriting_the_matrices_gives_the_same_results(rng, batch):
    A, b = positive_definite(rng, *batch, 5), rng.normal(size=(*batch, 5, 1))
    assert_allclose(cholesky(A.copy).solve(b), np.linalg.solve(A, b), atol=1e-12)
    triangle = np.tril(cholesky(A.copy).inverse_triangle())
    assert_allclose(triangle, np.tril(np.linalg.inv(A)), atol=1e-12)
    triangle = np.tril(cholesky(A.copy).inverse_less_square(b))
    difference = np.linalg.inv(A) - b @ np.swapaxes(b, -1, -2)
    assert_allclose(triangle, np.tril(difference), atol=1e-12)


@pytest.mark.parametrize("batch", BATCHES)
def test_the_upper_triangle_is_not_read(rng, batch):
    A = positive_definite(rng, *batch, 5)
    lower = np.where(np.tri(5, dtype=bool), A, np.nan)
    assert_allclose(cholesky(lower.copy).logdet(), cholesky(A).logdet(), rtol=1e-13)


def test_a_large_inverse_is_mirrored_block_by_block(rng):
    A = positive_definite(rng, 300)
    assert_allclose(cholesky(A).inverse(), np.linalg.inv(A), atol=1e-10)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_an_inverse_in_place_does_not_depend_on_the_memory_layout(rng, layout):
    A = positive_definite(rng, 70) + 70 * np.eye(70)
    factor = CholeskyFactor(layout(np.linalg.cholesky(A)), np.zeros(()))
    assert_allclose(np.tril(factor.inverse_triangle()), np.tril(np.linalg.inv(A)), atol=1e-12)


@pytest.mark.parametrize(("smallest", "jitter"), [(-3e-11, 1e-10), (-3e-9, 1e-8), (-3e-7, 1e-6)])
def test_jitter_is_the_least_that_works_and_is_announced(rng, smallest, jitter):
    A = with_smallest_eigenvalue(rng, smallest)
    L = cholesky(A)
    assert_allclose(L.jitter, jitter)
    assert_allclose(L.lower @ L.lower.T, A + jitter * np.eye(6), atol=1e-14)
    with pytest.warns(JitterWarning, match=rf"covariance of test .* {jitter:g} times its mean"):
        L.checked("covariance of test")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_jitter_is_found_whether_or_not_the_matrix_is_overwritten(rng, overwrite, layout):
    A = with_smallest_eigenvalue(rng, -3e-9)

    def make():
        return layout(A.copy())

    L = cholesky(make if overwrite else make())
    lower = np.tril(L.lower)
    assert_allclose(L.jitter, 1e-8)
    assert_allclose(lower @ lower.T, A + 1e-8 * np.eye(6), atol=1e-14)


def test_jitter_is_relative_to_the_size_of_the_matrix(rng):
    A = with_smallest_eigenvalue(rng, -3e-9)
    assert_allclose([cholesky(1e-12 * A).jitter, cholesky(1e12 * A).jitter], 1e-8)


def test_jitter_is_added_only_to_the_matrices_that_need_it(rng):
    definite, indefinite = positive_definite(rng, 6), with_smallest_eigenvalue(rng, -3e-9)
    L = cholesky(np.stack([definite, indefinite]))
    assert_allclose(L.jitter, [0.0, 1e-8])
    assert_array_equal(L.lower[0], cholesky(definite).lower)


@pytest.mark.parametrize("hopeless", [-1e-5, np.nan, np.inf])
def test_beyond_the_largest_jitter_an_error_names_the_usual_causes(rng, hopeless):
    if np.isfinite(hopeless):
        A = with_smallest_eigenvalue(rng, hopeless)
    else:
        A = np.full((2, 2), hopeless)
    L = cholesky(A)
    assert np.isnan(L.jitter)
    with pytest.raises(NumericalError, match=f"covariance of test.*{JITTERS[-1]:g}.*duplicated"):
        L.checked("covariance of test")


def test_a_device_has_the_same_jitter_policy(rng, device):
    sound, indefinite = positive_definite(rng, 6), with_smallest_eigenvalue(rng, -3e-9)
    A = np.stack([sound, indefinite, np.full((6, 6), np.nan)])
    L = cholesky(to_device(A, device))
    assert_allclose(to_numpy(L.jitter), [0.0, 1e-8, np.nan])
    assert_allclose(to_numpy(L.lower)[2], np.eye(6))
    with pytest.raises(NumericalError, match="covariance of test"):
        L.checked("covariance of test")
    with pytest.warns(JitterWarning, match="1e-08 times its mean"):
        cholesky(to_device(A[:2], device)).checked("covariance of test")
