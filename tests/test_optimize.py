"""Batched minimisation with bounds, compared with SciPy's; convergence, failures, resumption."""

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


def square(x, _):
    return (x**2).sum(1), 2 * x


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
    assert 0.2 < found.at_bound.mean() < 0.8  # both kinds occur


def test_rosenbrocks_valley_is_followed_in_about_as_many_steps_as_scipys(rng):
    x0 = rng.uniform(-2, 2, size=(10, 4))
    x0[0] = [-1.2, 1.0, 1.0, 1.0]
    theirs = [scipy_minimize(rosen, x, jac=rosen_der, method="L-BFGS-B") for x in x0]
    found = minimize(rosenbrock, x0, max_iter=500)
    assert found.converged.all()
    assert not found.at_bound.any()
    assert np.sum(np.abs(found.x - 1.0).max(axis=1) < 1e-3) >= 9  # there is a second minimum
    assert found.n_iter.mean() < 1.5 * np.mean([end.nit for end in theirs])


def test_problems_of_a_batch_do_not_affect_each_other(rng):
    objective = quadratics(rng, B=6, p=4, condition=1000.0)
    bounds = np.tile(UNIT_BOX, (4, 1))
    x0 = rng.uniform(-0.5, 0.5, size=(6, 4))
    together = minimize(objective, x0, bounds=bounds)
    for i in range(6):
        alone = minimize(lambda x, _, i=i: objective(x, np.array([i])), x0[[i]], bounds=bounds)
        one = together.problem(i)
        assert_allclose(one.x, alone.x, atol=1e-8)
        assert_allclose(one.value, alone.value, rtol=1e-10)
        assert_array_equal(one.converged, alone.converged)
        assert_allclose(one.memory.steps, alone.memory.steps, atol=1e-8)
    assert len(set(together.n_iter)) > 1  # they ended at different times


def test_a_problem_that_has_ended_is_not_evaluated_again():
    evaluated = []
    steep = np.array([[1.0], [1000.0]])

    def objective(x, which):
        evaluated.append(which.tolist())
        u = steep[which] * (x - 0.3)
        return np.cosh(u)[:, 0], steep[which] * np.sinh(u)

    minimize(objective, np.array([[0.3], [0.29]]))
    assert evaluated[0] == [0, 1]
    assert all(which == [1] for which in evaluated[1:])
    assert len(evaluated) > 2


def test_converged_means_that_the_projected_gradient_is_small(rng):
    """Ill-conditioned quadratics in a box: where a variable approaches its bound slowly, steps
    become short long before the minimum."""
    objective = quadratics(rng, B=500, p=3, condition=1e4)
    bounds = np.tile(UNIT_BOX, (3, 1))
    x0 = rng.uniform(-0.5, 0.5, size=(500, 3))
    found = minimize(objective, x0, bounds=bounds, max_iter=2000)
    _, gradient = objective(found.x, np.arange(500))
    slope = np.abs(np.clip(found.x - gradient, *bounds.T) - found.x).max(1)
    assert_array_equal(np.flatnonzero(found.converged & (slope > 0.05)), [])
    assert found.converged.mean() > 0.99
    assert found.n_iter.max() < 200


@pytest.mark.parametrize("seed", range(3))
def test_rounding_at_the_minimum_ends_a_search_soon(seed):
    """A likelihood of 300 has about eight digits when its covariance is nearly singular."""
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


def test_a_search_that_reaches_max_iter_has_not_converged_and_keeps_its_best(rng):
    x0 = rng.uniform(-2, -1, size=(5, 2))
    found = minimize(rosenbrock, x0, max_iter=3)
    assert_array_equal(found.n_iter, 3)
    assert not found.converged.any()
    assert np.all(found.value < rosenbrock(x0, None)[0])
    assert_allclose(found.value, rosenbrock(found.x, None)[0])


