"""The mixture of three candidates, compared with candidates and weights applied by hand."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF

from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION
from emgpr.prediction import LMCModel, LMCPosterior, Posterior
from emgpr.regression import (
    DriftPrior,
    FittedRegression,
    Regression,
    RegressionRows,
    Residual,
    Setting,
)
from emgpr.stacking import CandidateWeights, Stack, StackedPosterior
from emgpr.stacking.fit import regression_rows
from emgpr.stacking.gaps import pattern_folds
from emgpr.stacking.locations import location_unit, scaled_locations
from emgpr.stacking.patterns import KnownOutputs, TablePattern
from emgpr.stacking.scores import LeftOutScores
from tests.simulated import agrees, lmc_posterior, world
from tests.stacking.stacked import candidate_weights, gappy_world, stack, stacked_posterior

NAN = np.nan
QUESTION = (1, (0, 2))
# Without a smooth part, whose centres are chosen among the readings.
LINEAR = FittedRegression(
    (
        Setting(Residual(0.3, 0.8), DriftPrior(3.0, 0.0)),
        Setting(Residual(1.0, 0.0), DriftPrior(100.0, 0.0)),
    ),
    np.array([[0.7, 0.3], [0.2, 0.8]]),
    np.array([[0.1, 0.3], [0.4, 0.2]]),
)


def with_weights(posterior, near, far, distances=(0.02, 0.2), inflation=(2.0, 1.5, 1.0)):
    """The posterior with these weights for every pattern, and one regression."""
    weights = CandidateWeights(np.array(near), np.array(far), distances, np.array(inflation))
    patterns = [(d, known) for d in range(3) for known in subsets(d)]
    nothing_known = replace(weights, near=np.array([0.6, 0.4, 0.0]), far=np.array([0.1, 0.9, 0.0]))
    stack = replace(
        posterior.stack,
        unknown=(posterior.stack.unknown[0], nothing_known, posterior.stack.unknown[2]),
        known=dict.fromkeys(patterns, weights),
        regressions=dict.fromkeys(patterns, LINEAR),
    )
    return replace(posterior, stack=stack)


def subsets(d):
    others = [e for e in range(3) if e != d]
    return [(others[0],), (others[1],), tuple(others)]


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def posterior(request):
    fitted = stacked_posterior(n_members=request.param)[1]
    return with_weights(fitted, [0.5, 0.3, 0.2], [0.1, 0.2, 0.7])


@pytest.fixture
def x(rng):
    return rng.uniform(size=(7, 2)) * [1.0, 0.05]


@pytest.fixture
def observed(rng):
    """Rows with nothing, one output, two outputs and all outputs."""
    values = rng.normal(size=(7, 3))
    values[0] = values[1, 1:] = values[2, 1] = values[3, :2] = values[4, 0] = values[5, 2] = NAN
    return values


def by_hand(posterior, x, sample, include_noise):
    """Mean and variance of each output, one location and one output after the other."""
    given, _ = posterior.condition_on(x, sample, include_noise=True)
    execution = DEFAULT_EXECUTION
    own = given.without_transfer().predict_given(x, sample, include_noise, True, execution)
    joint = given.with_transfer().predict_given(x, sample, include_noise, True, execution)
    parts = [part.moments() for part in (own, joint)]
    table, n = given.observations, posterior.stack.n_sites
    mean, variance = np.empty((2, len(x), 3))
    for i in range(len(x)):
        known = () if sample is None else tuple(np.flatnonzero(~np.isnan(sample[i])).tolist())
        for d in range(3):
            means, variances = [p[0][i, d] for p in parts], [p[1][i, d, d] for p in parts]
            unit, read = location_unit(given, d, n), np.flatnonzero(table.observed[d])
            others = np.flatnonzero(np.delete(table.observed, d, axis=0).any(axis=0))
            distances = [
                KDTree(table.x[at] / unit).query(x[[i]] / unit)[0] for at in (read, others)
            ]
            found = posterior.stack.unknown[d]
            far = found.far_share(distances[0]) * (1 - found.far_share(distances[1]))
            weights, factors = (part[:2, 0] for part in found.at(far))
            if known and d not in known:
                found = posterior.stack.known[d, known]
                far = found.far_share(distances[0])
                weights, factors = (part[:, 0] for part in found.at(far))
                rows = regression_rows(given, (d, known), scaled_locations(given, d, n), read)
                regression = Regression("matern12", LINEAR, rows, table.y[d, read])
                new = RegressionRows.build(x[[i]] / unit, sample[[i]][:, known])
                m, v = regression.predict(new, far, include_noise=include_noise)
                means, variances = [*means, m[0]], [*variances, v[0]]
            mean[i, d] = weights @ means
            second = weights @ (factors * variances + np.square(means))
            variance[i, d] = second - mean[i, d] ** 2
    return mean, variance


def moments(predicted):
    mean, cov = predicted.moments()
    return mean, np.einsum("mdd->md", cov)


@pytest.mark.parametrize("include_noise", [True, False])
def test_weights_are_applied_to_the_three_candidates(posterior, x, observed, include_noise):
    for known in (None, observed):
        found = moments(posterior.predict(x, known, include_noise=include_noise))
        assert_allclose(found, by_hand(posterior, x, known, include_noise), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("include_noise", [True, False])
def test_readings_at_a_training_site_are_known(posterior, include_noise):
    table = posterior.observations
    sites = np.flatnonzero(~table.observed.all(axis=0))[:6]
    found = moments(posterior.predict(table.x[sites], include_noise=include_noise))
    expected = by_hand(posterior, table.x[sites], table.table[sites], include_noise)
    missing = ~table.observed[:, sites].T
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours[missing], theirs[missing], rtol=1e-7, atol=1e-9)


def test_components_have_weights_that_sum_to_one(posterior, x, observed):
    for known in (None, observed):
        predicted = posterior.predict(x, known)
        assert_allclose(predicted.weights.sum(axis=0), 1.0)
        assert len(predicted.mean) == (2 if known is None else 3) <= posterior.n_components
        weights = candidate_weights(posterior, x, known)
        assert_allclose(weights.sum(axis=0), 1.0)
        assert_allclose(weights[: len(predicted.mean)], predicted.weights)


def test_weights_change_monotonically_with_the_distance_from_readings(posterior):
    """From the gap's edge to its middle, with the other outputs known."""
    edge = posterior.observations.x[posterior.observations.observed[1], 0].min()
    x = np.column_stack([np.linspace(edge, 0, 40), np.full(40, 0.025)])
    known = np.tile([0.3, NAN, -0.2], (40, 1))
    weights = candidate_weights(posterior, x, known)[:, :, 1]
    change = np.diff(weights, axis=1)
    assert (change[:2] <= 0).all()
    assert (change[2] >= 0).all()
    assert_allclose(weights[:, -1], [0.1, 0.2, 0.7], rtol=0.05)


