"""The directions of the parameters that matter for predictions."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern

from emgpr.noise import NoiseParameters
from emgpr.observations import Observations
from emgpr.prediction import ParameterDirections, principal_directions
from emgpr.prediction.neighbours import mean_derivatives_from_neighbours
from tests.simulated import world

pytestmark = pytest.mark.slow
module = sys.modules[principal_directions.__module__]


def every_parameter(model, noise) -> ParameterDirections:
    """One direction for each parameter, in the order of the information matrix."""
    (W,) = model.weights
    t, c = sum(kernel.n_dims for kernel in model.kernels), noise.size
    unit = np.eye(t + c + W.size)
    of_noise = np.tensordot(
        unit[:, t : t + c], noise.derivatives(noise.vector(model.noise)), axes=1
    )
    of_W = unit[:, t + c :].reshape(-1, *W.shape)
    zero, one = np.zeros((len(unit), len(model.noise))), np.ones(len(model.noise))
    return ParameterDirections(unit[:, :t], of_W, of_noise, zero, one)


def information_of(rng, model, noise, size=100.0):
    p = len(every_parameter(model, noise))
    A = rng.normal(size=(p, p))
    return size * A @ A.T / p


@pytest.mark.parametrize("correlated", [False, True])
def test_all_directions_together_have_the_covariance_of_the_parameters(
    rng, correlated, monkeypatch
):
    """J C Jᵀ at any location, with derivatives along each parameter by itself."""
    monkeypatch.setattr(module, "EXPLAINED", 1 - 1e-12)
    made = world(rng, correlated=correlated, missing=0.2)
    noise = NoiseParameters(3, correlated)
    F = information_of(rng, made.model, noise)
    found = principal_directions(F, made.model, noise, made.observations, max_directions=1000)
    x = rng.uniform(size=(4, 2))
    J, slopes = (
        mean_derivatives_from_neighbours(made.observations, x, made.model, 12, directions)
        for directions in (every_parameter(made.model, noise), found)
    )
    assert (module.LOG_PRIOR_STD, module.WEIGHT_PRIOR_STD) == (1.0, 1.0)
    C = np.linalg.inv(F + np.eye(len(F)))
    expected = J @ C @ np.swapaxes(J, 1, 2)
    assert_allclose(slopes @ np.swapaxes(slopes, 1, 2), expected, rtol=1e-5, atol=1e-8)


def test_few_directions_explain_most_of_the_variance(rng):
    made = world(rng, N=40, missing=0.2)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    found = principal_directions(F, made.model, noise, made.observations)
    x = rng.uniform(size=(40, 2))
    J, slopes = (
        mean_derivatives_from_neighbours(made.observations, x, made.model, 16, directions)
        for directions in (every_parameter(made.model, noise), found)
    )
    total = np.trace(J @ np.linalg.inv(F + np.eye(len(F))) @ np.swapaxes(J, 1, 2), 0, 1, 2)
    assert len(found) < len(F)
    assert 0.97 < (slopes**2).sum() / total.sum() < 1 + 1e-9
    few = principal_directions(F, made.model, noise, made.observations, max_directions=2)
    assert len(few) == 2


def test_parameters_that_are_not_free_have_no_uncertainty(rng):
    made = world(rng)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    free = np.ones(len(F), bool)
    free[[0, 4]], free[-made.W.size :] = False, False
    found = principal_directions(F, made.model, noise, made.observations, free=free)
    assert not found.W.any()
    assert not found.theta[:, 0].any()
    assert found.theta[:, 1].any()
    assert found.noise[:, 2, 2].any()


def test_more_information_means_less_uncertainty(rng):
    made = world(rng)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    sizes = [
        (principal_directions(scale * F, made.model, noise, made.observations).theta ** 2).sum()
        for scale in (1.0, 1e4)
    ]
    assert sizes[1] < 1e-2 * sizes[0]


def test_without_information_the_weak_prior_limits_the_uncertainty(rng):
    """Also if the matrix is not quite semidefinite because of rounding errors."""
    made = world(rng)
    noise = NoiseParameters(3, False)
    F = -1e-9 * np.eye(len(information_of(rng, made.model, noise)))
    found = principal_directions(F, made.model, noise, made.observations)
    assert ((found.theta**2).sum(axis=0) <= 1 + 1e-6).all()
    assert ((found.W**2).sum(axis=0) <= 1 + 1e-6).all()


def test_uncertain_means_add_the_variance_of_ordinary_kriging(rng, monkeypatch):
    """With known covariances, it is (1 − 1ᵀK⁻¹k)² times the variance of the mean."""
    monkeypatch.setattr(module, "EXPLAINED", 1 - 1e-12)
    made = world(rng, D=1, Q=1, k=1)
    noise = NoiseParameters(1, False)
    known = np.zeros(3, bool)
    found = principal_directions(
        np.eye(3), made.model, noise, made.observations, free=known,
        mean_covariance=np.array([[0.3]]),
    )  # fmt: skip
    assert_allclose(found.inflation, 1.0)
    assert len(found) == 1
    x = rng.uniform(size=(4, 2))
    slopes = mean_derivatives_from_neighbours(made.observations, x, made.model, 12, found)[:, 0, 0]
    variance = made.W[0, 0, 0] ** 2
    K = variance * made.kernels[0](made.X) + made.noise[0, 0] * np.eye(12)
    k = variance * made.kernels[0](made.X, x)
    assert_allclose(slopes**2, 0.3 * (1 - np.linalg.solve(K, k).sum(axis=0)) ** 2, rtol=1e-8)


def test_the_inflation_is_that_of_an_estimated_variance(rng):
    """If only the weight is uncertain and there is hardly any noise, the variance is ∝ w²."""
    made = replace(world(rng, D=1, Q=1, k=1, noise=1e-9), kernels=(Matern(0.3, nu=0.5),))
    noise, precision = NoiseParameters(1, False), 50.0
    free = np.array([False, False, True])
    found = principal_directions(
        precision * np.eye(3), made.model, noise, made.observations, free=free
    )
    expected = np.exp(4 / (made.W.item() ** 2 * (precision + 1)))
    assert expected < 2
    assert_allclose(found.inflation, expected, rtol=1e-3)
    unknown = principal_directions(
        1e-9 * np.eye(3), replace(made, W=0.1 * made.W).model, noise, made.observations, free=free
    )
    assert_allclose(unknown.inflation, np.e)


def test_rotated_weights_give_the_same_predictions(rng, monkeypatch):
    """The information matrix rotates with the weights, of which only W_q W_qᵀ matters."""
    monkeypatch.setattr(module, "EXPLAINED", 1 - 1e-12)
    made = world(rng, k=2)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    first = len(F) - made.W.size
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    R = np.eye(len(F))
    R[first:, first:] = np.kron(np.eye(made.W.size // 2), turn)
    rotated = replace(made, W=made.W @ turn)
    x = rng.uniform(size=(4, 2))
    variances = []
    for other, information in ((made, F), (rotated, R.T @ F @ R)):
        found = principal_directions(
            information, other.model, noise, made.observations, max_directions=1000
        )
        slopes = mean_derivatives_from_neighbours(made.observations, x, other.model, 12, found)
        variances.append((slopes**2).sum(axis=-1))
    assert_allclose(variances[1], variances[0], rtol=1e-5)


def test_the_order_of_the_sites_does_not_matter(rng):
    made = world(rng, N=70, missing=0.2)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    order = rng.permutation(70)
    tables = (made.observations, Observations.from_table(made.X[order], made.Y[order]))
    one, other = (
        principal_directions(F, made.model, noise, table, max_directions=3) for table in tables
    )
    sign = np.sign((one.theta * other.theta).sum(axis=1))
    assert_allclose(sign[:, None] * other.theta, one.theta, atol=1e-6)


def test_an_output_without_a_signal_is_harmless(rng):
    made = world(rng)
    W, Y = made.W.copy(), made.Y.copy()
    W[:, 1], Y[:, 1] = 0.0, 0.0
    made = replace(made, W=W, Y=Y)
    noise = NoiseParameters(3, False)
    F = information_of(rng, made.model, noise)
    found = principal_directions(F, made.model, noise, made.observations)
    assert np.isfinite(found.W).all()
    silent = replace(made, W=np.zeros_like(W))
    assert len(principal_directions(F, silent.model, noise, made.observations)) == 0


def test_one_site_is_enough(rng):
    made = world(rng, N=1, D=1, Q=1, k=1)
    noise = NoiseParameters(1, False)
    found = principal_directions(np.eye(3), made.model, noise, made.observations)
    assert len(found) <= 1


def test_an_output_without_signal_does_not_hide_the_uncertainty_of_others(rng):
    """The directions explain 99% for every output, not only of the sum over outputs."""
    made = world(rng, D=2, Q=1, k=1)
    W = made.model.weights.copy()
    W[..., 1, :] = 1e-8
    model = replace(made.model, weights=W)
    noise = NoiseParameters(2, False)
    F = information_of(rng, model, noise)
    settings = {"max_directions": 100, "mean_covariance": np.diag([0.0, 0.2])}
    found = principal_directions(F, model, noise, made.observations, **settings)
    alone = principal_directions(F, model, noise, made.observations, max_directions=100)
    x = rng.uniform(size=(4, 2))
    added, expected = (
        (mean_derivatives_from_neighbours(made.observations, x, model, 12, d)[:, 0] ** 2).sum(-1)
        for d in (found, alone)
    )
    assert_allclose(added, expected, rtol=0.1)
    assert (expected > 0).all()
