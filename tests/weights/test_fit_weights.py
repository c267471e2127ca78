"""Step 2: every member climbs from the no-transfer model, on its own batch."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from scipy.stats import multivariate_normal
from simulated import gram, readings, start_of, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.covariance import log_likelihood, log_likelihood_in_span
from emgpr.ensemble import split_sites
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.weights import fit, fit_weights


@pytest.fixture(params=[False, True], ids=["independent", "correlated"])
def made(rng, request):
    return world(rng, N=26, D=3, Q=3, k=1, missing=0.15, correlated=request.param)


@pytest.fixture
def parts(made, rng):
    return split_sites(np.zeros((26, 1)), 8, "random", rng)  # 9, 9 and 8 sites: one is padded


@pytest.fixture
def start(made):
    return start_of(made, W=np.eye(3)[..., None])


def likelihood(made, part, W):
    """log p of the readings of a part, by scipy."""
    part = replace(made, X=made.X[part], Y=made.Y[part], W=W)
    _, _, y = readings(part)
    return multivariate_normal(np.zeros(len(y)), gram(part)).logpdf(y)


def test_every_member_reports_the_likelihood_of_its_own_batch(made, parts, start):
    fitted = fit_weights(made.seen, parts, start, max_iter=200)
    expected = [likelihood(made, part, W) for part, W in zip(parts, fitted.W, strict=True)]
    assert_allclose(fitted.log_likelihood, expected, rtol=1e-9)


def test_every_member_ends_no_lower_than_without_transfer_and_at_a_maximum(made, parts, start):
    fitted = fit_weights(made.seen, parts, start, max_iter=500)
    assert fitted.converged.all()
    for member, part in enumerate(parts):
        assert fitted.log_likelihood[member] >= likelihood(made, part, start.W)

        def loss(flat, part=part):
            table = made.seen.at(part)
            fit = log_likelihood(
                table, flat.reshape(3, 3, 1), made.noise, made.K[:, part][:, :, part]
            )
            return -float(fit.value), -fit.of_weights.ravel()

        further = scipy_minimize(loss, fitted.W[member].ravel(), jac=True, method="L-BFGS-B")
        assert -further.fun - fitted.log_likelihood[member] < 0.1  # members are averaged


def test_a_member_learns_from_its_batch_alone(made, parts, start):
    together = fit_weights(made.seen, parts, start, max_iter=30)
    Y = made.Y.copy()
    Y[parts[0]] *= 3
    touched = fit_weights(made.table(Y).seen, parts, start, max_iter=30)
    assert not np.allclose(touched.W[0], together.W[0], atol=1e-3)
    assert_allclose(touched.W[1:], together.W[1:], atol=1e-8)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_member_may_start_from_weights_of_its_own(made, parts, start, rng, n_jobs):
    W = start.W + 0.5 * rng.normal(size=(len(parts), *start.W.shape))
    together = fit_weights(made.seen, parts, start, W=W, max_iter=5, n_jobs=n_jobs)
    for member, part in enumerate(parts):
        own = replace(start, W=W[member])
        alone = fit_weights(made.seen, [part], own, max_iter=5)
        assert_allclose(together.W[member], alone.W[0], atol=1e-8)
        assert_allclose(together.log_likelihood[member], alone.log_likelihood[0], rtol=1e-9)
        assert together.log_likelihood[member] > likelihood(made, part, W[member])


def test_from_where_it_ended_a_search_moves_no_more(made, parts, start):
    first = fit_weights(made.seen, parts, start, max_iter=500)
    again = fit_weights(made.seen, parts, start, W=first.W, max_iter=500)
    assert np.all(again.log_likelihood >= first.log_likelihood - 1e-9)
    assert_allclose(again.log_likelihood, first.log_likelihood, atol=0.01)
    assert again.n_iter.max() < 0.5 * first.n_iter.min()


def test_an_output_missing_from_a_batch_keeps_its_start_there(made, parts, start):
    Y = made.Y.copy()
    Y[parts[1], 2] = np.nan
    fitted = fit_weights(made.table(Y).seen, parts, start, max_iter=100)
    assert_array_equal(fitted.W[1, :, 2], start.W[:, 2])
    assert not np.allclose(fitted.W[0, :, 2], start.W[:, 2])


def test_a_batch_without_a_single_reading_keeps_the_start(made, parts, start):
    Y = made.Y.copy()
    Y[parts[1]] = np.nan
    fitted = fit_weights(made.table(Y).seen, parts, start, max_iter=100)
    assert_array_equal(fitted.W[1], start.W)
    assert fitted.log_likelihood[1] == 0.0


def test_weights_that_are_not_free_stay(made, parts, start):
    free = np.eye(3, dtype=bool)[..., None] | (np.arange(3) == 0)[:, None, None]
    fitted = fit_weights(made.seen, parts, replace(start, free=free), max_iter=20)
    held = np.broadcast_to(~free, fitted.W.shape)
    assert_array_equal(fitted.W[held], np.broadcast_to(start.W, fitted.W.shape)[held])
    assert np.all(fitted.W[~held] != np.broadcast_to(start.W, fitted.W.shape)[~held])


def test_iterations_are_counted_and_limited(made, parts, start):
    fitted = fit_weights(made.seen, parts, start, max_iter=2)
    assert_array_equal(fitted.n_iter, 2)
    assert not fitted.converged.any()


def test_workers_change_nothing(made, parts, start):
    here = fit_weights(made.seen, parts, start, max_iter=60, n_jobs=1)
    there = fit_weights(made.seen, parts, start, max_iter=60, n_jobs=2)
    assert_allclose(there.W, here.W, atol=1e-8)
    assert_allclose(there.log_likelihood, here.log_likelihood, rtol=1e-8)


def test_in_the_span_of_the_latents_the_same_weights_are_found(made, start, monkeypatch):
    smooth = replace(start, kernels=tuple(RBF(1.0 + q) for q in range(len(start.kernels))))
    full = Observations(made.seen.x, made.seen.y, np.ones_like(made.seen.seen))
    parts = [np.arange(full.n_sites)]
    monkeypatch.setattr(fit, "SMALL", 0)
    fast = fit_weights(full, parts, smooth, max_iter=300)
    monkeypatch.setattr(fit, "span_of", lambda *_: None)
    dense = fit_weights(full, parts, smooth, max_iter=300)
    K = matrices(smooth.kernels, full.x)
    exact = log_likelihood(full, fast.W[0], smooth.noise, K).value
    assert fast.log_likelihood[0] != exact  # it was the span that was asked
    assert_allclose(fast.log_likelihood[0], exact, atol=1e-2)
    assert_allclose(fast.log_likelihood, dense.log_likelihood, atol=0.1)


@pytest.mark.parametrize("in_span", [False, True])
def test_on_a_device_the_same_weights_are_found(made, parts, start, device, in_span, monkeypatch):
    monkeypatch.setattr(fit, "SMALL", 0 if in_span else 2000)
    monkeypatch.setattr(fit, "LARGE", 0 if in_span else 2000)
    smooth = replace(start, kernels=tuple(RBF(1.0 + q) for q in range(len(start.kernels))))
    full = Observations(made.seen.x, made.seen.y, np.ones_like(made.seen.seen))
    given = (full, [np.arange(full.n_sites)], smooth) if in_span else (made.seen, parts, start)
    here, there = (fit_weights(*given, max_iter=300, device=name) for name in ("cpu", device))
    assert isinstance(there.W, np.ndarray)
    assert_allclose(there.log_likelihood, here.log_likelihood, atol=1e-3)
    assert_allclose(there.W, here.W, atol=0.05)


def test_a_table_alone_is_followed_to_its_maximum(made, start):
    """And ends no lower than from its end SciPy's search can go, to a hundredth."""
    fitted = fit_weights(made.seen, [np.arange(made.seen.n_sites)], start, max_iter=500)

    def loss(flat):
        fit = log_likelihood(made.seen, flat.reshape(3, 3, 1), made.noise, made.K)
        return -float(fit.value), -fit.of_weights.ravel()

    further = scipy_minimize(loss, fitted.W[0].ravel(), jac=True, method="L-BFGS-B")
    assert -further.fun - fitted.log_likelihood[0] < 0.01