def test_a_candidate_without_weight_is_not_computed(x, observed, monkeypatch):
    fitted = stacked_posterior()[1]
    alone = with_weights(fitted, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], inflation=np.ones(3))
    only = CandidateWeights.of_one("own")
    alone = replace(alone, stack=replace(alone.stack, unknown=(only, only, only)))
    expected = alone.without_transfer().predict(x, observed)
    monkeypatch.setattr(StackedPosterior, "with_transfer", lambda _: None)
    found = alone.predict(x, observed)
    assert_allclose(moments(found), moments(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("by", ["site", "output", "fold"])
def test_left_out_readings_are_predicted_as_if_they_were_missing(posterior, by):
    """Weights and parameters are kept; one table for each reading."""
    table = posterior.observations
    D, N = table.y.shape
    sets = {
        "site": np.tile(np.arange(N), (D, 1)),
        "output": np.arange(D * N).reshape(D, N),
        "fold": np.stack([np.arange(N) // 8, 100 + np.arange(N) % 5, 200 + np.arange(N) // 10]),
    }[by]
    mean, variance = moments(posterior.leave_out(sets))
    tested = list(zip(*np.nonzero(table.observed), strict=True))[::5]
    for d, i in tested:
        kept = table.observed & (sets != sets[d, i])
        masked = Observations(table.x, np.where(kept, table.y, 0.0), kept)
        x, sample = table.x[[i]], np.where(kept[:, [i]], table.y[:, [i]], NAN).T
        smaller = replace(posterior, observations=masked)
        expected = [part[0, d] for part in by_hand_at_site(smaller, x, sample)]
        assert_allclose((mean[i, d], variance[i, d]), expected, rtol=1e-6, atol=1e-9)
    some = np.array([7, 3, 20])
    few = moments(posterior.leave_out(sets, some))
    read = table.observed.T[some]
    assert_allclose(few[0][read], mean[some][read], rtol=1e-9)
    assert_allclose(few[1][read], variance[some][read], rtol=1e-9)


def by_hand_at_site(posterior, x, sample):
    """As `by_hand`, at a training site whose readings are already in the table."""
    return (
        moments(posterior.predict(x))
        if np.isnan(sample).all()
        else by_hand(posterior, x, sample, True)
    )


def test_samples_have_the_predicted_moments(posterior, x, observed):
    """7 locations with 3 means and 6 covariances, within 5 standard errors.

    A false alarm occurs in 27,000 runs.
    """
    drawn = posterior.sample(x, 8000, np.random.default_rng(1), observed)
    mean, cov = posterior.predict(x, observed).moments()
    assert np.isfinite(drawn).all()
    for i in range(len(x)):
        assert agrees(drawn[:, i], mean[i], cov[i])


@pytest.fixture(scope="module")
def bimodal():
    """Own process and joint model disagree by 10 standard deviations at x > 4.

    The second output, a copy of the first one, was measured everywhere; it is about 10 there.
    """
    x = np.linspace(0, 8, 33)[:, None]
    values = 10 / (1 + np.exp(-3 * (x[:, 0] - 3)))
    table = np.column_stack([np.where(x[:, 0] < 1.5, values, NAN), values])
    own = LMCModel((RBF(0.7), RBF(0.7)), np.eye(2)[None, :, :, None], 0.01 * np.eye(2))
    joint = LMCModel((RBF(0.7),), np.ones((1, 1, 2, 1)), 0.01 * np.eye(2))
    base = LMCPosterior(
        Observations.from_table(x, table), joint, (np.arange(33),), "all", independent=own
    )
    half = CandidateWeights(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, 0.0]))
    return StackedPosterior.extending(base, Stack(33, (half, half), fixed=(half, half)))


def test_a_draw_has_one_candidate_at_all_locations(bimodal):
    """A sampled map has no seams: all its locations are from the same candidate.

    Each candidate draws half of the samples, within 5 standard deviations: a false alarm in 1.7
    million runs.
    """
    x = np.linspace(4.6, 7.6, 13)[:, None] + 0.01
    drawn = bimodal.sample(x, 1000, np.random.default_rng(0))[..., 0]
    high = drawn > 6
    assert set(high.sum(axis=1)) == {0, 13}
    assert abs(high[:, 0].sum() - 500) < 5 * np.sqrt(250)


def test_candidates_of_different_outputs_are_selected_independently(bimodal):
    """The second output has two modes, too, where its readings are not known to its own process.

    Half of 1000 pairs agree, within 5 standard deviations: a false alarm in 1.7 million runs.
    """
    own = replace(bimodal.independent, weights=np.zeros((1, 2, 2, 1)))
    both = replace(bimodal, independent=own)
    drawn = both.sample(np.full((1, 1), 6.01), 1000, np.random.default_rng(2))[:, 0]
    high = drawn > 6
    assert (abs(high.sum(axis=0) - 500) < 5 * np.sqrt(250)).all()
    assert abs((high[:, 0] == high[:, 1]).sum() - 500) < 5 * np.sqrt(250)


def test_weights_that_differ_between_locations_switch_each_draw_at_most_once(bimodal):
    """The candidate changes where the weights pass the draw's number, so not back and forth."""
    weights = CandidateWeights(
        np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), (0.3, 0.7), np.ones(3)
    )
    switched = replace(bimodal, stack=replace(bimodal.stack, fixed=(weights, weights)))
    x = np.linspace(4.5, 7.5, 31)[:, None] + 0.01
    known = np.column_stack([np.full(31, NAN), np.full(31, 10.0)])
    drawn = switched.sample(x, 300, np.random.default_rng(3), known)[..., 0]
    high = drawn > 6
    changes = np.diff(high.astype(int), axis=1)
    assert (changes >= 0).all()
    assert (changes.sum(axis=1) <= 1).all()
    assert (changes.sum(axis=1) == 1).any()


def test_weights_for_a_new_set_of_known_outputs_are_fitted_when_first_needed(x):
    fitted = stacked_posterior()[1]
    before = set(fitted.stack.known)
    known = np.full((7, 3), NAN)
    known[:, 0] = 0.4
    first = fitted.predict(x, known)
    assert set(fitted.stack.known) - before == {(1, (0,)), (2, (0,))}
    weights = fitted.stack.known[1, (0,)]
    assert weights.far[1] == 0  # no joint model was fitted for such gaps
    again = fitted.predict(x, known)
    assert fitted.stack.known[1, (0,)] is weights
    assert_array_equal(again.mean, first.mean)


def test_new_questions_are_answered_by_all_training_readings(x):
    """As if they had been fitted with the model, of the posterior without the new readings."""
    fitted, other = stacked_posterior()[1], stacked_posterior()[1]
    known = np.full((7, 3), NAN)
    known[:, 0] = 0.4
    fitted.predict(x, known)
    training, pattern = other.with_transfer(), (1, (0,))
    folds = np.zeros((3, 40), int)
    folds[1] = pattern_folds(training, TablePattern(pattern))
    scores = LeftOutScores(training, True, other.stack.n_parameters)
    other.stack.add(scores, pattern, folds[1], scores.own_far(folds))
    found, expected = (p.stack.known[pattern] for p in (fitted, other))
    for name in ("near", "far", "distances", "inflation", "log_scores"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    assert fitted.stack.regressions[pattern].kept == other.stack.regressions[pattern].kept


def test_weights_do_not_depend_on_the_values_or_the_order_of_patterns(x):
    """They are fitted to training readings alone."""
    one, two = stacked_posterior()[1], stacked_posterior()[1]
    known = np.full((7, 3), NAN)
    known[:3, 0], known[3:, 2] = 0.4, -0.7
    expected = one.predict(x, known)
    two.predict(x + 0.1, 5 + known)
    two.predict(x[:2], known[5:])
    found = two.predict(x, known)
    assert_allclose(found.mean, expected.mean, rtol=1e-9)
    assert_allclose(found.weights, expected.weights, rtol=1e-9)


def test_outputs_with_fixed_weights_have_no_patterns(x, observed):
    fitted = stacked_posterior()[1]
    joint = CandidateWeights.of_one("joint")
    fixed = replace(
        fitted.stack, unknown=(joint,) * 3, fixed=(joint,) * 3, known={}, regressions={}
    )
    posterior = replace(fitted, stack=fixed)
    for known in (None, observed):
        found = posterior.predict(x, known)
        expected = posterior.with_transfer().predict(x, known)
        assert_allclose(found.moments()[0], expected.moments()[0], rtol=1e-9)
        assert_allclose(found.moments()[1], expected.moments()[1], rtol=1e-9, atol=1e-12)
    assert posterior.stack.known == {}


def test_nan_is_the_same_as_absence(x, observed):
    """Rows of NaN in the known outputs say nothing."""
    fitted = stacked_posterior()[1]
    nothing = np.full((7, 3), NAN)
    for one, two in zip(
        fitted.predict(x).moments(), fitted.predict(x, nothing).moments(), strict=True
    ):
        assert_allclose(two, one, rtol=1e-9)
    known = np.where(np.arange(7)[:, None] == 2, observed, nothing)
    alone = fitted.predict(x[[2]], observed[[2]]).moments()
    for one, two in zip(alone, fitted.predict(x, known).moments(), strict=True):
        assert_allclose(two[2], one[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
def test_the_order_of_outputs_does_not_matter(order, x, observed):
    made = gappy_world()
    permuted = replace(
        made, Y=made.Y[:, order], W=made.W[:, order], noise=made.noise[np.ix_(order, order)]
    )
    one = stacked_posterior(made)[1]
    # The own processes keep their kernels.
    own = replace(
        one.independent,
        kernels=tuple(one.independent.kernels[d] for d in order),
        noise=np.diag(np.diag(permuted.noise)),
    )
    two = stack(lmc_posterior(permuted, independent=own))
    for known, moved in ((None, None), (observed, observed[:, order])):
        mean, variance = moments(one.predict(x, known))
        found = moments(two.predict(x, moved))
        assert_allclose(found[0], mean[:, order], rtol=1e-5, atol=1e-7)
        assert_allclose(found[1], variance[:, order], rtol=1e-5)


def test_the_order_of_sites_does_not_matter(x, observed, rng):
    made, rows = gappy_world(), rng.permutation(40)
    one = stacked_posterior(made)[1]
    two = stacked_posterior(replace(made, X=made.X[rows], Y=made.Y[rows]))[1]
    for known in (None, observed):
        expected, found = moments(one.predict(x, known)), moments(two.predict(x, known))
        assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-7)
        assert_allclose(found[1], expected[1], rtol=1e-5)


def test_sets_of_known_outputs_are_reduced_to_the_most_correlated_ones(rng):
    """Predictions do not depend on earlier predictions."""
    made = world(np.random.default_rng(4), D=6, N=40, k=1)
    Y = np.where(rng.uniform(size=made.Y.shape) < 0.3, NAN, made.Y)
    one, two = (stacked_posterior(made.table(Y))[1] for _ in range(2))
    table_patterns = set(one.stack.known)
    x, known = rng.uniform(size=(9, 2)), np.where(rng.uniform(size=(9, 6)) < 0.3, NAN, 0.3)
    two.leave_out(np.arange(240).reshape(6, 40))
    found, after = one.predict(x, known), two.predict(x, known)
    assert_array_equal(found.mean, after.mean)
    assert_array_equal(found.weights, after.weights)
    usable = KnownOutputs.in_table(one.observations, np.arange(40))
    patterns = [
        (d, tuple(np.flatnonzero(~np.isnan(row)).tolist()))
        for row in known
        for d in np.flatnonzero(np.isnan(row)).tolist()
    ]
    reduced = {usable.reduce(pattern) for pattern in patterns}
    assert set(one.stack.known) == table_patterns | reduced
    assert not set(patterns) <= table_patterns | reduced


def test_it_can_be_pickled_with_new_questions(x, observed):
    """A worker that needs a new pattern finds the same weights."""
    fitted = stacked_posterior()[1]
    assert isinstance(fitted, Posterior)
    copy = pickle.loads(pickle.dumps(fitted.for_worker()))
    one, two = fitted.predict(x, observed), copy.predict(x, observed)
    assert_array_equal(two.mean, one.mean)
    assert_array_equal(two.cov, one.cov)
    assert_array_equal(two.weights, one.weights)


def test_transfer_can_be_taken_away(x):
    fitted = stacked_posterior()[1]
    for other in (fitted.with_transfer(), fitted.without_transfer()):
        assert type(other) is LMCPosterior
        assert other.predict(x).weights is None
    assert fitted.with_rule("rbcm").stack is fitted.stack