def test_the_callback_receives_the_values_after_every_step_and_changes_nothing(rng):
    values = []
    objective = quadratics(rng, B=5, p=4, condition=1e3)
    x0, bounds = rng.uniform(-0.5, 0.5, size=(5, 4)), np.tile(UNIT_BOX, (4, 1))
    found = minimize(objective, x0, bounds=bounds, callback=lambda f: values.append(f.copy()))
    plain = minimize(objective, x0, bounds=bounds)
    assert_array_equal(found.x, plain.x)
    assert len(values) >= found.n_iter.max()
    steps = np.diff([objective(x0, np.arange(5))[0], *values], axis=0)
    assert np.all(steps <= 0)  # values never rise
    assert np.all(np.any(steps < 0, axis=1))  # and it is called only when one has fallen
    assert_array_equal(values[-1], found.value)


def test_the_callback_is_not_called_at_a_minimum():
    values = []
    minimize(square, np.zeros((2, 1)), callback=values.append)
    assert values == []


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_a_region_where_the_value_is_not_finite_is_avoided(beyond):
    def objective(x, _):
        inside = (x > 0).all(1)
        positive = np.where(x > 0, x, 1.0)
        value = np.where(inside, (positive - np.log(positive)).sum(1), beyond)
        return value, np.where(inside[:, None], 1 - 1 / positive, np.nan)

    found = minimize(objective, np.array([[0.05, 3.0], [10.0, 0.9]]))
    assert found.converged.all()
    assert_allclose(found.x, 1.0, atol=1e-4)


def test_a_search_that_ends_before_nonfinite_gradients_has_not_converged():
    def objective(x, _):
        return ((x - 1) ** 2).sum(1), np.where(x > 0.5, np.nan, 2 * (x - 1))

    found = minimize(objective, np.zeros((1, 1)))
    assert 0.4 < found.x[0, 0] <= 0.5
    assert not found.converged[0]
    assert found.nonfinite[0]


def test_a_start_without_a_finite_value_stays_there_and_has_not_converged():
    def objective(x, which):
        return np.where(which == 0, np.nan, (x**2).sum(1)), 2 * x

    found = minimize(objective, np.array([[0.3], [0.3]]))
    assert_array_equal(found.converged, [False, True])
    assert_array_equal(found.nonfinite, [True, False])
    assert found.value[0] == np.inf
    assert found.x[0, 0] == 0.3


@pytest.mark.parametrize("max_step", [1.0, 0.1])
def test_no_step_is_longer_than_max_step_and_the_first_a_fifth_of_it(max_step):
    """On a function that is flat far from its minimum: log(1 + x²)."""
    tried = []

    def objective(x, _):
        tried.append(x[0].copy())
        return np.log1p(1e6 * x**2).sum(1), 2e6 * x / (1 + 1e6 * x**2)

    minimize(objective, np.array([[0.01, 3.0]]), max_step=max_step)
    lengths = np.abs(np.diff(tried, axis=0)).max(axis=1)
    assert 0 < lengths[0] <= 0.2 * max_step * (1 + 1e-12)
    assert lengths.max() <= 2 * max_step  # from the end of a rejected step to the next


def test_starts_outside_the_bounds_are_moved_inside():
    bounds = np.array([[1.0, 2.0], [-2.0, -1.0]])
    found = minimize(square, np.array([[5.0, -5.0]]), bounds=bounds)
    assert_array_equal(found.x, [[1.0, -1.0]])
    assert found.at_bound.all()
    assert found.converged.all()


def test_a_variable_leaves_a_bound_that_is_not_its_minimum():
    found = minimize(
        lambda x, _: (((x - 0.7) ** 2).sum(1), 2 * (x - 0.7)),
        np.array([[0.0]]),
        bounds=np.array([[0.0, 1.0]]),
    )
    assert_allclose(found.x, 0.7, atol=1e-5)
    assert not found.at_bound.any()


def test_a_problem_without_variables_has_converged():
    found = minimize(lambda x, _: (np.full(len(x), 3.0), x), np.empty((2, 0)))
    assert_array_equal(found.value, 3.0)
    assert found.converged.all()


def test_a_search_ends_where_the_next_step_is_expected_to_gain_too_little():
    """On a quadratic with known curvature, the expected gain is all that is left."""
    curvatures = np.array([1.0, 9.0])

    def loss(x, which):
        return 0.5 * (curvatures * x**2).sum(1), curvatures * x

    x0 = np.array([[3.0, -2.0]])
    full, early = (minimize(loss, x0, expected_gain=gain) for gain in (0.0, 0.5))
    assert early.converged.all()
    assert early.n_iter[0] < full.n_iter[0]
    assert 1e-3 < early.value[0] < 0.1 * loss(x0, None)[0][0]
    again = minimize(loss, full.x, memory=full.memory, expected_gain=0.5)
    assert again.n_iter[0] == 0
    assert again.converged.all()


