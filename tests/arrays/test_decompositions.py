"""Decompositions agree with NumPy's, and a second method is used where LAPACK's first one fails."""

import re
from pathlib import Path

import array_api_compat
import numpy as np
import pytest
from numpy.testing import assert_allclose

import emgpr
from emgpr.arrays import (
    JitterWarning,
    NumericalError,
    cholesky,
    decompositions,
    eigh,
    eigvalsh,
    inv,
    inverse_root,
    solve,
    svd,
    to_device,
    to_numpy,
    tridiagonal,
)

RNG = np.random.default_rng(17)
ROOT = RNG.normal(size=(3, 2, 5, 5))
A = ROOT @ np.swapaxes(ROOT, -1, -2) + 0.1 * np.eye(5)
B = RNG.normal(size=(3, 2, 5, 4))
FUNCTIONS = ("eigh", "eigvalsh", "svd", "solve", "inv", "cholesky")


def fail(*_, **__):
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


@pytest.fixture(params=[False, True], ids=["LAPACK succeeds", "LAPACK fails"])
def lapack(request, monkeypatch):
    if request.param:
        for name in FUNCTIONS:
            monkeypatch.setattr(np.linalg, name, fail)


def transposed(M):
    return np.swapaxes(M, -1, -2)


@pytest.mark.usefixtures("lapack")
def test_eigenvectors_compose_the_matrix_in_ascending_order():
    values, vectors = eigh(A)
    assert_allclose(vectors * values[..., None, :] @ transposed(vectors), A, atol=1e-12)
    assert (np.diff(values) >= 0).all()
    assert_allclose(eigvalsh(A), values, rtol=1e-10)


@pytest.mark.usefixtures("lapack")
def test_singular_vectors_compose_the_matrix():
    U, s, Vt = svd(B)
    assert U.shape == (3, 2, 5, 4)
    assert_allclose(U * s[..., None, :] @ Vt, B, atol=1e-12)


@pytest.mark.usefixtures("lapack")
def test_solutions_and_inverses():
    assert_allclose(A @ solve(A, B), B, atol=1e-10)
    assert_allclose(A @ inv(A), np.broadcast_to(np.eye(5), A.shape), atol=1e-10)
    root = inverse_root(A)
    assert_allclose(transposed(root) @ root, inv(A), rtol=1e-8)
    assert_allclose(np.triu(root, 1), 0.0, atol=1e-12)
    assert_allclose(A @ cholesky(A).solve(B), B, atol=1e-10)
    assert_allclose(cholesky(A).half_solve(B), root @ B, atol=1e-10)
    assert_allclose(cholesky(A).inverse(), inv(A), rtol=1e-8)


@pytest.mark.slow
def test_torch_matrices_fall_back_to_the_cpu(monkeypatch):
    pytest.importorskip("torch")
    matrices = to_device(A, "torch")
    linalg = array_api_compat.array_namespace(matrices).linalg

    def fail_in_torch(*_, **__):
        raise linalg.LinAlgError("linalg.eigh: The algorithm failed to converge")

    for name in ("eigh", "eigvalsh", "inv"):
        monkeypatch.setattr(linalg, name, fail_in_torch)
    values, vectors = eigh(matrices)
    assert type(values) is type(vectors) is type(matrices)
    assert_allclose(to_numpy(values), np.linalg.eigvalsh(A), rtol=1e-10)
    assert_allclose(to_numpy(eigvalsh(matrices)), np.linalg.eigvalsh(A), rtol=1e-10)
    assert_allclose(to_numpy(inv(matrices)), np.linalg.inv(A), rtol=1e-8)


def test_a_shifted_matrix_is_decomposed_if_all_algorithms_fail_at_first(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigh", fail)
    original = decompositions.scipy.linalg.eigh
    calls = []

    def fail_twice(*args, **options):
        calls.append(options["driver"])
        return fail() if len(calls) <= 2 else original(*args, **options)

    monkeypatch.setattr(decompositions.scipy.linalg, "eigh", fail_twice)
    assert_allclose(eigh(A[0, 0])[0], np.linalg.eigvalsh(A[0, 0]), rtol=1e-9)
    assert calls == ["ev", "evr", "ev"]


def test_an_error_says_that_nothing_converged(monkeypatch):
    for name in ("eigh", "svd"):
        monkeypatch.setattr(np.linalg, name, fail)
        monkeypatch.setattr(decompositions.scipy.linalg, name, fail)
    with pytest.raises(NumericalError, match="eigenvalues of a matrix with 5 rows"):
        eigh(A)
    with pytest.raises(NumericalError, match="singular values of a 5 × 4 matrix"):
        svd(B)


def test_matrices_that_are_not_finite_are_reported():
    with pytest.raises(NumericalError, match="not finite"):
        eigh(np.full((4, 4), np.nan))


def test_singular_systems_get_jitter_and_a_warning():
    singular = np.ones((2, 2))
    with pytest.warns(JitterWarning, match="matrix of a linear system"):
        assert_allclose(singular @ solve(singular, np.ones((2, 1))), 1.0, rtol=1e-3)
    with pytest.warns(JitterWarning, match="matrix to be inverted"):
        assert np.isfinite(inv(singular)).all()


def test_no_other_module_calls_lapack_without_a_fallback():
    """Experiments on fixed data are exempt."""
    pattern = re.compile(rf"linalg\.({'|'.join(FUNCTIONS)}|lstsq|pinv|eig|eigvals)\(")
    package = Path(emgpr.__file__).parent
    for file in package.rglob("*.py"):
        if not {"arrays", "experiments"} & set(file.relative_to(package).parts):
            assert not pattern.search(file.read_text()), f"{file}: use emgpr.arrays instead"


@pytest.mark.parametrize("n", [1, 2, 5, 90])
def test_a_tridiagonal_matrix_has_the_same_eigenvalues_and_quadratic_forms(n):
    root, b = RNG.normal(size=(n, n)), RNG.normal(size=(n, 3))
    symmetric = root + root.T
    d, e, Qb = tridiagonal(symmetric, b)
    T = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    assert_allclose(np.linalg.eigvalsh(T), np.linalg.eigvalsh(symmetric), atol=1e-10 * n)
    assert_allclose(Qb.T @ T @ Qb, b.T @ symmetric @ b, atol=1e-10 * n)
    assert_allclose(Qb.T @ Qb, b.T @ b, atol=1e-10 * n)
