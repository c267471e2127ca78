"""Factorisation and inversion by torch agree with those by LAPACK."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.arrays import cholesky, to_device, to_numpy, torch_linalg


@pytest.mark.parametrize("rows", [640, 2, 1])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_torch_and_lapack_agree_however_small_the_blocks(rng, device, batch, rows, monkeypatch):
    monkeypatch.setattr(torch_linalg, "MIN_HALVED_ROWS", rows)
    root = rng.normal(size=(*batch, 5, 5))
    A, b = root @ np.swapaxes(root, -1, -2) + np.eye(5), rng.normal(size=(*batch, 5, 2))
    by_lapack, by_torch = cholesky(A), cholesky(to_device(A, device))
    b_torch = to_device(b, device)
    for expected, found in [
        (by_lapack.lower, by_torch.lower),
        (by_lapack.jitter, by_torch.jitter),
        (by_lapack.logdet(), by_torch.logdet()),
        (by_lapack.solve(b), by_torch.solve(b_torch)),
        (by_lapack.half_solve(b), by_torch.half_solve(b_torch)),
        (by_lapack.inverse(), by_torch.inverse()),
    ]:
        assert_allclose(to_numpy(found), expected, atol=1e-12)
    triangles = cholesky(A).inverse_triangle(), by_torch.inverse_triangle()
    expected, found = (np.tril(to_numpy(triangle)) for triangle in triangles)
    assert_allclose(found, expected, atol=1e-12)
    v, v_torch = b[..., :1], b_torch[..., :1]
    triangles = cholesky(A).inverse_less_square(v), by_torch.inverse_less_square(v_torch)
    expected, found = (np.tril(to_numpy(triangle)) for triangle in triangles)
    assert_allclose(found, expected, atol=1e-12)