def test_with_their_curvature_quadratics_need_one_step(rng):
    objective = quadratics(rng, B=5, p=4, condition=100.0)
    x0 = rng.uniform(-0.1, 0.1, size=(5, 4))

    def with_curvature(x, which):
        columns = [objective(row + np.zeros_like(x), which)[1] for row in (*np.eye(4), np.zeros(4))]
        return *objective(x, which), np.stack(columns[:4], axis=-1) - columns[4][:, :, None]

    found = minimize(with_curvature, x0, max_step=100.0)
    assert_allclose(found.x, minimize(objective, x0, max_iter=500, max_step=100.0).x, atol=1e-4)
    assert found.n_iter.max() == 1


def test_newtons_method_descends_from_a_saddle():
    """The unmodified step would lead to the saddle."""

    def objective(x, which):
        f = x[:, 0] ** 2 - x[:, 1] ** 2 + 0.5 * x[:, 1] ** 4
        g = np.column_stack([2 * x[:, 0], -2 * x[:, 1] + 2 * x[:, 1] ** 3])
        return f, g, np.stack([np.diag([2.0, -2 + 6 * y**2]) for y in x[:, 1]])

    found = minimize(objective, np.array([[0.3, 0.01], [-2.0, -0.2]]))
    assert_allclose(np.abs(found.x), [[0, 1], [0, 1]], atol=1e-5)
    assert found.converged.all()


@pytest.mark.parametrize("curvature", [False, True])
def test_a_search_resumed_from_any_state_ends_with_the_same_bits(rng, curvature):
    """Problems end at different times, some steps are rejected, one problem cannot start."""
    a, b = rng.uniform(0.5, 2.0, size=(2, 4))

    def valleys(x, which):
        f = a[which] * (1 - x[:, 0]) ** 2 + 30 * b[which] * (x[:, 1] - x[:, 0] ** 2) ** 2
        slope = -2 * a[which] * (1 - x[:, 0]) - 120 * b[which] * x[:, 0] * (x[:, 1] - x[:, 0] ** 2)
        g = np.column_stack([slope, 60 * b[which] * (x[:, 1] - x[:, 0] ** 2)])
        f = np.where(which == 3, np.nan, f)
        H = np.einsum("b,pq->bpq", 1 + x[:, 0] ** 2, [[60.0, 0.0], [0.0, 60.0]])
        return (f, g, H) if curvature else (f, g)

    x0 = rng.uniform(-1.5, 0.5, size=(4, 2))
    settings = {"bounds": np.array([[-2.0, 0.9], [-2.0, 2.0]]), "max_iter": 30}
    states = []
    full = minimize(
        valleys, x0, state_callback=lambda state: states.append(deepcopy(state)), **settings
    )
    assert len(states) > 10
    for state in states[::3]:
        again = minimize(valleys, x0, initial_state=state, **settings)
        for name in ("x", "value", "converged", "at_bound", "n_iter", "nonfinite"):
            assert_array_equal(getattr(again, name), getattr(full, name), strict=True)
        assert_array_equal(again.memory.steps, full.memory.steps)


def test_searches_can_end_early_and_the_others_continue():
    asked = []

    def stop_if(x, value, gain, which):
        asked.append(which.tolist())
        return (which == 1) & (value < 5.0)

    start = np.array([[1.0], [3.0]])
    found = minimize(square, start, bounds=np.array([[-9.0, 9.0]]), stop_if=stop_if)
    assert found.converged.tolist() == [True, False]
    assert_allclose(found.x[0], 0.0, atol=1e-5)
    assert 0 < found.value[1] < 5.0
    assert asked[0] == [0, 1]
    at_once = minimize(square, start, stop_if=lambda x, value, gain, which: which >= 0)
    assert at_once.n_iter.tolist() == [0, 0]
