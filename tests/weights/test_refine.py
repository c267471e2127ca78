"""The joint ascent: from where the two steps ended, only upwards."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import clone_kernel, start_of, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.covariance import log_likelihood
from emgpr.ensemble import split_sites
from emgpr.weights import fit_weights, refine_jointly
from emgpr.weights.fit import kernel_matrices

CASES = {
    "one part, full table": {"batch": None},
    "one part, missing readings": {"batch": None, "missing": 0.2},
    "one latent, full table": {"batch": None, "Q": 1, "k": 2},
    "one latent, missing readings": {"batch": None, "Q": 1, "k": 2, "missing": 0.2},
    "members": {"batch": 8},
    "members, missing readings": {"batch": 8, "missing": 0.2},
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def two_steps(request):
    """A table and where step 2 ended on it, from kernels and noise that are somewhat wrong."""
    rng = np.random.default_rng(23)
    settings = {"D": 3, "Q": 3, "k": 1} | request.param
    batch = settings.pop("batch")
    made = world(rng, N=24, **settings)
    kernels = tuple(clone_kernel(kernel) for kernel in made.kernels)
    start = start_of(made, kernels=kernels, noise=2 * made.noise, W=0.5 * made.W)
    parts = split_sites(24, batch, "random", rng)
    return made.seen, parts, start, fit_weights(made.seen, parts, start, max_iter=30)


def test_the_likelihood_rises(two_steps):
    seen, parts, start, fitted = two_steps
    _, refined, _ = refine_jointly(seen, parts, start, fitted, max_iter=20)
    assert refined.log_likelihood.sum() > fitted.log_likelihood.sum() + 0.01


def test_one_iteration_more_never_ends_lower(two_steps):
    seen, parts, start, fitted = two_steps
    values = [
        refine_jointly(seen, parts, start, fitted, max_iter=n)[1].log_likelihood.sum()
        for n in (1, 2, 6)
    ]
    assert np.all(np.diff([fitted.log_likelihood.sum(), *values]) >= 0)


def test_the_likelihood_reported_is_that_of_what_was_found(two_steps):
    seen, parts, start, fitted = two_steps
    mixture, refined, _ = refine_jointly(seen, parts, start, fitted, max_iter=4)
    for part, W, value in zip(parts, refined.W, refined.log_likelihood, strict=True):
        table = seen.at(part)
        K = kernel_matrices(mixture.kernels, table.x)
        assert_allclose(log_likelihood(table, W, mixture.noise, K).value, value, rtol=1e-9)


def test_kernels_noise_and_weights_all_move(two_steps):
    seen, parts, start, fitted = two_steps
    mixture, refined, _ = refine_jointly(seen, parts, start, fitted, max_iter=4)
    for new, old in zip(mixture.kernels, start.kernels, strict=True):
        assert not np.allclose(new.theta, old.theta)
    assert not np.allclose(mixture.noise, start.noise)
    assert not np.allclose(refined.W, fitted.W)


def test_weights_that_are_not_free_stay(two_steps):
    seen, parts, start, fitted = two_steps
    free = np.zeros(start.W.shape, bool)
    free[0] = True
    _, refined, _ = refine_jointly(seen, parts, replace(start, free=free), fitted, max_iter=5)
    assert_array_equal(refined.W[:, 1:], fitted.W[:, 1:])
    assert np.all(refined.W[:, 0] != fitted.W[:, 0])


@pytest.fixture
def climb(rng):
    """Refines a small world from its own parameters, some of them changed."""
    made = world(rng, N=20, D=2, Q=2, k=1)

    def go(**changed):
        start, parts = start_of(made, **changed), split_sites(20, None)
        fitted = fit_weights(made.seen, parts, start, max_iter=30)
        return refine_jointly(made.seen, parts, start, fitted, max_iter=20)

    return go


def test_what_is_fixed_in_a_kernel_stays(climb):
    mixture, *_ = climb(kernels=(RBF(0.35, "fixed"), RBF(0.7, (0.6, 0.8))))
    assert mixture.kernels[0].length_scale == 0.35
    assert 0.6 <= mixture.kernels[1].length_scale <= 0.8 + 1e-12


def test_a_bound_that_was_reached_is_named(climb):
    *_, trouble = climb(kernels=(RBF(2.0, (1.9, 2.1)), RBF(2.0, (1.9, 2.1))))
    assert "at a bound: latent 0's length_scale" in trouble


def test_a_search_cut_short_says_so(two_steps):
    *_, trouble = refine_jointly(*two_steps, max_iter=1)
    assert "did not converge within max_iter=1" in trouble
