"""The log-likelihood against SciPy, its gradients against finite differences, batches, devices."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from emgpr.arrays import to_device, to_numpy
from emgpr.covariance import Likelihood, likelihood, log_likelihood
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import gram, readings, symmetric_part, world

WORLDS = {
    "complete": {"Q": 3, "k": 2, "D": 3},
    "missing readings": {"Q": 3, "k": 2, "D": 3, "missing": 0.3},
    "missing readings, correlated noise": {
        "Q": 2, "k": 2, "D": 3, "missing": 0.3, "correlated": True,
    },
    "one latent, correlated noise": {"Q": 1, "k": 2, "D": 3, "correlated": True},
    "one latent, missing readings": {"Q": 1, "k": 2, "D": 3, "missing": 0.3},
    "more latents than outputs": {"Q": 4, "k": 1, "D": 2},
    "one output": {"Q": 1, "k": 1, "D": 1},
    "one site": {"Q": 2, "k": 1, "D": 3, "N": 1},
}  # fmt: skip
PARTS = ("value", "of_weights", "of_noise", "of_kernels", "curvature")


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


def evaluate(made, W=None, noise=None, K=None, *, curvature=False) -> Likelihood:
    return log_likelihood(
        made.observed,
        made.W if W is None else W,
        made.noise if noise is None else noise,
        made.K if K is None else K,
        of_kernels=True,
        curvature=curvature,
    )


def stack(worlds):
    tables = Observations(
        *(np.stack([getattr(w.observed, name) for w in worlds]) for name in ("x", "y", "observed"))
    )
    return tables, *(np.stack([getattr(w, name) for w in worlds]) for name in ("W", "noise", "K"))


def assert_parts_agree(found, expected, rtol):
    for name in PARTS:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            one, other = symmetric_part(to_numpy(one)), symmetric_part(to_numpy(other))
            assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max(), err_msg=name)


def test_the_value_is_scipys_log_density_of_the_readings(made):
    _, _, y = readings(made)
    expected = multivariate_normal(np.zeros(len(y)), gram(made)).logpdf(y)
    assert_allclose(evaluate(made).value, expected, rtol=1e-9)


def test_the_curvature_is_computed_only_on_request(made):
    assert evaluate(made).curvature is None


def test_the_gradient_of_the_weights_is_the_derivative(made):
    fit = evaluate(made)
    assert_is_the_gradient(fit.of_weights, lambda W: evaluate(made, W=W).value, made.W)


def test_the_gradient_of_the_noise_is_the_derivative(made):
    """Along every symmetric direction: Σ_lm and Σ_ml move together."""
    fit = evaluate(made)
    D = len(made.noise)
    one, other = np.tril_indices(D)

    def moved(steps):
        by = np.zeros((D, D))
        by[one, other] = steps
        return made.noise + (by + by.T) / 2

    assert_allclose(fit.of_noise, fit.of_noise.T, rtol=1e-10)
    assert_is_the_gradient(
        fit.of_noise[one, other],
        lambda steps: evaluate(made, noise=moved(steps)).value,
        np.zeros(len(one)),
    )


def test_the_gradient_of_the_kernels_is_the_derivative(made, rng):
    """K_q moves along a random symmetric direction, from where it stays positive definite."""
    K = made.K + 0.1 * np.eye(len(made.X))
    direction = symmetric_part(rng.normal(size=K.shape))
    assert_is_the_gradient(
        np.einsum("qij,qij->q", evaluate(made, K=K).of_kernels, direction),
        lambda t: evaluate(made, K=K + t[:, None, None] * direction).value,
        np.zeros(len(K)),
    )


CURVED = ("missing readings, correlated noise", "one latent, correlated noise", "one output")


@pytest.mark.parametrize("case", CURVED)
def test_the_curvature_is_the_mean_of_the_second_derivative_and_its_expectation(rng, case):
    """Except for the second derivatives of cov itself, which count in full."""
    made = world(rng, **WORLDS[case])
    flat, h, p = made.W.ravel(), 1e-4, made.W.size
    steps = h * np.eye(p)

    def slope(w):
        return evaluate(made, W=w.reshape(made.W.shape)).of_weights.ravel()

    def cov(w):
        return gram(replace(made, W=w.reshape(made.W.shape)))

    # The covariance is quadratic in the weights, so that differences are its derivatives.
    first = np.array([cov(flat + e) - cov(flat - e) for e in steps]) / (2 * h)
    at_steps, at_zero = [cov(e) for e in steps], cov(0 * flat)
    second = [
        [cov(e + f) - at_steps[a] - at_steps[b] + at_zero for b, f in enumerate(steps)]
        for a, e in enumerate(steps)
    ]
    y, inverse = readings(made)[2], np.linalg.inv(cov(flat))
    G = np.outer(inverse @ y, inverse @ y) - inverse
    of_cov = -0.5 * np.einsum("ij,abij->ab", G, np.array(second) / h**2)
    scaled = inverse @ first
    expected = 0.5 * np.einsum("aij,bji->ab", scaled, scaled)
    observed = -np.array([slope(flat + e) - slope(flat - e) for e in steps]) / (2 * h)

    found = evaluate(made, curvature=True).curvature
    scale = np.abs(observed).max()
    assert_allclose(found, 0.5 * (observed + of_cov + expected), atol=1e-5 * scale)


BATCHED = {
    "complete": {"Q": 3},
    "missing readings, correlated noise": {"Q": 3, "missing": 0.3, "correlated": True},
    "one latent": {"Q": 1},
    "one latent, missing readings": {"Q": 1, "missing": 0.3},
}


@pytest.fixture(params=BATCHED.values(), ids=BATCHED.keys())
def worlds(request, rng):
    return [world(rng, **request.param) for _ in range(3)]


@pytest.mark.parametrize("curvature", [False, True])
def test_a_batch_of_tables_is_each_table(worlds, curvature):
    together = log_likelihood(*stack(worlds), of_kernels=True, curvature=curvature)
    for b, made in enumerate(worlds):
        parts = [getattr(together, name) for name in PARTS]
        one = Likelihood(*(None if part is None else part[b] for part in parts))
        assert_parts_agree(one, evaluate(made, curvature=curvature), 1e-8)


def test_tables_of_a_batch_may_share_their_noise(worlds):
    worlds = [replace(made, noise=worlds[0].noise) for made in worlds]
    tables, W, noise, K = stack(worlds)
    together = log_likelihood(tables, W, noise[0], K)
    for b, alone in enumerate(map(evaluate, worlds)):
        assert_allclose(together.value[b], alone.value, rtol=1e-9)
        assert_allclose(together.of_noise[b], alone.of_noise, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("batch", [False, True])
def test_a_device_gives_the_same_value_and_derivatives(worlds, device, batch):
    made = worlds[0]
    table, *given = stack(worlds) if batch else (made.observed, made.W, made.noise, made.K)
    moved = [to_device(a, device) for a in given]
    for curvature in (False, True):
        on_cpu = log_likelihood(table, *given, of_kernels=True, curvature=curvature)
        on_device = log_likelihood(table.to(device), *moved, of_kernels=True, curvature=curvature)
        assert not isinstance(on_device.value, np.ndarray)
        assert_parts_agree(on_device, on_cpu, 1e-9)


@pytest.mark.parametrize(("missing", "other"), [(0.0, "dense"), (0.3, "kronecker")])
def test_the_kronecker_form_is_used_for_complete_tables_only(rng, monkeypatch, missing, other):
    def refuse(*_, **__):
        raise AssertionError(f"the {other} form was used")

    made = world(rng, Q=1, missing=missing)
    monkeypatch.setattr(likelihood, f"{other}_log_likelihood", refuse)
    assert np.isfinite(evaluate(made).value)


@pytest.mark.parametrize("on", ["numpy", "device"])
@pytest.mark.parametrize("Q", [1, 2])
def test_a_covariance_without_a_factor_has_a_likelihood_of_zero(rng, Q, on):
    device = "cpu" if on == "numpy" else "torch"
    if on == "device":
        pytest.importorskip("torch")
    made = world(rng, Q=Q, D=2, N=4)
    tables = made.observed.at(np.tile(np.arange(4), (3, 1))).to(device)
    K = np.stack([made.K, -5 * made.K, np.full_like(made.K, np.nan)])
    given = [to_device(a, device) for a in (np.stack([made.W] * 3), made.noise, K)]
    value = to_numpy(log_likelihood(tables, *given).value)
    assert np.isfinite(value[0])
    assert value[1] == value[2] == -np.inf


@pytest.mark.parametrize("Q", [1, 2])
def test_noise_that_is_singular_to_rounding_gives_a_value_or_minus_infinity(rng, Q):
    made = world(rng, Q=Q, D=2, N=4)
    value = log_likelihood(made.observed, made.W, np.ones((2, 2)), made.K).value
    assert not np.isnan(value)


def test_the_order_of_the_outputs_changes_nothing(rng):
    made = world(rng, D=3, missing=0.2, correlated=True)
    order = np.array([2, 0, 1])
    permuted = replace(
        made, Y=made.Y[:, order], W=made.W[:, order], noise=made.noise[np.ix_(order, order)]
    )
    one, other = evaluate(made), evaluate(permuted)
    assert_allclose(other.value, one.value, rtol=1e-10)
    assert_allclose(other.of_noise, one.of_noise[np.ix_(order, order)], rtol=1e-8)


def test_noise_shared_by_all_outputs_is_a_latent_with_a_white_kernel(rng):
    """Σ + s·11ᵀ is Σ and one more latent with the identity as its kernel matrix."""
    made = world(rng, correlated=True, missing=0.2)
    shared = 0.37
    weights = np.sqrt(shared) * np.eye(1, 2).repeat(3, axis=0)[None]
    with_latent = replace(made, W=np.concatenate([made.W, weights]))
    K = np.concatenate([made.K, np.eye(len(made.X))[None]])
    assert_allclose(
        evaluate(made, noise=made.noise + shared).value,
        evaluate(with_latent, K=K).value,
        rtol=1e-10,
    )
