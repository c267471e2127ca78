"""Step 2: the weights of every member by maximum likelihood on its own batch."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from emgpr.arrays import NumericalError
from emgpr.covariance import log_likelihood, low_rank_log_likelihood
from emgpr.ensemble import split_sites
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.weights import FittedWeights, fit_weights, subsample_batches
from tests.simulated import gram, readings, start_of, world

fit = sys.modules[fit_weights.__module__]
correlated_only = pytest.mark.parametrize("made", [True], indirect=True, ids=["correlated"])


@pytest.fixture(scope="module", params=[False, True], ids=["independent", "correlated"])
def made(request):
    rng = np.random.default_rng(20171)
    return world(rng, N=26, D=3, Q=3, k=1, missing=0.15, correlated=request.param)


@pytest.fixture(scope="module")
def batches():
    """Of 9, 9 and 8 sites, so that one table is padded."""
    return split_sites(np.zeros((26, 1)), 8, "random", np.random.default_rng(1))


@pytest.fixture(scope="module")
def start(made):
    return start_of(made, W=np.eye(3)[..., None])


@pytest.fixture(scope="module")
def fitted(made, batches, start):
    return fit_weights(made.observations, batches, start, max_iter=500)


def likelihood(made, batch, W):
    """The log density of the readings of a batch, by SciPy."""
    part = replace(made, X=made.X[batch], Y=made.Y[batch], W=W)
    _, _, y = readings(part)
    return multivariate_normal(np.zeros(len(y)), gram(part)).logpdf(y)


def further_gain(made, sites, W, log_likelihood_there):
    """How much higher SciPy's optimiser gets from these weights."""
    table, K = made.observations.at(sites), made.K[:, sites][:, :, sites]

    def loss(flat):
        value = log_likelihood(table, flat.reshape(W.shape), made.noise, K)
        return -float(value.value), -value.of_weights.ravel()

    return -scipy_minimize(loss, W.ravel(), jac=True, method="L-BFGS-B").fun - log_likelihood_there


def test_every_member_reports_the_likelihood_of_its_own_batch(made, batches, fitted):
    expected = [likelihood(made, batch, W) for batch, W in zip(batches, fitted.W, strict=True)]
    assert_allclose(fitted.log_likelihood, expected, rtol=1e-9)
    assert fitted.succeeded.all()
    assert fitted.message == ""


def test_every_member_ends_at_a_maximum_above_the_model_without_transfer(
    made, batches, start, fitted
):
    assert fitted.converged.all()
    for batch, W, value in zip(batches, fitted.W, fitted.log_likelihood, strict=True):
        assert value >= likelihood(made, batch, start.W)
        assert further_gain(made, batch, W, value) < 0.1  # members are averaged


def test_a_single_table_is_optimised_more_closely(made, start):
    sites = np.arange(26)
    fitted = fit_weights(made.observations, [sites], start, max_iter=500)
    assert further_gain(made, sites, fitted.W[0], fitted.log_likelihood[0]) < 0.01


def test_a_member_depends_on_its_batch_alone(made, batches, start):
    together = fit_weights(made.observations, batches, start, max_iter=30)
    Y = made.Y.copy()
    Y[batches[0]] *= 3
    changed = fit_weights(made.table(Y).observations, batches, start, max_iter=30)
    assert not np.allclose(changed.W[0], together.W[0], atol=1e-3)
    assert_allclose(changed.W[1:], together.W[1:], atol=1e-8)


def test_every_member_may_start_from_its_own_weights(made, batches, start, rng):
    W = start.W + 0.5 * rng.normal(size=(len(batches), *start.W.shape))
    together = fit_weights(made.observations, batches, start, W=W, max_iter=5)
    for member, batch in enumerate(batches):
        own = replace(start, W=W[member])
        alone = fit_weights(made.observations, [batch], own, max_iter=5)
        assert_allclose(together.W[member], alone.W[0], atol=1e-8)
        assert_allclose(together.log_likelihood[member], alone.log_likelihood[0], rtol=1e-9)
        assert together.log_likelihood[member] > likelihood(made, batch, W[member])


def test_a_search_from_its_end_hardly_moves(made, batches, start, fitted):
    again = fit_weights(made.observations, batches, start, W=fitted.W, max_iter=500)
    assert np.all(again.log_likelihood >= fitted.log_likelihood - 1e-9)
    assert_allclose(again.log_likelihood, fitted.log_likelihood, atol=0.01)
    assert again.n_iter.max() < 0.5 * fitted.n_iter.min()


