"""The weights of all patterns of a table, fitted to left-out readings."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF

from emgpr.mixture_weights import gaussian_log_density, stacking_weights
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, LMCPosterior
from emgpr.regression import fit_regression
from emgpr.regression.fit import FAR_READINGS, NEAR_READINGS
from emgpr.stacking import CANDIDATES, fit_stack
from emgpr.stacking import fit as module
from emgpr.stacking.fit import (
    INFLATION_READINGS,
    MIN_READINGS,
    _near_and_in_gaps,
    regression_rows,
)
from emgpr.stacking.gaps import N_FOLDS, pattern_folds
from emgpr.stacking.locations import scaled_locations
from emgpr.stacking.patterns import TablePattern
from emgpr.stacking.scores import LeftOutScores
from emgpr.stacking.weights import without_negligible
from tests.simulated import lmc_posterior, world
from tests.stacking.stacked import gappy_world, stacked_posterior, strip

OWN, JOINT, REGRESSION = range(3)


@pytest.fixture(scope="module")
def fitted():
    return stacked_posterior()


def test_every_output_asks_one_question_of_the_table(fitted):
    _, posterior = fitted
    stack = posterior.stack
    assert set(stack.known) == {(0, (1, 2)), (1, (0, 2)), (2, (0, 1))}
    assert set(stack.regressions) == set(stack.known)
    for found in (*stack.unknown, *stack.known.values()):
        for weights in (found.near, found.far):
            assert weights.shape == (len(CANDIDATES),)
            assert_allclose(weights.sum(), 1.0)
            assert (weights >= 0).all()
        assert (found.inflation >= 1).all()
    assert all(found.near[REGRESSION] == 0 for found in stack.unknown)


NEAR, FAR = np.full(3, 1 / 3), np.array([0.3, 3.0, 3.0])  # what the priors are worth


def score_all(y, candidates, penalty, n, prior):
    """Weights and mean log densities, written out; candidates are means and variances or None."""
    used = [c for c, moments in enumerate(candidates) if moments is not None]
    density = np.column_stack([gaussian_log_density(y, *candidates[c]) for c in used])
    density[:, [c == JOINT for c in used]] -= penalty
    weights, means = np.zeros(3), np.full(3, np.nan)
    means[used] = density.mean(axis=0)
    good = np.flatnonzero(means >= np.nanmax(means) - 1.0)
    density = density[:, np.isin(used, good)]
    weights[good] = without_negligible(stacking_weights(density, prior[good], n))
    return weights, means


def inflated(y, moments):
    """The variances multiplied by the mean squared error that they lead one to expect."""
    ratio = np.mean((y - moments[0]) ** 2 / moments[1])
    factor = (FAR_READINGS * ratio + INFLATION_READINGS) / (FAR_READINGS + INFLATION_READINGS)
    return max(1.0, factor)


@pytest.mark.parametrize("pattern", [(1, (0, 2)), (2, (0, 1))])
def test_weights_are_those_of_the_log_densities_of_left_out_readings(fitted, pattern):
    made, posterior = fitted
    d = pattern[0]
    joint = posterior.with_transfer()
    scores = LeftOutScores(joint, True, posterior.stack.n_parameters)
    gap = (made.X[:, 0] < 0.4) & ~np.isnan(made.Y[:, 2])
    n_missing = int(gap[~np.isnan(made.Y[:, 0])].sum()) if d == 1 else 0
    folds = pattern_folds(joint, TablePattern(pattern, n_missing, d == 1))
    read = np.flatnonzero(~np.isnan(made.Y[:, d]))
    y, x = made.Y[read, d], scaled_locations(joint, d, 40)
    rows = regression_rows(joint, pattern, x, read)
    measured = rows.imputed == 0  # readings given imputed values are not scored
    regression = fit_regression("matern12", rows, y, folds[read], measured)
    assert 10 <= measured.sum() < len(read)

    def of(table):
        return some((table[0][read, d], table[1][read, d]))

    def some(moments):
        return moments[0][measured], moments[1][measured]

    given = scores.joint_given(pattern, read[measured])
    near = [of(scores.own_near), given, some(regression.near)]
    found, y = posterior.stack.known[pattern], y[measured]
    weights, means = score_all(y, near, scores.penalty, NEAR_READINGS, NEAR)
    assert_allclose(found.near, weights, rtol=1e-6, atol=1e-9)
    assert_allclose(found.log_scores[0], means, rtol=1e-6)

    of_output = np.zeros((3, 40), int)
    of_output[d] = folds
    far = [of(scores.own_far(of_output)), None, some(regression.far)]
    if d == 1:  # the output with a gap
        far[JOINT] = of(scores.joint_far([joint.model] * N_FOLDS, folds, [d]))
    # Gaps are scored where the nearest reading in another fold is far away.
    same = folds[read][:, None] == folds[read]
    apart = np.linalg.norm(x[read][:, None] - x[read], axis=-1)
    distance = np.where(same, np.inf, apart).min(axis=1)[measured]
    deep = distance >= np.median(distance)
    assert_allclose(found.distances[1], np.median(distance[deep]))
    far = [None if part is None else (part[0][deep], part[1][deep]) for part in far]
    y = y[deep]
    factors = [1.0 if part is None else inflated(y, part) for part in far]
    factors[REGRESSION] = 1.0
    assert_allclose(found.inflation, factors, rtol=1e-6)
    far = [
        None if part is None else (part[0], factor * part[1])
        for part, factor in zip(far, factors, strict=True)
    ]
    weights, means = score_all(y, far, 0.0, FAR_READINGS, FAR)
    assert_allclose(found.far, weights, rtol=1e-6, atol=1e-9)
    assert_allclose(found.log_scores[1], means, rtol=1e-6)


def test_a_candidate_that_predicts_very_badly_in_gaps_is_not_used(rng):
    """Although the prior is worth three readings; if it is only somewhat worse, it is used."""
    y = rng.normal(size=30)
    good, bad = (y + 0.1, np.full(30, 0.1)), (y + 0.4, np.full(30, 0.4))
    distance = np.linspace(0, 1, 30)
    near = np.eye(3)[0], np.zeros(3)
    for worse, used in ((bad, True), ((y + 3, np.full(30, 9.0)), False)):
        weights = _near_and_in_gaps(near, 0.1, y, [None, worse, good], distance).far
        assert weights[JOINT] > 0 if used else weights[JOINT] == 0
        assert weights[REGRESSION] > 0.7


def test_outputs_that_are_never_measured_together_have_no_regression():
    """Imputed values are not readings: a regression on them cannot be tested."""
    made = world(np.random.default_rng(3), N=40, k=1)
    Y = made.Y.copy()
    Y[::2, 0], Y[1::2, 1] = np.nan, np.nan
    posterior = stacked_posterior(made.table(Y))[1]
    assert not any({d, *known} >= {0, 1} for d, known in posterior.stack.regressions)


def test_where_nothing_is_known_left_out_sites_decide(fitted):
    made, posterior = fitted
    scores = LeftOutScores(posterior.with_transfer(), True, posterior.stack.n_parameters)
    for d, found in enumerate(posterior.stack.unknown):
        read = ~np.isnan(made.Y[:, d])
        near = [
            (table[0][read, d], table[1][read, d]) for table in (scores.own_near, scores.joint_near)
        ]
        weights, _ = score_all(made.Y[read, d], [*near, None], scores.penalty, NEAR_READINGS, NEAR)
        assert_allclose(found.near, weights, rtol=1e-6, atol=1e-9)
        assert found.has_gaps == (d == 1)
        if d != 1:
            assert_array_equal(found.far, found.near)


def test_where_nothing_is_known_in_a_gap_the_other_outputs_are_left_out_too(fitted):
    made, posterior = fitted
    joint = posterior.with_transfer()
    scores = LeftOutScores(joint, True, posterior.stack.n_parameters)
    folds = pattern_folds(joint, TablePattern((1, (0, 2)), int((made.X[:, 0] < 0.4).sum()), True))
    far = scores.joint_far([joint.model] * N_FOLDS, folds, [1], with_known=False)
    read = np.flatnonzero(~np.isnan(made.Y[:, 1]))
    x, labels = scaled_locations(joint, 1, 40)[read], folds[read]
    apart = np.linalg.norm(x[:, None] - x, axis=-1)
    distance = np.where(labels[:, None] == labels, np.inf, apart).min(axis=1)
    at = read[distance >= np.median(distance)]
    candidates = [
        (table[0][at, 1], table[1][at, 1]) for table in (scores.own_far(np.stack(3 * [folds])), far)
    ]
    y = made.Y[at, 1]
    factors = [inflated(y, moments) for moments in candidates]
    candidates = [(m, f * v) for (m, v), f in zip(candidates, factors, strict=True)]
    weights, _ = score_all(y, [*candidates, None], 0.0, FAR_READINGS, FAR)
    found = posterior.stack.unknown[1]
    assert_allclose(found.far, weights, rtol=1e-6, atol=1e-9)
    assert_allclose(found.inflation, [*factors, 1.0], rtol=1e-6)


def test_the_joint_model_is_refitted_without_the_readings_in_each_gap():
    made, tables = gappy_world(), []
    joint = lmc_posterior(made)

    def refit(table):
        tables.append(table)
        return joint.model

    stack = fit_stack(joint, LeftOutScores(joint, True, 10), refit=refit)
    assert len(tables) == N_FOLDS
    removed = np.stack([joint.observations.observed & ~table.observed for table in tables])
    assert_array_equal(removed[:, [0, 2]], False)  # they have no gaps
    # Every reading of the output with a gap is removed from one of the tables.
    assert_array_equal(removed[:, 1].sum(axis=0), joint.observations.observed[1])
    assert (removed[:, 1].sum(axis=1) > 0).all()
    for table in tables:
        kept = table.observed
        assert_array_equal(table.y[kept], joint.observations.y[kept])
        assert_array_equal(table.y[~kept], 0.0)
    assert not np.isnan(stack.known[1, (0, 2)].log_scores[1, JOINT])


def test_refitted_models_are_used_in_the_folds_that_they_were_fitted_without():
    """Two groups of outputs have gaps, and their folds do not begin with the same one."""
    made = strip(world(np.random.default_rng(4), N=60, k=1))
    Y = made.Y.copy()
    Y[made.X[:, 0] < 0.3, 1] = np.nan
    Y[made.X[:, 0] > 0.7, 2] = np.nan
    made = made.table(Y)
    joint = lmc_posterior(made)
    tables, calls = [], []

    def refit(table):
        tables.append(table)
        return made.ensemble((1 + len(tables)) * made.W[None])

    class Recorded(LeftOutScores):
        def joint_far(self, models, folds, unknown, *, with_known=True):
            calls.append((models, folds, unknown))
            return super().joint_far(models, folds, unknown, with_known=with_known)

    fit_stack(joint, Recorded(joint, True, 10), refit=refit)
    assert sorted(unknown for _, _, unknown in calls) == [(1,), (1,), (2,), (2,)]
    for models, folds, (d,) in calls:
        for fold, model in enumerate(models):
            number = round(float(model.weights[0, 0, 0, 0] / made.W[0, 0, 0])) - 2
            left_out = joint.observations.observed[d] & ~tables[number].observed[d]
            assert_array_equal(left_out, joint.observations.observed[d] & (folds == fold))


@pytest.mark.parametrize("refit", [None, "unused"])
def test_without_gaps_or_refits_the_joint_model_has_no_weight_in_gaps(refit):
    made = gappy_world() if refit is None else world(np.random.default_rng(2), N=30, k=1)
    joint = lmc_posterior(made)

    def fail(_):
        raise AssertionError("there is no gap for which the model should be refitted")

    stack = fit_stack(joint, LeftOutScores(joint, True, 10), refit=None if refit is None else fail)
    for found in stack.known.values():
        assert found.far[JOINT] == 0
        assert np.isnan(found.log_scores[1, JOINT])


def test_independent_outputs_have_no_joint_candidate():
    _, posterior = stacked_posterior()
    joint = posterior.with_transfer()
    stack = fit_stack(joint, LeftOutScores(joint, False, 0))
    assert_array_equal([found.near for found in stack.unknown], 3 * [[1.0, 0.0, 0.0]])
    for found in stack.known.values():
        assert found.near[JOINT] == found.far[JOINT] == 0


def test_a_single_output_asks_nothing():
    made = world(np.random.default_rng(2), N=20, D=1, Q=1, k=1)
    joint = lmc_posterior(made)
    stack = fit_stack(joint, LeftOutScores(joint, True, 3))
    assert stack.known == stack.regressions == {}


def test_outputs_that_are_not_stacked_are_predicted_by_the_joint_model():
    joint = lmc_posterior(gappy_world())
    stack = fit_stack(joint, LeftOutScores(joint, True, 10), not_stacked=[1, 2])
    for d in (1, 2):
        assert_array_equal(stack.unknown[d].near, [0.0, 1.0, 0.0])
        assert_array_equal(stack.fixed[d].near, [0.0, 1.0, 0.0])
    assert stack.fixed[0] is None
    assert {d for d, _ in stack.known} == {0}


def test_an_output_with_few_readings_has_no_regression():
    made = gappy_world()
    Y = made.Y.copy()
    Y[np.flatnonzero(~np.isnan(Y[:, 1]))[MIN_READINGS - 1 :], 1] = np.nan
    _, posterior = stacked_posterior(made.table(Y))
    stack = posterior.stack
    pattern = next(q for q in stack.known if q[0] == 1)
    assert stack.known[pattern] is stack.unknown[1]
    assert pattern not in stack.regressions


def test_a_constant_output_has_no_regression():
    made = gappy_world()
    Y = made.Y.copy()
    Y[:, 2] = 0.0
    _, posterior = stacked_posterior(made.table(Y))
    assert_array_equal(posterior.stack.unknown[2].near, [0.0, 1.0, 0.0])
    assert all(d != 2 for d, _ in posterior.stack.regressions)


def test_outputs_whose_readings_are_all_in_one_gap_do_not_stop_the_fit():
    """Two outputs are missing together; all readings of one are in one fold of the other."""
    made = strip(world(np.random.default_rng(4), N=80, k=1))
    Y = made.Y.copy()
    Y[made.X[:, 0] < 0.6, 1] = Y[made.X[:, 0] < 0.93, 2] = np.nan
    made, tables = made.table(Y), []
    joint = lmc_posterior(made)

    def refit(table):
        tables.append(table)
        return joint.model

    stack = fit_stack(joint, LeftOutScores(joint, True, 10), refit=refit)
    assert (1, (0,)) in stack.known
    assert (2, (0,)) in stack.known
    assert min(table.observed[2].sum() for table in tables) == 0
    assert all(np.isfinite(found.far).all() for found in stack.known.values())


def test_distances_are_those_to_other_readings_and_to_other_folds(fitted):
    made, posterior = fitted
    pattern = (1, (0, 2))
    near, far = posterior.stack.known[pattern].distances
    x = scaled_locations(posterior, 1, 40)[~np.isnan(made.Y[:, 1])]
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    np.fill_diagonal(distance, np.inf)
    assert_allclose(near, np.median(distance.min(axis=1)))
    assert near < far < 1


def test_repeated_measurements_are_not_neighbours():
    """If every site was measured twice, the weights change at the same distances."""
    made, twice = gappy_world(), gappy_world()
    twice = replace(twice, X=np.vstack([made.X, made.X]), Y=np.vstack([made.Y, made.Y + 0.01]))
    (_, one), (_, two) = stacked_posterior(made), stacked_posterior(twice)
    near, far = two.stack.known[1, (0, 2)].distances
    assert_allclose(near, one.stack.known[1, (0, 2)].distances[0])
    assert near < far


def test_locations_are_relative_to_length_scales_and_to_the_extent(fitted):
    made, posterior = fitted
    x = scaled_locations(posterior, 0, 40)
    assert_allclose(np.linalg.norm(np.ptp(x, axis=0)), 1.0)
    assert_allclose(x / x[0], made.X / made.X[0])
    own = replace(posterior.independent, kernels=(RBF([1.0, 1e3]), *made.kernels[1:]))
    stretched = scaled_locations(replace(posterior, independent=own), 0, 40)
    assert_allclose(np.ptp(stretched, axis=0)[1], 0.0, atol=2e-3)
    # Sites beyond the first n do not change the unit.
    few = scaled_locations(posterior, 0, 20)
    assert_allclose(np.linalg.norm(np.ptp(few[:20], axis=0)), 1.0)


def test_missing_known_outputs_are_imputed_by_their_own_processes(fitted):
    made, posterior = fitted
    x = scaled_locations(posterior, 2, 40)
    rows = regression_rows(posterior, (2, (0, 1)), x, np.arange(40))
    mean, cov = posterior.without_transfer().predict(made.X).moments()
    missing = np.isnan(made.Y[:, :2])
    known = np.where(missing, mean[:, :2], made.Y[:, :2])
    assert_allclose(rows.z, known / np.sqrt(2))
    variance = np.where(missing, np.einsum("mdd->md", cov)[:, :2], 0.0)
    assert_allclose(rows.imputed, variance.mean(axis=1))
    assert ((rows.imputed > 0) == missing.any(axis=1)).all()


def test_only_the_sites_of_a_regression_are_imputed(fitted, monkeypatch):
    """Sites are predicted once, with the same result in any order."""
    made, posterior = fitted
    fresh = LMCPosterior.predict
    asked = []

    def counted(self, x, *args, **settings):
        asked.append(len(x))
        return fresh(self, x, *args, **settings)

    monkeypatch.setattr(LMCPosterior, "predict", counted)
    joint = lmc_posterior(made.table(made.Y))
    x, pattern = scaled_locations(posterior, 2, 40), (2, (0, 1))
    missing = np.flatnonzero(np.isnan(made.Y[:, :2]).any(axis=1))
    regression_rows(joint, pattern, x, missing[:3])
    some = regression_rows(joint, pattern, x, missing)
    again = regression_rows(joint, pattern, x, missing[::-1])
    assert asked == [3, len(missing) - 3]
    assert_array_equal(again.z[::-1], some.z)
    expected = regression_rows(posterior, pattern, x, missing)
    assert_allclose(some.z, expected.z, rtol=1e-12)
    assert_allclose(some.imputed, expected.imputed, rtol=1e-12)


def test_columns_can_be_reordered_and_put_back(fitted):
    _, posterior = fitted
    stack, columns = posterior.stack, np.array([2, 0, 1])
    moved = stack.reorder(columns)
    assert moved.unknown[2] is stack.unknown[0]
    assert moved.known[0, (1, 2)] is stack.known[1, (0, 2)]
    assert moved.regressions[1, (0, 2)] is stack.regressions[2, (0, 1)]
    back = moved.reorder(np.argsort(columns))
    assert (back.known, back.unknown, back.fixed) == (stack.known, stack.unknown, stack.fixed)


def related(rng, N, linked):
    """Two rough series; the second is a function of the first, or has nothing to do with it."""
    x = np.linspace(0, 1, N)[:, None]
    root = np.linalg.cholesky(RBF(0.03)(x) + 1e-8 * np.eye(N))
    a, b = (root @ rng.normal(size=(N, 2))).T
    table = np.column_stack([a, a if linked else b]) + 0.1 * rng.normal(size=(N, 2))
    table[N // 2 : 3 * N // 4, 1] = np.nan
    own = LMCModel((RBF(0.03), RBF(0.03)), np.eye(2)[None, :, :, None], 0.01 * np.eye(2))
    observations = Observations.from_table(x, table)
    return LMCPosterior(observations, own, (np.arange(N),), "all", independent=own)


@pytest.mark.parametrize("linked", [True, False])
def test_a_regression_predicts_in_gaps_if_outputs_are_related(linked, rng):
    joint = related(rng, 120, linked)
    found = fit_stack(joint, LeftOutScores(joint, False, 0)).known[1, (0,)]
    if linked:
        assert found.far[REGRESSION] > 0.9
    else:
        assert found.near[OWN] > 0.5


def test_with_many_readings_a_regression_is_fitted_to_some_and_their_neighbours(monkeypatch):
    monkeypatch.setattr(module, "MAX_READINGS", 20)
    monkeypatch.setattr(module, "TEST_READINGS", 6)
    rng = np.random.default_rng(1)
    x, read = rng.uniform(size=(50, 2)), np.arange(5, 45)
    tested = np.arange(40) % 3 == 0
    tree = KDTree(x[read])
    chosen, scored = module._regression_rows(tree, read, tested)
    assert scored.sum() == 6
    assert np.isin(chosen[scored], read[tested]).all()
    assert np.isin(chosen, read).all()
    for site in chosen[scored]:
        nearest = read[np.argsort(np.linalg.norm(x[read] - x[site], axis=1))]
        assert np.isin(nearest[: module.NEIGHBOURS + 1], chosen).all()
    assert_array_equal(module._regression_rows(tree, read[:15], tested[:15])[0], read[:15])
