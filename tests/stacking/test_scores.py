"""Left-out predictions of own processes and joint model, compared with smaller tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.neighbours import pseudo_random_order
from emgpr.stacking import scores as module
from emgpr.stacking.scores import LeftOutScores
from tests.simulated import lmc_posterior, world
from tests.stacking.stacked import gappy_world


@pytest.fixture(scope="module", params=[False, True], ids=["independent", "correlated noise"])
def made(request):
    return gappy_world(N=14, correlated=request.param)


def scores_of(made, **settings):
    return LeftOutScores(lmc_posterior(made, **settings), True, 7)


def without(made, outputs, sites):
    Y = made.Y.copy()
    Y[np.ix_(sites, outputs)] = np.nan
    return made.table(Y)


def check(found, made, expected):
    """Compare a table with `expected(d, i)`, mean and variance of output d at site i."""
    for i, d in zip(*np.nonzero(~np.isnan(made.Y)), strict=True):
        mean, variance = expected(d, i)
        assert_allclose(found[0][i, d], mean, rtol=1e-6, atol=1e-8)
        assert_allclose(found[1][i, d], variance, rtol=1e-6)


def predicted(posterior, made, d, i):
    mean, cov = posterior.predict(made.X[[i]]).moments()
    return mean[0, d], cov[0, d, d]


def test_own_processes_predict_readings_from_others_of_the_output(made):
    def expected(d, i):
        alone = lmc_posterior(without(made, [d], [i])).without_transfer()
        return predicted(alone, made, d, i)

    check(scores_of(made).own_near, made, expected)


def test_own_processes_predict_readings_from_other_folds(made):
    folds = np.stack([np.arange(14) % 3, np.arange(14) // 5, np.arange(14) // 7])

    def expected(d, i):
        left_out = np.flatnonzero(folds[d] == folds[d, i])
        alone = lmc_posterior(without(made, [d], left_out)).without_transfer()
        return predicted(alone, made, d, i)

    check(scores_of(made).own_far(folds), made, expected)


def test_the_joint_model_predicts_readings_from_other_sites(made):
    def expected(d, i):
        return predicted(lmc_posterior(without(made, [0, 1, 2], [i])), made, d, i)

    check(scores_of(made).joint_near, made, expected)


@pytest.mark.parametrize("pattern", [(1, (0, 2)), (1, (2,)), (0, (1,))])
def test_the_joint_model_uses_the_outputs_that_are_known_at_the_site(made, pattern):
    """All outputs of the site are left out that are not known in the pattern."""
    d, known = pattern
    sites = np.flatnonzero(~np.isnan(made.Y[:, [d, *known]]).any(axis=1))[::-1]
    assert len(sites) > 3
    mean, variance = scores_of(made).joint_given(pattern, sites)
    left_out = [e for e in range(3) if e not in known]
    for i, found in zip(sites, zip(mean, variance, strict=True), strict=True):
        expected = predicted(lmc_posterior(without(made, left_out, [i])), made, d, i)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_in_gaps_the_joint_model_is_the_one_fitted_without_them(made):
    """The outputs 1 and 2 are unknown in folds, each of which has a model of its own."""
    folds = np.arange(14) // 5
    models = [made.ensemble((1 + 0.2 * f) * made.W[None]) for f in range(3)]
    found = scores_of(made).joint_far(models, folds, [1, 2])

    def expected(d, i):
        left_out = np.flatnonzero(folds == folds[i])
        table = without(made, [1, 2], left_out)
        return predicted(lmc_posterior(table, models[folds[i]].weights), made, d, i)

    for i, d in zip(*np.nonzero(~np.isnan(made.Y)), strict=True):
        if d > 0:
            mean, variance = expected(d, i)
            assert_allclose(found[0][i, d], mean, rtol=1e-6, atol=1e-8)
            assert_allclose(found[1][i, d], variance, rtol=1e-6)


def test_in_gaps_the_outputs_known_at_the_site_can_be_left_out_too(made):
    """Those at other sites of the fold remain: a third of the fold is predicted at a time."""
    folds = np.arange(14) // 7
    found = scores_of(made).joint_far(
        [made.ensemble(made.W[None])] * 2, folds, [1], with_known=False
    )
    parts = np.empty(14, int)
    parts[pseudo_random_order(made.X)] = np.arange(14) % module.N_PARTS
    for i in np.flatnonzero(~np.isnan(made.Y[:, 1])):
        Y = made.Y.copy()
        Y[folds == folds[i], 1] = np.nan
        Y[(folds == folds[i]) & (parts == parts[i])] = np.nan
        mean, variance = predicted(lmc_posterior(made.table(Y)), made, 1, i)
        assert_allclose(found[0][i, 1], mean, rtol=1e-6, atol=1e-8)
        assert_allclose(found[1][i, 1], variance, rtol=1e-6)


def test_the_penalty_is_the_number_of_parameters_per_reading(made):
    assert_allclose(scores_of(made).penalty, 7 / (~np.isnan(made.Y)).sum())


def test_with_some_hundred_readings_all_are_tested_with_their_neighbours(monkeypatch):
    made = world(np.random.default_rng(3), N=60, k=1)
    exact = scores_of(made, automatic=True)
    own, joint = exact.own_near, exact.joint_near  # computed before the limit is changed
    monkeypatch.setattr(module, "MAX_EXACT", 50)
    scores = scores_of(made, automatic=True)
    assert isinstance(scores.own.conditioning, int)
    assert_array_equal(scores.sites, np.arange(60))
    for near, all_others in ((scores.own_near, own), (scores.joint_near, joint)):
        difference = np.abs(near[0] - all_others[0]) / np.sqrt(all_others[1])
        assert 1e-9 < difference.mean() < 0.2


def test_with_many_readings_some_of_every_output_are_tested(monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT", 50)
    monkeypatch.setattr(module, "MAX_READINGS", 50)
    monkeypatch.setattr(module, "MAX_TEST_READINGS", 5)
    made = world(np.random.default_rng(3), N=60, k=1)
    made.Y[10:, 2] = np.nan
    scores = scores_of(made, automatic=True)
    read = ~np.isnan(made.Y[scores.sites])
    assert 5 <= len(scores.sites) <= 15
    assert (read.sum(axis=0) >= 5).all()
    assert isinstance(scores.own.conditioning, int)
    mean, variance = scores.own_near
    others = np.setdiff1d(np.arange(60), scores.sites)
    assert np.isnan(mean[others]).all()
    assert (variance[scores.sites] > 0).all()


def test_a_given_number_of_neighbours_is_kept(monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT", 10)
    made = gappy_world(N=14)
    assert scores_of(made, conditioning=3).joint.conditioning == 3
    assert scores_of(made, conditioning="batch").joint.conditioning == "batch"
    assert scores_of(made, conditioning="all").joint.conditioning != "all"


def test_labels_of_sites_leave_out_all_outputs_together(made):
    sets = module.site_sets(made.observations)
    assert sets.shape == (3, 14)
    assert_array_equal(sets, np.tile(np.arange(14), (3, 1)))
