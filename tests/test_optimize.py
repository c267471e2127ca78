"""Batched L-BFGS with bounds: as good as scipy's on each problem, and honest about the end."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der

from emgpr.optimize import minimize

UNIT_BOX = np.array([-0.5, 0.5])


def quadratics(rng, *, B, p, condition):
    """½xᵀAx − bᵀx with random axes; many minima lie outside the box of the tests."""
    Q = np.linalg.qr(rng.normal(size=(B, p, p)))[0]
    A = np.einsum("bij,j,bkj->bik", Q, np.geomspace(1, condition, p), Q)
    b = 3 * rng.normal(size=(B, p))

    def objective(x, which):
        Ax = np.einsum("bij,bj->bi", A[which], x)
        return 0.5 * (x * Ax).sum(1) - (b[which] * x).sum(1), Ax - b[which]

    return objective


def rosenbrock(x, _):
    return np.array([rosen(row) for row in x]), np.array([rosen_der(row) for row in x])


def by_scipy(objective, x0, bounds=None):
    ends = []
    for i, start in enumerate(x0):
        which = np.array([i])
        ends.append(
            scipy_minimize(
                lambda x, which=which: tuple(part[0] for part in objective(x[None], which)),
                start,
                jac=True,
                bounds=bounds,
                method="L-BFGS-B",
                options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
            )
        )
    return np.array([end.x for end in ends]), np.array([end.fun for end in ends])


def projected_slope(objective, x, bounds):
    _, g = objective(x, np.arange(len(x)))
    return np.abs(np.clip(x - g, *bounds.T) - x).max(1)


@pytest.mark.parametrize("condition", [1.0, 100.0])
def test_bounded_quadratics_end_where_scipys_do(rng, condition):
    objective = quadratics(rng, B=40, p=5, condition=condition)
    bounds = np.tile(UNIT_BOX, (5, 1))
    bounds[0], bounds[1, 1] = (-np.inf, np.inf), np.inf
    x0 = rng.uniform(-0.5, 0.5, size=(40, 5))
    found = minimize(objective, x0, bounds=bounds, max_iter=500)
    x, value = by_scipy(objective, x0, bounds)
    assert found.converged.all()
    assert_allclose(found.value, value, rtol=1e-7, atol=1e-7)
    assert_allclose(found.x, x, atol=1e-3)
    assert_array_equal(found.at_bound, (x <= bounds[:, 0]) | (x >= bounds[:, 1]))
    assert 0.2 < found.at_bound.mean() < 0.8  # both kinds were tried


def test_rosenbrocks_valley_is_followed_to_its_end(rng):
    found = minimize(rosenbrock, rng.uniform(-2, 2, size=(10, 2)), max_iter=500)
    assert found.converged.all()
    assert_allclose(found.x, 1.0, atol=1e-3)
    assert not found.at_bound.any()


def test_a_search_takes_about_as_many_steps_as_scipys(rng):
    x0 = rng.uniform(-2, 2, size=(10, 4))
    theirs = [scipy_minimize(rosen, x, jac=rosen_der, method="L-BFGS-B").nit for x in x0]
    assert minimize(rosenbrock, x0, max_iter=500).n_iter.mean() < 1.5 * np.mean(theirs)


def test_in_lockstep_each_problem_goes_as_it_would_alone(rng):
    objective = quadratics(rng, B=6, p=4, condition=1000.0)
    bounds = np.tile(UNIT_BOX, (4, 1))
    x0 = rng.uniform(-0.5, 0.5, size=(6, 4))
    together = minimize(objective, x0, bounds=bounds)
    for i in range(6):
        alone = minimize(lambda x, _, i=i: objective(x, np.array([i])), x0[[i]], bounds=bounds)
        assert_allclose(together.x[i], alone.x[0], atol=1e-8)
        assert_allclose(together.value[i], alone.value[0], rtol=1e-10)
        assert together.converged[i] == alone.converged[0]
    assert len(set(together.n_iter)) > 1  # they ended at different times


def test_a_problem_that_has_ended_is_not_evaluated_again(rng):
    asked = []
    steep = np.array([[1.0], [1000.0]])

    def objective(x, which):
        asked.append(which.tolist())
        return np.cosh(steep[which] * (x - 0.3))[:, 0], steep[which] * np.sinh(
            steep[which] * (x - 0.3)
        )

    minimize(objective, np.array([[0.3], [0.29]]))
    assert asked[0] == [0, 1]
    assert all(which == [1] for which in asked[1:])
    assert len(asked) > 2


def test_converged_means_that_descent_has_ended(rng):
    """Ill-conditioned quadratics in a box: where a variable creeps up to its bound, steps get
    short long before the minimum."""
    objective = quadratics(rng, B=500, p=3, condition=1e4)
    bounds = np.tile(UNIT_BOX, (3, 1))
    x0 = rng.uniform(-0.5, 0.5, size=(500, 3))
    found = minimize(objective, x0, bounds=bounds, max_iter=2000)
    slope = projected_slope(objective, found.x, bounds)
    assert_array_equal(np.flatnonzero(found.converged & (slope > 0.05)), [])
    assert found.converged.mean() > 0.99  # and it is not bought by never saying so
    assert found.n_iter.max() < 200


@pytest.mark.parametrize("seed", range(5))
def test_rounding_at_the_minimum_ends_a_search_soon_and_well(seed):
    """A likelihood of 300 is known to eight digits or so when its covariance is nearly singular."""
    exact = quadratics(np.random.default_rng(seed), B=20, p=3, condition=1e3)
    evaluations = np.zeros(20, int)

    def objective(x, which):
        evaluations[which] += 1
        value, slope = exact(x, which)
        rounding = np.sin(1e9 * x.sum(1))
        return value - 300 + 1e-6 * rounding, slope + 1e-3 * rounding[:, None]

    bounds = np.tile(UNIT_BOX, (3, 1))
    found = minimize(objective, np.zeros((20, 3)), bounds=bounds, max_iter=120)
    assert found.converged.all()
    assert evaluations.max() < 150


def test_a_search_cut_short_has_not_converged_and_keeps_its_best(rng):
    x0 = rng.uniform(-2, -1, size=(5, 2))
    found = minimize(rosenbrock, x0, max_iter=3)
    assert_array_equal(found.n_iter, 3)
    assert not found.converged.any()
    assert np.all(found.value < rosenbrock(x0, None)[0])
    assert_allclose(found.value, rosenbrock(found.x, None)[0])


def test_a_value_never_rises(rng):
    objective = quadratics(rng, B=50, p=4, condition=1e3)
    x0, bounds = rng.uniform(-0.5, 0.5, size=(50, 4)), np.tile(UNIT_BOX, (4, 1))
    values = [
        minimize(objective, x0, bounds=bounds, max_iter=n, gtol=0.0, ftol=0.0).value
        for n in (1, 2, 4, 8, 16)
    ]
    assert np.all(np.diff([objective(x0, np.arange(50))[0], *values], axis=0) <= 1e-12)


def test_who_watches_is_told_of_every_step_and_changes_nothing(rng):
    told = []
    x0 = rng.uniform(-2, 2, size=(1, 4))
    found = minimize(rosenbrock, x0, max_iter=25, watch=lambda f: told.append(f.copy()))
    plain = minimize(rosenbrock, x0, max_iter=25)
    assert_array_equal(found.x, plain.x)
    assert len(told) == found.n_iter[0] == 25
    assert np.all(np.diff([rosenbrock(x0, None)[0], *told], axis=0) <= 0)
    assert_array_equal(told[-1], found.value)


def test_who_watches_several_searches_sees_the_values_of_all(rng):
    told = []
    objective = quadratics(rng, B=5, p=3, condition=100.0)
    x0, bounds = rng.uniform(-0.5, 0.5, size=(5, 3)), np.tile(UNIT_BOX, (3, 1))
    found = minimize(objective, x0, bounds=bounds, watch=lambda f: told.append(f.copy()))
    assert np.shape(told) == (len(told), 5)
    assert np.all(np.diff(told, axis=0) <= 0)
    assert np.all(np.any(np.diff(told, axis=0) < 0, axis=1))  # never when nothing moved
    assert_array_equal(told[-1], found.value)


def test_who_watches_a_search_that_is_over_hears_nothing():
    told = []
    flat = np.zeros((2, 1))
    minimize(lambda x, _: ((x**2).sum(1), 2 * x), flat, watch=told.append)
    assert told == []


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_a_region_where_the_value_is_not_finite_is_walked_around(beyond):
    def objective(x, _):
        inside = (x > 0).all(1)
        positive = np.where(x > 0, x, 1.0)
        value = np.where(inside, (positive - np.log(positive)).sum(1), beyond)
        return value, np.where(inside[:, None], 1 - 1 / positive, np.nan)

    found = minimize(objective, np.array([[0.05, 3.0], [10.0, 0.9]]))
    assert found.converged.all()
    assert_allclose(found.x, 1.0, atol=1e-4)


def test_a_wall_of_broken_gradients_is_not_crossed_and_is_no_minimum():
    def objective(x, _):
        return ((x - 1) ** 2).sum(1), np.where(x > 0.5, np.nan, 2 * (x - 1))

    found = minimize(objective, np.zeros((1, 1)))
    assert 0.4 < found.x[0, 0] <= 0.5
    assert not found.converged[0]


def test_a_start_without_a_value_stays_there_and_has_not_converged():
    def objective(x, which):
        return np.where(which == 0, np.nan, (x**2).sum(1)), 2 * x

    found = minimize(objective, np.array([[0.3], [0.3]]))
    assert_array_equal(found.converged, [False, True])
    assert found.value[0] == np.inf
    assert found.x[0, 0] == 0.3


def leaps(max_step):
    """Steps that a search tries on a function whose far side is flat: log(1 + x²)."""
    tried = []

    def objective(x, _):
        tried.append(x[0].copy())
        return np.log1p(1e6 * x**2).sum(1), 2e6 * x / (1 + 1e6 * x**2)

    minimize(objective, np.array([[0.01, 3.0]]), max_step=max_step)
    return np.abs(np.diff(tried, axis=0)).max(axis=1)


@pytest.mark.parametrize("max_step", [1.0, 0.1])
def test_the_first_step_cannot_leap_and_no_step_exceeds_the_longest(max_step):
    tried = leaps(max_step)
    assert 0 < tried[0] <= 0.2 * max_step * (1 + 1e-12)
    assert tried.max() <= 2 * max_step  # from one end of a rejected step to the next try


def test_starts_outside_the_bounds_are_brought_inside():
    found = minimize(
        lambda x, _: ((x**2).sum(1), 2 * x),
        np.array([[5.0, -5.0]]),
        bounds=np.array([[1.0, 2.0], [-2.0, -1.0]]),
    )
    assert_array_equal(found.x, [[1.0, -1.0]])
    assert found.at_bound.all()
    assert found.converged.all()


def test_a_variable_leaves_a_bound_where_it_does_not_belong():
    found = minimize(
        lambda x, _: (((x - 0.7) ** 2).sum(1), 2 * (x - 0.7)),
        np.array([[0.0]]),
        bounds=np.array([[0.0, 1.0]]),
    )
    assert_allclose(found.x, 0.7, atol=1e-5)
    assert not found.at_bound.any()


def test_nothing_to_minimise_over_has_converged():
    found = minimize(lambda x, _: (np.full(len(x), 3.0), x), np.empty((2, 0)))
    assert_array_equal(found.value, 3.0)
    assert found.converged.all()


def test_a_search_ends_where_its_next_step_promises_too_little():
    """Of a bowl, once its curvature is known, the promise is all that is left to gain."""
    bowl = np.array([1.0, 9.0])

    def loss(x, which):
        return 0.5 * (bowl * x**2).sum(1), bowl * x

    x0 = np.array([[3.0, -2.0]])
    whole, early = (minimize(loss, x0, promise=promise) for promise in (0.0, 0.5))
    assert early.converged.all()
    assert early.n_iter[0] < whole.n_iter[0]
    assert 1e-3 < early.value[0] < 0.1 * loss(x0, None)[0][0]
    again = minimize(loss, whole.x, memory=whole.memory, promise=0.5)
    assert again.n_iter[0] == 0
    assert again.converged.all()


def test_of_bowls_whose_curvature_is_told_the_first_step_is_the_last(rng):
    bowls = quadratics(rng, B=5, p=4, condition=100.0)
    x0 = rng.uniform(-0.1, 0.1, size=(5, 4))

    def told(x, which):
        columns = [bowls(row + np.zeros_like(x), which)[1] for row in (*np.eye(4), np.zeros(4))]
        return *bowls(x, which), np.stack(columns[:4], axis=-1) - columns[4][:, :, None]

    found = minimize(told, x0, max_step=100.0)
    assert_allclose(found.x, minimize(bowls, x0, max_iter=500, max_step=100.0).x, atol=1e-4)
    assert found.n_iter.max() == 1


def test_from_a_saddle_a_told_curvature_leads_down():
    """Newton's own step would be to the saddle."""

    def objective(x, which):
        f = x[:, 0] ** 2 - x[:, 1] ** 2 + 0.5 * x[:, 1] ** 4
        g = np.column_stack([2 * x[:, 0], -2 * x[:, 1] + 2 * x[:, 1] ** 3])
        return f, g, np.stack([np.diag([2.0, -2 + 6 * y**2]) for y in x[:, 1]])

    found = minimize(objective, np.array([[0.3, 0.01], [-2.0, -0.2]]))
    assert_allclose(np.abs(found.x), [[0, 1], [0, 1]], atol=1e-5)
    assert found.converged.all()


