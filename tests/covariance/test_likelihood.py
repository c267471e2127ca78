"""The log-likelihood against scipy's, its gradients against differences, two forms in agreement."""

from dataclasses import replace

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from simulated import gram, readings, symmetric_part, world

from emgpr.covariance import dense, kronecker, log_likelihood
from emgpr.covariance.likelihood import Likelihood
from emgpr.observations import Observations

WORLDS = {
    "full table": {"Q": 3, "k": 2, "D": 3},
    "missing readings": {"Q": 3, "k": 2, "D": 3, "missing": 0.3},
    "one latent": {"Q": 1, "k": 2, "D": 3},
    "one latent, missing readings": {"Q": 1, "k": 2, "D": 3, "missing": 0.3},
    "more latents than tasks": {"Q": 4, "k": 1, "D": 2},
    "one task": {"Q": 1, "k": 1, "D": 1},
    "one site": {"Q": 2, "k": 1, "D": 3, "N": 1},
}
WORLDS |= {
    f"{name}, correlated noise": case | {"correlated": True} for name, case in WORLDS.items()
}
correlated_or_not = pytest.mark.parametrize("correlated", [False, True])


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


def likelihood(made, W=None, noise=None, K=None, *, curvature=False) -> Likelihood:
    return log_likelihood(
        made.seen,
        made.W if W is None else W,
        made.noise if noise is None else noise,
        made.K if K is None else K,
        of_kernels=True,
        curvature=curvature,
    )


def test_it_tells_no_more_than_it_is_asked_for(made):
    found = log_likelihood(made.seen, made.W, made.noise, made.K)
    assert found.curvature is None


def test_it_is_scipys_density_of_the_readings_that_were_made(made):
    _, _, y = readings(made)
    expected = multivariate_normal(np.zeros(len(y)), gram(made)).logpdf(y)
    assert_allclose(likelihood(made).value, expected, rtol=1e-9)


def test_the_gradient_of_the_weights_is_the_derivative(made):
    fit = likelihood(made)
    assert_is_the_gradient(fit.of_weights, lambda W: likelihood(made, W=W).value, made.W)


def test_the_gradient_of_the_noise_is_the_derivative(made):
    """Along every symmetric direction: Σ_lm and Σ_ml move together."""
    fit = likelihood(made)
    D = len(made.noise)
    one, other = np.tril_indices(D)

    def moved(steps):
        by = np.zeros((D, D))
        by[one, other] = steps
        return made.noise + (by + by.T) / 2

    assert_allclose(fit.of_noise, fit.of_noise.T, rtol=1e-10)
    assert_is_the_gradient(
        fit.of_noise[one, other],
        lambda steps: likelihood(made, noise=moved(steps)).value,
        np.zeros(len(one)),
    )


def test_the_gradient_of_the_kernels_is_the_derivative(made, rng):
    """K_q moves along a random symmetric direction, from where it stays positive definite."""
    K = made.K + 0.1 * np.eye(len(made.X))
    direction = rng.normal(size=K.shape)
    direction = direction + np.swapaxes(direction, -1, -2)
    assert_is_the_gradient(
        np.einsum("qij,qij->q", likelihood(made, K=K).of_kernels, direction),
        lambda t: likelihood(made, K=K + t[:, None, None] * direction).value,
        np.zeros(len(K)),
    )


def test_the_curvature_is_halfway_between_the_derivative_and_its_expectation(made):
    """But for how cov itself curves along the weights, which counts in full."""
    flat, h, p = made.W.ravel(), 1e-4, made.W.size
    steps = h * np.eye(p)

    def slope(w):
        return likelihood(made, W=w.reshape(made.W.shape)).of_weights.ravel()

    def cov(w):
        return gram(replace(made, W=w.reshape(made.W.shape)))

    # Of second degree in the weights, so that differences are its derivatives.
    first = np.array([cov(flat + e) - cov(flat - e) for e in steps]) / (2 * h)
    second = [[cov(e + f) - cov(e) - cov(f) + cov(0 * flat) for f in steps] for e in steps]
    y, inverse = readings(made)[2], np.linalg.inv(cov(flat))
    G = np.outer(inverse @ y, inverse @ y) - inverse
    curving = -0.5 * np.einsum("ij,abij->ab", G, np.array(second) / h**2)
    moved = inverse @ first
    expected = 0.5 * np.einsum("aij,bji->ab", moved, moved)
    observed = -np.array([slope(flat + e) - slope(flat - e) for e in steps]) / (2 * h)

    told = likelihood(made, curvature=True).curvature
    scale = np.abs(observed).max()
    assert_allclose(told, 0.5 * (observed + curving + expected), atol=1e-5 * scale)


@correlated_or_not
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("Q", [1, 3])
@pytest.mark.parametrize("curvature", [False, True])
def test_a_batch_of_tables_is_each_table(rng, missing, Q, correlated, curvature):
    worlds = [world(rng, Q=Q, missing=missing, correlated=correlated) for _ in range(4)]
    tables = Observations(
        *(np.stack([getattr(w.seen, n) for w in worlds]) for n in ("x", "y", "seen"))
    )
    W, noise, K = (np.stack([getattr(w, name) for w in worlds]) for name in ("W", "noise", "K"))
    together = log_likelihood(tables, W, noise, K, of_kernels=True, curvature=curvature)
    for b, alone in enumerate(likelihood(w, curvature=curvature) for w in worlds):
        for name in ("value", "of_weights", "of_noise", "of_kernels", "curvature"):
            if getattr(alone, name) is None:
                assert getattr(together, name) is None
                continue
            part, whole = getattr(alone, name), getattr(together, name)[b]
            if name == "of_kernels":
                part, whole = symmetric_part(part), symmetric_part(whole)
            assert_allclose(whole, part, rtol=1e-8, atol=1e-8 * np.abs(part).max())