def test_an_output_missing_from_a_batch_keeps_its_initial_weights_there(made, batches, start):
    Y = made.Y.copy()
    Y[batches[1], 2] = np.nan
    fitted = fit_weights(made.table(Y).observations, batches, start, max_iter=100)
    assert_array_equal(fitted.W[1, :, 2], start.W[:, 2])
    assert not np.allclose(fitted.W[0, :, 2], start.W[:, 2])


def test_a_batch_without_readings_keeps_the_initial_weights(made, batches, start):
    Y = made.Y.copy()
    Y[batches[1]] = np.nan
    fitted = fit_weights(made.table(Y).observations, batches, start, max_iter=100)
    assert_array_equal(fitted.W[1], start.W)
    assert fitted.log_likelihood[1] == 0.0


def test_fixed_weights_stay(made, batches, start):
    free = np.eye(3, dtype=bool)[..., None] | (np.arange(3) == 0)[:, None, None]
    fitted = fit_weights(made.observations, batches, replace(start, free=free), max_iter=20)
    fixed = np.broadcast_to(~free, fitted.W.shape)
    initial = np.broadcast_to(start.W, fitted.W.shape)
    assert_array_equal(fitted.W[fixed], initial[fixed])
    assert np.all(fitted.W[~fixed] != initial[~fixed])


def test_iterations_are_counted_and_limited(made, batches, start):
    fitted = fit_weights(made.observations, batches, start, max_iter=2)
    assert_array_equal(fitted.n_iter, 2)
    assert not fitted.converged.any()


@correlated_only
def test_workers_change_nothing(made, batches, start):
    here, there = (
        fit_weights(made.observations, batches, start, max_iter=20, execution=Execution(n_jobs=n))
        for n in (1, 2)
    )
    assert_allclose(there.W, here.W, atol=1e-8)
    assert_allclose(there.log_likelihood, here.log_likelihood, rtol=1e-8)


def smooth_and_complete(made, start):
    smooth = replace(start, kernels=tuple(RBF(1.0 + q) for q in range(len(start.kernels))))
    table = made.observations
    return Observations(table.x, table.y, np.ones_like(table.observed)), smooth


@correlated_only
def test_the_low_rank_form_finds_the_same_weights(made, start, monkeypatch):
    table, smooth = smooth_and_complete(made, start)
    batches = [np.arange(table.n_sites)]
    monkeypatch.setattr(fit, "LOW_RANK_READINGS", 77)  # of 78
    fast = fit_weights(table, batches, smooth, max_iter=300)
    monkeypatch.setattr(fit, "LOW_RANK_READINGS", 78)
    dense = fit_weights(table, batches, smooth, max_iter=300)
    K = kernel_matrices(smooth.kernels, table.x)
    exact, same = (log_likelihood(table, f.W[0], smooth.noise, K).value for f in (fast, dense))
    assert fast.log_likelihood[0] != exact  # the low-rank form was used,
    assert_allclose(dense.log_likelihood[0], same, rtol=1e-12)  # and here it was not
    assert_allclose(fast.log_likelihood[0], exact, atol=1e-2)
    assert_allclose(fast.log_likelihood, dense.log_likelihood, atol=0.1)


@correlated_only
@pytest.mark.parametrize("low_rank", [False, True])
def test_on_a_device_the_same_weights_are_found(
    made, batches, start, device, low_rank, monkeypatch
):
    for limit in ("LOW_RANK_READINGS", "LOW_RANK_READINGS_ON_DEVICE"):
        monkeypatch.setattr(fit, limit, 0 if low_rank else 2000)
    table, smooth = smooth_and_complete(made, start)
    given = (made.observations, batches, start)
    if low_rank:
        given = table, [np.arange(table.n_sites)], smooth
    here, there = (
        fit_weights(*given, max_iter=100, execution=Execution(name)) for name in ("cpu", device)
    )
    assert isinstance(there.W, np.ndarray)
    assert_allclose(there.log_likelihood, here.log_likelihood, atol=1e-3)
    assert_allclose(there.W, here.W, atol=0.05)


def test_empty_sites_that_pad_a_table_do_not_change_its_low_rank_form(rng):
    """So that a member does not depend on the others that it is optimised with."""
    made = world(rng, N=60, D=3, Q=3, k=1)
    start = start_of(made, kernels=(RBF(3.0), RBF(5.0), RBF(8.0)))
    short = np.arange(40)
    table = made.observations.batches([np.arange(60), short]).batch_item(1)
    K = kernel_matrices(start.kernels, table.x)
    padded = fit._low_rank(table, start, K)
    alone = fit._low_rank(made.observations.at(short), start, K[:, :40, :40])
    W = rng.normal(size=(3, 3, 1))
    ours, theirs = (low_rank_log_likelihood(form, W, start.noise) for form in (padded, alone))
    assert_allclose(ours[0], theirs[0], rtol=1e-12)
    assert_allclose(ours[1], theirs[1], rtol=1e-10)


