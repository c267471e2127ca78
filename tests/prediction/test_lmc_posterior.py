"""The posterior of an ensemble: conditioning, observed outputs, combination, samples, leave-out."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from emgpr.arrays import devices
from emgpr.ensemble import RULES, join
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.prediction import (
    LMCModel,
    LMCPosterior,
    affordable_conditioning,
    condition,
    exact_is_affordable,
    leave_out_from_batch,
    leave_out_from_neighbours,
    noise_given_sample,
)
from tests.simulated import (
    lmc_posterior,
    nearest,
    posterior,
    reading_posterior,
    world,
)

pytestmark = pytest.mark.slow

module = sys.modules[LMCPosterior.__module__]
PARTS = ("mean", "cov")


def most_certain(means, covs, prior):
    """The prediction of the member with the least variance."""
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    location = np.arange(len(best))
    return means[best, location], covs[best, location]


ALL_RULES = {name: name for name in RULES} | {"most certain": most_certain}
each_rule = pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES)
each_conditioning = pytest.mark.parametrize("conditioning", ["all", "batch", 5])


def members(posterior, x):
    """Mean and covariance of the signals of every member, from the readings that it should use."""
    for i, W in enumerate(posterior.model.weights):
        table = posterior.observations
        if posterior.conditioning == "batch":
            sites = posterior.batches[i]
            if posterior.combine == "grbcm":
                sites = np.union1d(posterior.batches[0], sites)
            table = table.at(sites)
        model = LMCModel(posterior.model.kernels, W[None], posterior.model.noise)
        if isinstance(posterior.conditioning, int):
            near = [
                condition(table.at(sites_near(table, z, posterior.conditioning)), z[None], model)
                for z in x
            ]
            yield (
                np.concatenate([n.mean[0] for n in near]),
                np.concatenate([n.cov[0] for n in near]),
            )
        else:
            alone = condition(table, x, model)
            yield alone.mean[0], alone.cov[0]


def sites_near(table, location, n):
    distance = np.linalg.norm(table.x - location, axis=1)
    apart = np.where(table.observed, distance, np.inf)
    return np.unique(
        np.concatenate([np.argsort(own)[: min(n, np.isfinite(own).sum())] for own in apart])
    )


# --- predictions


@each_conditioning
@each_rule
def test_signals_are_those_of_the_members_combined(made, W, x_new, rule, conditioning):
    ensemble = lmc_posterior(made, W, conditioning=conditioning, combine=rule)
    means, covs = map(np.array, zip(*members(ensemble, x_new), strict=True))
    expected = join(rule, means, covs, ensemble.model.prior_covariance(x_new))
    predicted = ensemble.predict(x_new, include_noise=False)
    assert_allclose(predicted.mean, expected[0], rtol=1e-6, atol=1e-9)
    assert_allclose(predicted.cov, expected[1], rtol=1e-6, atol=1e-9)
    assert len(predicted.mean) == (3 if rule == "mean" else 1) <= ensemble.n_components


def test_members_predict_from_all_readings_from_their_batch_or_from_neighbours(made, x_new):
    """One member, by plain inversion."""
    batch = np.array([0, 2, 3, 7, 9])
    reduced = replace(made, X=made.X[batch], Y=made.Y[batch])
    given = {"batches": (batch,)}
    for conditioning, table in [("all", made), ("batch", reduced)]:
        predicted = lmc_posterior(made, conditioning=conditioning, **given).predict(
            x_new, include_noise=False
        )
        mean, cov = posterior(table, x_new)
        assert_allclose(predicted.mean[0], mean, atol=1e-9)
        assert_allclose(predicted.cov[0], cov, atol=1e-9)
    near = lmc_posterior(made, conditioning=2, **given).predict(x_new, include_noise=False)
    for i, location in enumerate(x_new):
        mean, cov = posterior(nearest(made, location, 2), location[None])
        assert_allclose(near.mean[0, i], mean[0], atol=1e-9)


@each_conditioning
def test_noise_is_added_after_members_are_combined(rng, x_new, conditioning):
    """Independent noise, which does not inform other outputs."""
    made = world(rng, k=1, missing=0.3)
    W = made.W + 0.3 * rng.normal(size=(3, *made.W.shape))
    for rule in ("mean", "rbcm"):
        ensemble = lmc_posterior(made, W, conditioning=conditioning, combine=rule)
        readings, signals = (ensemble.predict(x_new, include_noise=n) for n in (True, False))
        assert_allclose(readings.mean, signals.mean, rtol=1e-12)
        assert_allclose(readings.cov - signals.cov, np.broadcast_to(made.noise, signals.cov.shape))


@pytest.mark.parametrize("conditioning", ["all", 99])
def test_at_a_training_site_unread_outputs_belong_to_the_same_sample(made, conditioning):
    """Correlated noise: they are predicted from what was read there through signal and noise."""
    predicted = lmc_posterior(made, conditioning=conditioning).predict(made.X)
    mean, cov = reading_posterior(made, made.X, np.arange(12))
    assert_allclose(predicted.mean[0], mean, atol=1e-8)
    assert_allclose(predicted.cov[0], cov, atol=1e-8)
    fresh, _ = reading_posterior(made, made.X, np.full(12, -1))
    partly = np.isnan(made.Y) & ~np.isnan(made.Y).all(axis=1, keepdims=True)
    assert np.all(np.abs(predicted.mean[0] - fresh)[partly] > 1e-6)


def test_so_do_those_of_the_batch_of_a_single_member_and_of_no_other(made, W):
    """Several members with different batches have no sample in common."""
    batch = np.arange(6)
    single = lmc_posterior(made, conditioning="batch", batches=(batch,)).predict(made.X)
    reduced = replace(made, X=made.X[:6], Y=made.Y[:6])
    mean, cov = reading_posterior(reduced, made.X, [*range(6), *[-1] * 6])
    assert_allclose(single.mean[0], mean, atol=1e-8)
    assert_allclose(single.cov[0], cov, atol=1e-8)
    several = lmc_posterior(made, W, conditioning="batch")
    signals = several.predict(made.X, include_noise=False)
    assert_allclose(several.predict(made.X).mean, signals.mean, rtol=1e-12)


def observed_at(rng, shape):
    values = rng.normal(size=shape)
    values[:, 0] = values[2] = values[4, 1] = np.nan
    return values


@each_conditioning
@pytest.mark.parametrize("include_noise", [True, False])
def test_observed_outputs_are_readings_like_all_others(made, rng, conditioning, include_noise):
    """At new locations: a table with these rows, too, for every member."""
    x = rng.uniform(size=(5, 2))
    observed = observed_at(rng, (5, 3))
    later = replace(made, X=np.vstack([made.X, x]), Y=np.vstack([made.Y, observed]))
    batches = (np.arange(12)[::2], np.arange(12)[1::2])
    W = np.stack([made.W, 0.5 * made.W])
    ensemble = lmc_posterior(made, W, conditioning=conditioning, batches=batches)
    predicted = ensemble.predict(x, observed, include_noise=include_noise)
    for i, (own, batch) in enumerate(zip(W, batches, strict=True)):
        rows = np.append(batch, np.arange(12, 17)) if conditioning == "batch" else np.arange(17)
        for m in range(5):
            table = replace(later, X=later.X[rows], Y=later.Y[rows], W=own)
            if conditioning == 5:
                table = nearest(table, x[m], 5)
            same = np.flatnonzero((x[m] == table.X).all(axis=1))
            same = same if len(same) else [-1]
            expected = posterior(table, x[[m]])
            if include_noise:
                expected = reading_posterior(table, x[[m]], same)
            assert_allclose(predicted.mean[i, m], expected[0][0], atol=1e-8)
            assert_allclose(predicted.cov[i, m], expected[1][0], atol=1e-8)


def test_what_observed_repeats_of_a_training_site_is_not_counted_twice(made):
    """All of a row, to the ninth digit; a row that differs belongs to another sample."""
    known = lmc_posterior(made)
    expected = known.predict(made.X)
    rows = ~np.isnan(made.Y).all(axis=1)
    for observed in (made.Y, made.Y * (1 + 1e-10), np.where(made.Y > 0, made.Y, np.nan)):
        again = known.predict(made.X, observed)
        assert_allclose(again.mean, expected.mean, rtol=1e-12)
        assert_allclose(again.cov, expected.cov, rtol=1e-12)
    other = known.predict(made.X, made.Y * (1 + 1e-8))
    assert np.all(np.abs(other.cov - expected.cov)[0][rows].max(axis=(1, 2)) > 1e-6)
    later = replace(made, X=np.vstack([made.X] * 2), Y=np.vstack([made.Y, made.Y * (1 + 1e-8)]))
    assert_allclose(
        other.mean[0], reading_posterior(later, made.X, 12 + np.arange(12))[0], atol=1e-8
    )


def test_a_repeated_site_is_no_single_sample(made):
    """Which of the two is meant is not known, so that it is a third."""
    twice = replace(made, X=made.X.copy())
    twice.X[3] = twice.X[0]
    same_as = np.arange(12)
    same_as[[0, 3]] = -1
    predicted = lmc_posterior(twice).predict(twice.X)
    assert_allclose(predicted.mean[0], reading_posterior(twice, twice.X, same_as)[0], atol=1e-8)


def test_means_without_covariances_are_the_same(made, W, x_new):
    ensemble = lmc_posterior(made, W)
    means = ensemble.predict(x_new, include_noise=False, with_cov=False)
    assert_allclose(means.mean, ensemble.predict(x_new, include_noise=False).mean, rtol=1e-12)
    assert_array_equal(means.cov, 0.0)


def test_members_may_be_predicted_by_several_workers(made, W, x_new):
    ensemble = lmc_posterior(made, W, conditioning="batch")
    here, there = (ensemble.predict(x_new, execution=Execution(n_jobs=n)) for n in (1, 2))
    assert_array_equal(there.mean, here.mean)
    assert_array_equal(there.cov, here.cov)


def test_progress_counts_members(made, W, x_new, capsys):
    verbose = Execution(verbose=1)
    lmc_posterior(made, W).predict(x_new, execution=verbose)
    shown = capsys.readouterr().err
    assert "Predicting: members" in shown
    assert "3/3" in shown
    lmc_posterior(made, W).leave_out(np.tile(np.arange(12), (3, 1)), execution=verbose)
    assert "Leaving out: members" in capsys.readouterr().err


@pytest.mark.parametrize("conditioning", ["all", "batch", 4])
def test_on_a_device_predictions_are_the_same(made, W, x_new, device, conditioning):
    ensemble = lmc_posterior(made, W, conditioning=conditioning)
    sets = np.tile(np.arange(12), (3, 1))
    for ask in (
        lambda where: ensemble.predict(x_new, execution=where),
        lambda where: ensemble.leave_out(sets, execution=where),
    ):
        here, there = ask(Execution()), ask(Execution(device))
        assert_allclose(there.mean, here.mean, rtol=1e-8, atol=1e-9)
        assert_allclose(there.cov, here.cov, rtol=1e-8, atol=1e-9)


# --- properties


def test_properties_describe_the_posterior(made, W):
    ensemble = lmc_posterior(made, W)
    assert (ensemble.n_outputs, ensemble.n_components, ensemble.n_sites) == (3, 3, 12)
    assert_array_equal(ensemble.extent, made.X)
    assert_array_equal(ensemble.reference_values, made.Y)
    assert ensemble.for_worker() is ensemble
    assert ensemble.with_transfer() is ensemble
    assert (ensemble.combine, ensemble.automatic) == ("mean", False)
    assert LMCPosterior(made.observations, made.model, (), "all").independent is None


def test_another_rule_changes_the_rule_alone(made, W):
    ensemble = lmc_posterior(made, W, automatic=True)
    other = ensemble.with_rule("poe")
    assert other.combine == "poe"
    assert replace(other, combine="mean") == ensemble


def test_only_grbcm_adds_the_first_batch_to_the_others(made, W):
    ensemble = lmc_posterior(made, W, combine="grbcm")
    assert_array_equal(ensemble.batch_sites(0), [0, 3, 6, 9])
    assert_array_equal(ensemble.batch_sites(2), [0, 2, 3, 5, 6, 8, 9, 11])
    assert_array_equal(ensemble.with_rule("rbcm").batch_sites(2), [2, 5, 8, 11])


@pytest.mark.parametrize(("conditioning", "alone"), [("all", "all"), ("batch", "all"), (4, 4)])
def test_without_transfer_outputs_are_predicted_from_their_own_readings(
    made, W, x_new, conditioning, alone
):
    """As the independent model has them, which one member holds."""
    ensemble = lmc_posterior(made, W, conditioning=conditioning, combine="poe", automatic=True)
    own = ensemble.without_transfer()
    assert (own.conditioning, own.combine, own.automatic) == (alone, "mean", True)
    assert own.model is ensemble.independent
    assert own.independent is ensemble.independent
    assert_array_equal(own.batches[0], np.arange(12))
    predicted = own.predict(x_new)
    assert_array_equal(predicted.cov[0][:, ~np.eye(3, dtype=bool)], 0.0)
    first = made.table(np.where([True, False, False], made.Y, np.nan)).observations
    one = replace(own, observations=first).predict(x_new)
    assert_allclose(predicted.mean[..., 0], one.mean[..., 0], atol=1e-9)


def test_without_an_independent_model_there_is_no_posterior_without_transfer(made):
    with pytest.raises(
        ValueError, match=r"^This posterior has no independent model of each output\.$"
    ):
        lmc_posterior(made, independent=None).without_transfer()


# --- what can be afforded


def test_conditioning_on_all_readings_may_take_ten_seconds():
    limit = (3 * 3e11) ** (1 / 3)
    assert exact_is_affordable(1, [limit * 0.999])
    assert not exact_is_affordable(1, [limit * 1.001])
    assert exact_is_affordable(2, [limit * 0.79])
    assert not exact_is_affordable(2, [limit * 0.8])
    assert not exact_is_affordable(1, [limit * 0.8] * 2)


def test_if_all_readings_are_too_many_neighbours_are_used_with_a_warning(made, W, monkeypatch):
    """Three members of one coupled group of n readings take n³ operations."""
    model, table = made.ensemble(W), made.observations
    n = table.n_readings
    monkeypatch.setattr(module, "EXACT_OPERATIONS", n**3)
    assert affordable_conditioning(table, model) == "all"
    monkeypatch.setattr(module, "EXACT_OPERATIONS", n**3 - 1)
    message = (
        f'conditioning="auto": exact predictions from {n} readings for 3 members would take too '
        "long; predictions use 16 readings of each output in all directions, and more where they "
        'reduce the variance. Set conditioning=16 to use only the 16 nearest readings, or "all" to '
        "use every reading."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        assert affordable_conditioning(table, model) == 16


def test_the_size_of_a_problem_is_that_of_its_coupled_groups(made, monkeypatch):
    """Separate outputs are three small problems."""
    separate = lmc_posterior(made).without_transfer().model
    sizes = made.observations.observed.sum(axis=1)
    monkeypatch.setattr(module, "EXACT_OPERATIONS", float((sizes**3 / 3).sum()) + 1)
    assert affordable_conditioning(made.observations, separate) == "all"


def test_several_threads_are_used_for_large_groups_of_coupled_outputs(made, x_new, monkeypatch):
    """Each separate output is a small matrix, and all coupled outputs are a large one."""
    threads, predict = [], module.condition

    def recorded(*args, **settings):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        threads.append(max(pool["num_threads"] for pool in pools))
        return predict(*args, **settings)

    monkeypatch.setattr(module, "condition", recorded)
    monkeypatch.setattr(devices, "MULTITHREADED_ROWS", made.observations.n_readings)
    coupled = lmc_posterior(made)
    with threadpool_limits(2, "blas"):
        coupled.predict(x_new)
        coupled.without_transfer().predict(x_new)
    assert threads == [2, 1]


def test_observed_outputs_may_make_exact_conditioning_too_costly(rng, made, monkeypatch):
    """Then neighbours are used, if that was left to the software."""
    x, observed = rng.uniform(size=(4, 2)), rng.normal(size=(4, 3))
    monkeypatch.setattr(module, "EXACT_OPERATIONS", (made.observations.n_readings + 6) ** 3 / 3)
    monkeypatch.setattr(module, "DEFAULT_NEIGHBOURS", 2)
    known = lmc_posterior(made, automatic=True)
    exact = lmc_posterior(made).predict(x, observed, include_noise=False)
    with pytest.warns(UserWarning, match=r'conditioning="auto": exact'):
        near = known.predict(x, observed, include_noise=False)
    expected = replace(known, conditioning=2).predict(x, observed, include_noise=False)
    assert_allclose(near.mean, expected.mean, rtol=1e-12)
    assert not np.allclose(near.mean, exact.mean, atol=1e-3)
    few = np.full((4, 3), np.nan)
    few[0, 0] = 1.0
    assert_allclose(
        known.predict(x, few).mean, lmc_posterior(made).predict(x, few).mean, rtol=1e-12
    )
    with pytest.warns(UserWarning, match="auto"):
        known.sample(x, 2, rng, observed)


# --- readings left out


def removed(ensemble, sets, i, d):
    """The posterior without the readings left out with output d at site i."""
    table = ensemble.observations
    kept = table.observed & (sets != sets[d, i])
    return replace(ensemble, observations=Observations(table.x, np.where(kept, table.y, 0.0), kept))


@pytest.mark.parametrize("by", ["site", "output", "groups"])
@pytest.mark.parametrize("rule", ["mean", "average", "rbcm", most_certain])
def test_left_out_readings_are_predicted_as_if_removed(made, W, rule, by):
    """Of a rule that combines members, as new readings of the same sample at that site."""
    D, N = made.Y.T.shape
    sets = np.tile(np.arange(N), (D, 1))
    if by == "output":
        sets = np.arange(D * N).reshape(D, N)
    if by == "groups":
        sets = sets // 3
    ensemble = lmc_posterior(made, W, combine=rule)
    left_out = ensemble.leave_out(sets)
    assert left_out.mean.shape == (3 if rule == "mean" else 1, N, D)
    for d, i in np.argwhere(made.observations.observed)[::5]:
        alone = removed(ensemble, sets, i, d)
        if by != "output":  # the rule combines the outputs that are left out together there
            there = np.flatnonzero(~np.isnan(made.Y[i]))
            expected = restricted_predict(alone, made.X[[i]], there)
            d_there = int(np.flatnonzero(there == d)[0])
        else:
            expected, d_there = restricted_predict(alone, made.X[[i]], np.array([d])), 0
        mean, cov = expected
        assert_allclose(left_out.mean[:, i, d], mean[:, 0, d_there], rtol=1e-6, atol=1e-7)
        assert_allclose(left_out.cov[:, i, d, d], cov[:, 0, d_there, d_there], rtol=1e-6, atol=1e-7)


def restricted_predict(ensemble, x, outputs):
    """Combine the predictions of these outputs only, of new readings at x."""
    one = ensemble.with_rule("mean")
    given, sample = one.condition_on(x, None, include_noise=True)
    signals = given.predict_given(x, sample, False, True, Execution())
    prior = ensemble.model.prior_covariance(x)
    members, prior, noise = noise_given_sample(signals, prior, ensemble.model.noise, sample)
    d = outputs
    mean, cov = join(
        ensemble.combine,
        members.mean[..., d],
        members.cov[..., d[:, None], d],
        prior[..., d[:, None], d],
    )
    return mean, cov + noise[..., d[:, None], d]


def test_unmeasured_outputs_are_standard_normal_in_leave_out(made, W):
    left_out = lmc_posterior(made, W, combine="average").leave_out(np.tile(np.arange(12), (3, 1)))
    missing = np.isnan(made.Y)
    assert missing.any()
    assert_array_equal(left_out.mean[0][missing], 0.0)
    assert_array_equal(np.einsum("mdd->md", left_out.cov[0])[missing], 1.0)


def test_batches_and_neighbours_leave_out_like_the_functions_behind_them(made, W):
    sets = np.tile(np.arange(12), (3, 1))
    observed = ~np.isnan(made.Y)
    near = lmc_posterior(made, W, conditioning=3)
    expected = leave_out_from_neighbours(made.observations, sets, near.model, 3)
    assert_allclose(near.leave_out(sets).mean[:, observed], expected.mean[:, observed])
    some = np.array([8, 1])
    few, there = near.leave_out(sets, some).mean, observed[some]
    assert_allclose(few[:, there], expected.mean[:, some][:, there])
    batch = lmc_posterior(made, W, conditioning="batch", combine="grbcm")
    together = batch.with_rule("mean").leave_out(sets)
    for member in range(3):
        alone = leave_out_from_batch(
            made.observations, batch.batches[member], sets, batch.model.members([member])
        )
        assert_allclose(together.mean[member][observed], alone.mean[0][observed])
    assert np.isfinite(batch.leave_out(sets).mean).all()