@correlated_or_not
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("Q", [1, 3])
def test_tables_of_a_batch_may_share_their_noise(rng, missing, Q, correlated):
    worlds = [world(rng, Q=Q, missing=missing, correlated=correlated) for _ in range(3)]
    worlds = [replace(made, noise=worlds[0].noise) for made in worlds]
    tables = Observations(
        *(np.stack([getattr(w.seen, n) for w in worlds]) for n in ("x", "y", "seen"))
    )
    W, K = (np.stack([getattr(w, name) for w in worlds]) for name in ("W", "K"))
    together = log_likelihood(tables, W, worlds[0].noise, K)
    for b, alone in enumerate(map(likelihood, worlds)):
        assert_allclose(together.value[b], alone.value, rtol=1e-9)
        assert_allclose(together.of_noise[b], alone.of_noise, rtol=1e-8, atol=1e-8)


@correlated_or_not
@pytest.mark.parametrize(("D", "k", "N"), [(3, 2, 12), (4, 4, 7), (2, 1, 1), (1, 1, 9)])
def test_the_kronecker_form_is_the_dense_form(rng, D, k, N, correlated):
    made = world(rng, Q=1, D=D, k=k, N=N, correlated=correlated)
    given = made.seen, made.W, made.noise, made.K
    full = dense.likelihood_and_contractions(*given, of_kernels=True)
    for fast, slow in zip(kronecker.likelihood_and_contractions(*given), full[:4], strict=True):
        assert fast.shape == slow.shape
        fast, slow = symmetric_part(fast), symmetric_part(slow)
        assert_allclose(fast, slow, rtol=1e-9, atol=1e-9 * np.abs(slow).max())


@correlated_or_not
def test_the_kronecker_form_survives_singular_matrices(rng, correlated):
    """Every site twice, and weights of rank one: both factors have zero eigenvalues."""
    made = world(rng, Q=1, D=3, k=1, correlated=correlated)
    K = np.tile(made.K, (1, 2, 2))
    table = Observations.from_table(np.tile(made.X, (2, 1)), np.tile(made.Y, (2, 1)))
    full = dense.likelihood_and_contractions(table, made.W, made.noise, K, of_kernels=True)
    fast = kronecker.likelihood_and_contractions(table, made.W, made.noise, K)
    for a, b in zip(map(symmetric_part, fast), map(symmetric_part, full[:4]), strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


@correlated_or_not
@pytest.mark.parametrize(("missing", "forbidden"), [(0.0, dense), (0.3, kronecker)])
def test_structure_is_used_when_it_is_there_and_only_then(
    rng, monkeypatch, missing, forbidden, correlated
):
    def refuse(*_, **__):
        raise AssertionError(f"{forbidden.__name__} was asked")

    made = world(rng, Q=1, missing=missing, correlated=correlated)
    monkeypatch.setattr(forbidden, "likelihood_and_contractions", refuse)
    assert np.isfinite(likelihood(made).value)


@pytest.mark.parametrize("Q", [1, 2])
def test_where_a_covariance_has_no_factor_the_likelihood_is_minus_infinity(rng, Q):
    made = world(rng, Q=Q, D=2, N=4)
    tables = made.seen.at(np.tile(np.arange(4), (3, 1)))
    K = np.stack([made.K, -5 * made.K, np.full_like(made.K, np.nan)])
    value = log_likelihood(tables, np.stack([made.W] * 3), made.noise, K).value
    assert np.isfinite(value[0])
    assert value[1] == value[2] == -np.inf


@pytest.mark.parametrize("Q", [1, 2])
def test_noise_so_joined_that_rounding_makes_it_singular_is_no_crash(rng, Q):
    """The two forms may judge it differently, but either gives a value or −inf."""
    made = world(rng, Q=Q, D=2, N=4)
    value = log_likelihood(made.seen, made.W, np.ones((2, 2)), made.K).value
    assert not np.isnan(value)


def test_the_order_of_the_tasks_changes_nothing(rng):
    made = world(rng, D=3, missing=0.2, correlated=True)
    order = np.array([2, 0, 1])
    turned = replace(
        made, Y=made.Y[:, order], W=made.W[:, order], noise=made.noise[np.ix_(order, order)]
    )
    plain, other = likelihood(made), likelihood(turned)
    assert_allclose(other.value, plain.value, rtol=1e-10)
    assert_allclose(other.of_noise, plain.of_noise[np.ix_(order, order)], rtol=1e-8)


def test_noise_that_is_the_same_for_all_tasks_is_a_latent_without_range(rng):
    """Σ + s·11ᵀ is Σ and one latent more, white, that every task hears as loudly."""
    made = world(rng, correlated=True, missing=0.2)
    shared = 0.37
    white = replace(
        made,
        W=np.concatenate([made.W, np.sqrt(shared) * np.eye(1, 2).repeat(3, axis=0)[None]]),
    )
    K = np.concatenate([made.K, np.eye(len(made.X))[None]])
    assert_allclose(
        likelihood(made, noise=made.noise + shared).value,
        likelihood(white, K=K).value,
        rtol=1e-10,
    )