@pytest.fixture
def stopping(monkeypatch):
    """Arguments of the searches that step 2 makes."""
    made, real = [], fit.minimize

    def noted(objective, x0, **given):
        made.append({"n": x0.shape[0]} | given)
        return real(objective, x0, **given)

    monkeypatch.setattr(fit, "minimize", noted)
    return made


@pytest.mark.parametrize(
    ("n_sites", "n_members", "expected_gain"),
    [(20, 1, 1e-5), (700, 1, 1e-4), (40, 2, 3e-4), (300, 2, 2e-3)],
    ids=["a table", "a large table", "small batches", "large batches"],
)
def test_a_search_ends_when_little_gain_is_expected(
    rng, stopping, n_sites, n_members, expected_gain
):
    """For each reading; of one table, of a large one, of small and of large batches."""
    made = world(rng, N=5, D=3, Q=1, k=1)
    x, y = rng.uniform(size=(n_sites, 2)), rng.normal(size=(n_sites, 3))
    table, start = Observations.from_table(x, y), start_of(made)
    batches = [np.arange(n_sites)[i::n_members] for i in range(n_members)]
    fit_weights(table, batches, start, max_iter=0)
    n = 3 * n_sites / n_members
    last = stopping[-1]
    assert (last["max_iter"], last["ftol"], last["value_scale"]) == (0, 1e-6, n)
    assert_allclose(last["expected_gain"], expected_gain * n)


@correlated_only
@pytest.mark.parametrize("before_joint", [False, True])
def test_a_search_before_the_joint_optimisation_ends_sooner(made, start, stopping, before_joint):
    """And a single table then gets no curvature: Newton's method would go too far."""
    sites = np.arange(26)
    curved = []
    for batches in ([sites], [sites[::2], sites[1::2]]):
        fit_weights(made.observations, batches, start, max_iter=2, before_joint=before_joint)
        assert stopping[-1]["ftol"] == (3e-5 if before_joint else 1e-6)
    for n_members in (1, 2):
        problem = fit._Problem(
            None, made.observations.batches([sites] * n_members), start,
            np.stack([start.W] * n_members), 78.0, 78.0,
            fit._StoppingRule(2, 1e-6, 1e-5, curvature=n_members > 1 or not before_joint), "cpu",
        )  # fmt: skip
        x = np.stack([start.W.ravel()] * n_members)
        curved.append(len(fit._loss(problem.tables, problem)(x, np.arange(n_members))) == 3)
    assert curved == [not before_joint, True]


@pytest.mark.parametrize(
    ("given", "curved"),
    [({}, True), ({"Q": 1, "missing": 0.0}, False), ({"N": 5, "k": 2}, False)],
    ids=["enough readings", "one latent and a complete table", "few readings for each weight"],
)
def test_curvature_is_used_where_it_pays(rng, given, curved):
    made = world(rng, **({"N": 20, "Q": 3, "k": 1, "missing": 0.1} | given))
    start, sites = start_of(made), np.arange(len(made.X))
    rule = fit._StoppingRule(2, 1e-6, 1e-5, curvature=True)
    tables = made.observations.batches([sites, sites])
    problem = fit._Problem(None, tables, start, np.stack([start.W] * 2), 1.0, 1.0, rule, "cpu")
    answer = fit._loss(tables, problem)(np.stack([start.W.ravel()] * 2), np.arange(2))
    assert (len(answer) == 3) is curved


# --- subsamples


@pytest.fixture
def large(rng, monkeypatch):
    monkeypatch.setattr(fit, "SUBSAMPLE_READINGS", 60)
    monkeypatch.setattr(fit, "SUBSAMPLE_READINGS_PER_PARAMETER", 2)
    return world(rng, N=40, D=3, Q=3, k=1)


@pytest.mark.parametrize(
    ("n_sites", "n_parameters", "left"),
    [(40, 9, 20), (30, 9, 20), (28, 9, 28), (20, 9, 20), (5, 9, 5), (40, 36, 24), (40, 45, 40)],
)
def test_a_subsample_has_enough_readings_or_is_the_batch(large, n_sites, n_parameters, left):
    """60 readings, or two for each parameter; all if that is more than 0.7 of them."""
    (some,) = subsample_batches(large.observations, [np.arange(n_sites)], n_parameters)
    assert len(some) == left
    assert np.all(np.diff(some) > 0)


def test_a_subsample_has_sites_of_its_batch(large):
    batches = [np.arange(0, 40, 2), np.arange(35)]
    for some, batch in zip(subsample_batches(large.observations, batches, 1), batches, strict=True):
        assert np.isin(some, batch).all()
    empty = Observations.from_table(large.X, np.full_like(large.Y, np.nan))
    assert len(subsample_batches(empty, [np.arange(40)], 1)[0]) == 40