@pytest.mark.parametrize("told", [False, True])
def test_a_search_resumed_from_any_of_its_rounds_ends_with_the_same_bits(rng, told):
    """Problems end at different rounds, some steps are taken back, one problem cannot start."""
    a, b = rng.uniform(0.5, 2.0, size=(2, 4))

    def valleys(x, which):
        f = a[which] * (1 - x[:, 0]) ** 2 + 30 * b[which] * (x[:, 1] - x[:, 0] ** 2) ** 2
        slope = -2 * a[which] * (1 - x[:, 0]) - 120 * b[which] * x[:, 0] * (x[:, 1] - x[:, 0] ** 2)
        g = np.column_stack([slope, 60 * b[which] * (x[:, 1] - x[:, 0] ** 2)])
        f = np.where(which == 3, np.nan, f)
        bent = np.einsum("b,pq->bpq", 1 + x[:, 0] ** 2, [[60.0, 0.0], [0.0, 60.0]])
        return (f, g, bent) if told else (f, g)

    x0 = rng.uniform(-1.5, 0.5, size=(4, 2))
    settings = {"bounds": np.array([[-2.0, 0.9], [-2.0, 2.0]]), "max_iter": 30}
    rounds = []
    whole = minimize(valleys, x0, keep=lambda state: rounds.append(deepcopy(state)), **settings)
    assert len(rounds) > 10
    for state in rounds:
        again = minimize(valleys, x0, resume=state, **settings)
        for name in ("x", "value", "converged", "at_bound", "n_iter"):
            assert_array_equal(getattr(again, name), getattr(whole, name), strict=True)
        assert_array_equal(again.memory.steps, whole.memory.steps)