def test_large_members_end_early_and_a_table_alone_does_not(rng, monkeypatch):
    made = world(rng, N=80, k=1)
    start, parts = start_of(made), [np.arange(40), np.arange(40, 80)]
    longer = fit_weights(made.seen, parts, start, max_iter=300)
    monkeypatch.setattr(fit, "ENOUGH", 50)
    early = fit_weights(made.seen, parts, start, max_iter=300)
    assert np.all(early.n_iter < longer.n_iter)
    assert np.all(early.converged)
    n = made.seen.seen[:, parts[0]].sum()
    assert np.all(longer.log_likelihood - early.log_likelihood < 0.1 * n)


def test_weights_that_are_given_never_end_lower(rng):
    """Of many sites too, where the way from δ begins on some of them."""
    made = world(rng, N=220, k=1)
    start, parts = start_of(made), [np.arange(220)]
    first = fit_weights(made.seen, parts, start, max_iter=3)
    again = fit_weights(made.seen, parts, start, W=first.W, max_iter=1)
    assert again.log_likelihood[0] >= first.log_likelihood[0]


def test_a_place_kept_empty_has_no_part_in_the_span(rng):
    """So that a member ends the same whoever else is learned beside it, and pads its table."""
    made = world(rng, N=60, D=3, Q=3, k=1)
    start = start_of(made, kernels=(RBF(3.0), RBF(5.0), RBF(8.0)))
    whole, short = made.seen.batches([np.arange(60), np.arange(40)]).table(1), np.arange(40)
    K = matrices(start.kernels, whole.x)
    padded = fit._span(whole, start, K)
    alone = fit._span(made.seen.at(short), start, K[:, :40, :40])
    assert padded.n_columns == alone.n_columns
    for W in rng.normal(size=(3, 3, 3, 1)):
        ours, theirs = (log_likelihood_in_span(s, W, start.noise) for s in (padded, alone))
        assert_allclose(ours[0], theirs[0], rtol=1e-12)
        assert_allclose(ours[1], theirs[1], rtol=1e-10)