def test_by_default_a_subsample_has_400_readings_and_20_for_each_parameter():
    assert (fit.SUBSAMPLE_READINGS, fit.SUBSAMPLE_READINGS_PER_PARAMETER) == (400, 20)


def test_step_2_starts_on_a_subsample_and_ends_on_all_readings(large, stopping, monkeypatch):
    sizes, real = [], fit._loss

    def noted(tables, problem):
        sizes.append(tables.n_sites)
        return real(tables, problem)

    monkeypatch.setattr(fit, "_loss", noted)
    start, batches = start_of(large), [np.arange(40)]
    fitted = fit_weights(large.observations, batches, start, max_iter=5)
    assert sorted(sizes) == [20, 40]
    first, last = stopping
    assert (first["value_scale"], last["value_scale"]) == (60.0, 120.0)
    assert_allclose([first["expected_gain"], last["expected_gain"]], [60 * 3e-4, 120 * 1e-5])
    assert first.get("memory") is None
    assert last["memory"] is not None
    sizes.clear()
    again = fit_weights(large.observations, batches, start, W=fitted.W, max_iter=1)
    assert sizes == [40]  # weights that are given are near the end
    assert again.log_likelihood[0] >= fitted.log_likelihood[0]


def test_if_the_subsample_leads_astray_the_search_starts_again_on_all(large, monkeypatch):
    real, asked = fit.minimize, []

    def astray(objective, x0, **given):
        asked.append("memory" in given)
        result = real(objective, x0, **given)
        return replace(result, value=result.value + np.inf) if "memory" in given else result

    monkeypatch.setattr(fit, "minimize", astray)
    fitted = fit_weights(large.observations, [np.arange(40)], start_of(large), max_iter=5)
    assert asked == [False, True, False]
    assert fitted.succeeded.all()


# --- members that fail


def fails_for(monkeypatch, bad, error):
    """Make the search of a member with these initial weights fail, and those beside it."""
    real = fit._fit

    def failing(problem):
        if np.equal(problem.W, bad).all(axis=(1, 2, 3)).any():
            raise error
        return real(problem)

    monkeypatch.setattr(fit, "_fit", failing)


@correlated_only
def test_members_that_fail_together_are_tried_one_by_one(made, batches, start, monkeypatch):
    W = np.stack([start.W, 7 * start.W, start.W])
    expected = fit_weights(made.observations, batches, start, W=W, max_iter=5)
    fails_for(monkeypatch, W[1], NumericalError("singular"))
    fitted = fit_weights(made.observations, batches, start, W=W, max_iter=5)
    assert_array_equal(fitted.succeeded, [True, False, True])
    assert fitted.message == "NumericalError: singular"
    assert_array_equal(fitted.W[1], W[1])
    assert (fitted.log_likelihood[1], fitted.n_iter[1], fitted.converged[1]) == (-np.inf, 0, False)
    assert_allclose(fitted.W[::2], expected.W[::2], atol=1e-8)


@correlated_only
def test_a_failure_without_a_text_is_named_by_its_kind(made, batches, start, monkeypatch):
    fails_for(monkeypatch, start.W, MemoryError())
    fitted = fit_weights(made.observations, batches, start, max_iter=5)
    assert not fitted.succeeded.any()
    assert fitted.message == "MemoryError"


def test_fitted_weights_of_some_members_can_be_selected_and_joined():
    one = FittedWeights.fixed(np.zeros((1, 1, 1, 1)), -12.5)
    assert (one.log_likelihood.tolist(), one.n_iter.tolist()) == ([-12.5], [0])
    assert one.converged.tolist() == [True]
    two = FittedWeights(
        np.ones((2, 1, 1, 1)), np.array([1.0, -np.inf]), np.array([True, False]), np.array([3, 4]),
        message="why",
    )  # fmt: skip
    assert_array_equal(two.succeeded, [True, False])
    kept = two.select(np.array([False, True]))
    assert (kept.n_iter.tolist(), kept.converged.tolist(), kept.message) == ([4], [False], "why")
    assert kept.log_likelihood.tolist() == [-np.inf]
    joined = FittedWeights.concatenate([one, two], "both")
    assert_array_equal(joined.W.ravel(), [0.0, 1.0, 1.0])
    assert joined.n_iter.tolist() == [0, 3, 4]
    assert joined.message == "both"
    assert FittedWeights.concatenate([one]).message == ""
    assert FittedWeights.fixed(np.zeros((2, 1, 1, 1))).log_likelihood.tolist() == [0.0, 0.0]
