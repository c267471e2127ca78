"""Sill matrices by weighted least squares: exact where they can be, and optimal elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from emgpr.cokriging.sills import fit_sills, nearest_semidefinite


def a_problem(rng, D=3, J=10, equal_weights=False):
    """Weights of D × D variograms in J bins, and the basis of a nugget and two structures."""
    lag = np.linspace(0.1, 2.0, J)
    shapes = np.stack([np.ones(J), 1 - np.exp(-3 * lag), 1 - np.exp(-lag)])
    basis = np.tile(shapes[:, :, None, None], (1, 1, D, D))
    weights = rng.uniform(0.5, 2.0, size=(J, D, D))
    weights = np.ones((J, D, D)) if equal_weights else weights + np.swapaxes(weights, 1, 2)
    return basis, weights


def misfit(B, values, basis, weights):
    return float((weights * (values - np.einsum("sde,sjde->jde", B, basis)) ** 2).sum())


@pytest.mark.parametrize("equal_weights", [True, False])
def test_matrices_are_recovered_from_their_own_variograms(rng, equal_weights):
    basis, weights = a_problem(rng, equal_weights=equal_weights)
    roots = rng.normal(size=(3, 3, 3))
    known = roots @ np.swapaxes(roots, 1, 2)
    values = np.einsum("sde,sjde->jde", known, basis)
    B, value, converged = fit_sills(values, basis, weights, tolerance=1e-14, max_sweeps=50_000)
    assert converged
    assert value < 1e-6
    assert_allclose(B, known, atol=0.02)


@pytest.mark.parametrize("equal_weights", [True, False])
def test_no_semidefinite_matrices_fit_better(rng, equal_weights):
    """A general optimiser over B = WWᵀ, from several starts, ends at the same sum of squares."""
    basis, weights = a_problem(rng, equal_weights=equal_weights)
    values = rng.normal(size=weights.shape)
    values = values + np.swapaxes(values, 1, 2)  # far from any semidefinite model
    B, value, converged = fit_sills(values, basis, weights, tolerance=1e-10)
    assert converged
    assert np.linalg.eigvalsh(B).min() > -1e-12
    assert value == pytest.approx(misfit(B, values, basis, weights))

    def objective(w):
        W = w.reshape(3, 3, 3)
        return misfit(W @ np.swapaxes(W, 1, 2), values, basis, weights)

    others = [minimize(objective, rng.normal(size=27)).fun for _ in range(3)]
    assert value == pytest.approx(min(others), rel=1e-4)


def test_the_sum_of_squares_never_increases(rng):
    basis, weights = a_problem(rng)
    values = rng.normal(size=weights.shape)
    values = values + np.swapaxes(values, 1, 2)
    B, before = None, np.inf
    for _ in range(30):
        B, value, _ = fit_sills(values, basis, weights, B, max_sweeps=1)
        assert value <= before * (1 + 1e-12)
        before = value


def test_pairs_without_weight_are_not_coupled(rng):
    basis, weights = a_problem(rng, D=2)
    weights[:, 0, 1] = weights[:, 1, 0] = 0.0
    values = np.einsum("sde,sjde->jde", np.tile(np.eye(2), (3, 1, 1)), basis)
    B, _, _ = fit_sills(values, basis, weights)
    assert_allclose(B[:, 0, 1], 0.0, atol=1e-12)
    no_bins = fit_sills(values[:0], basis[:, :0], weights[:0])
    assert not no_bins[0].any()
    assert no_bins[2]


def test_too_few_sweeps_do_not_converge(rng):
    basis, weights = a_problem(rng)
    values = np.tile(np.eye(3), (10, 1, 1))
    assert not fit_sills(values, basis, weights, max_sweeps=1)[2]


def test_the_nearest_semidefinite_matrix(rng):
    A = rng.normal(size=(4, 4))
    A = A + A.T
    nearest = nearest_semidefinite(A)
    assert np.linalg.eigvalsh(nearest).min() > -1e-12
    values = np.linalg.eigvalsh(A)
    assert np.sum((A - nearest) ** 2) == pytest.approx(np.sum(np.minimum(values, 0) ** 2))
    assert_allclose(nearest_semidefinite(nearest), nearest, atol=1e-12)


def test_outputs_whose_weights_differ_by_orders_of_magnitude(rng):
    """With steps of their own length, the nuggets of all are found, not only of the first."""
    basis, weights = a_problem(rng)
    basis[1:, 0] = 0.0  # at lag 0
    weights[0] *= np.outer([1e4, 1.0, 1.0], [1e4, 1.0, 1.0])
    known = np.tile(np.diag([0.1, 0.5, 0.3]), (3, 1, 1))
    values = np.einsum("sde,sjde->jde", known, basis)
    (B, value, _), (_, slow, _) = (
        fit_sills(values, basis, weights, by_output=own, tolerance=1e-9) for own in (True, False)
    )
    assert value < 1e-2 * slow
    assert np.linalg.eigvalsh(B).min() > -1e-12
    assert value == pytest.approx(misfit(B, values, basis, weights))
    assert_allclose(B, known, atol=0.05)
