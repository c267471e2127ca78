"""Outputs that gain nothing from the others are predicted by themselves, and the others are not."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.ensemble import mixture
from emgpr.prediction import LMCPosterior, SafeTransferPosterior, condition_jointly
from tests.simulated import agrees, lmc_posterior, world

pytestmark = pytest.mark.slow

WAYS = {
    "one member": {},
    "three members": {"n": 3},
    "a committee": {"n": 3, "combine": "rbcm"},
    "correlated noise": {"correlated": True},
    "neighbours": {"conditioning": 3},
    "batches": {"n": 3, "conditioning": "batch"},
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
NAN = np.nan


@pytest.fixture
def partial_transfer(rng):
    """The posterior of a small table in which these outputs gain nothing."""

    def build(way, site=(), output=()):
        way = dict(way)
        correlated, n = way.pop("correlated", False), way.pop("n", 1)
        rng = np.random.default_rng(5)
        made = world(rng, k=1, missing=0.25, correlated=correlated)
        W = made.W + 0.3 * rng.normal(size=(n, *made.W.shape))
        joint = lmc_posterior(made, W, **way)
        held = {f.name: getattr(joint, f.name) for f in fields(joint)}
        without_gain = {"site": np.array(site, int), "output": np.array(output, int)}
        return SafeTransferPosterior(**held, without_gain=without_gain)

    return build


@pytest.fixture
def x_new(rng):
    return rng.uniform(size=(4, 2))


def both(posterior):
    """The posteriors with full transfer and without any."""
    joint, alone = posterior.with_transfer(), posterior.without_transfer()
    assert type(joint) is type(alone) is LMCPosterior
    return joint, alone


@each_way
@pytest.mark.parametrize("include_noise", [True, False])
def test_an_output_without_gain_is_predicted_alone_and_the_others_are_not(
    partial_transfer, x_new, way, include_noise
):
    posterior = partial_transfer(way, site=[2])
    ask = {"include_noise": include_noise}
    predicted = posterior.predict(x_new, **ask)
    joint, alone = (other.predict(x_new, **ask) for other in both(posterior))
    n = len(joint.mean)
    assert_allclose(predicted.mean[..., 2], np.broadcast_to(alone.mean[..., 2], (n, 4)))
    assert_allclose(predicted.cov[..., 2, 2], np.broadcast_to(alone.cov[..., 2, 2], (n, 4)))
    assert_allclose(predicted.mean[..., :2], joint.mean[..., :2], rtol=1e-12)
    assert_allclose(predicted.cov[..., :2, :2], joint.cov[..., :2, :2], rtol=1e-12)
    assert_array_equal(predicted.cov[..., 2, :2], 0)
    assert_array_equal(predicted.cov[..., :2, 2], 0)
    assert not np.allclose(joint.mean[..., 2], alone.mean[..., 2], rtol=1e-3)


@each_way
def test_without_any_such_output_transfer_is_full(partial_transfer, x_new, way):
    posterior = partial_transfer(way)
    for ask in ({}, {"include_noise": False}):
        ours, joint = (p.predict(x_new, **ask) for p in (posterior, posterior.with_transfer()))
        assert_array_equal(ours.mean, joint.mean)
        assert_array_equal(ours.cov, joint.cov)


@each_way
def test_where_other_outputs_are_known_the_other_list_counts(partial_transfer, x_new, way):
    """Rows: nothing known, the output itself, another one, both; then it is not predicted blind."""
    observed = np.full((4, 3), NAN)
    observed[[1, 3], 2], observed[[2, 3], 0] = 0.7, 0.4
    blind, informed = partial_transfer(way, site=[2]), partial_transfer(way, output=[2])
    joint, _ = both(blind)
    transfer = joint.predict(x_new, observed)
    alone = partial_transfer(way, [2], [2]).predict(x_new, observed)
    for posterior, own in [
        (blind, [True, True, False, True]),
        (informed, [False, False, True, False]),
    ]:
        predicted = posterior.predict(x_new, observed)
        assert_allclose(
            predicted.mean[..., 2], np.where(own, alone.mean[..., 2], transfer.mean[..., 2])
        )
        assert_allclose(
            predicted.cov[..., 2, 2], np.where(own, alone.cov[..., 2, 2], transfer.cov[..., 2, 2])
        )
        assert_allclose(predicted.mean[..., :2], transfer.mean[..., :2])
        assert_array_equal(np.abs(predicted.cov[..., 2, 0]).max(axis=0) < 1e-12, own)


def test_alone_an_output_is_given_its_own_readings_at_the_location(partial_transfer, x_new):
    observed = np.full((4, 3), NAN)
    observed[:2, 2], observed[:2, 0] = 0.7, 0.4
    posterior = partial_transfer({}, [2], [2])
    predicted = posterior.predict(x_new, observed)
    alone = posterior.without_transfer()
    own = np.where([False, False, True], observed, NAN)
    assert_allclose(predicted.mean[0, :, 2], alone.predict(x_new, own).mean[0, :, 2])
    assert not np.allclose(predicted.mean[0, :2, 2], alone.predict(x_new).mean[0, :2, 2], rtol=1e-3)


@pytest.mark.parametrize("way", ["one member", "correlated noise"])
def test_a_training_site_is_a_sample_whose_other_outputs_are_known(partial_transfer, way):
    posterior = partial_transfer(WAYS[way], site=[0])
    table = posterior.observations
    unread = ~table.observed[0] & table.observed[1:].any(axis=0)
    assert unread.any()
    x = table.x[unread]
    joint, alone = (other.predict(x) for other in both(posterior))
    assert posterior.links_samples
    assert_allclose(posterior.predict(x).mean, joint.mean)
    informed = partial_transfer(WAYS[way], output=[0]).predict(x)
    assert_allclose(informed.mean[..., 0], alone.mean[..., 0])
    signals = partial_transfer(WAYS[way], site=[0]).predict(x, include_noise=False)
    assert_allclose(signals.mean[..., 0], both(posterior)[1].predict(x).mean[..., 0])


def test_noise_is_not_correlated_with_that_of_an_output_alone(partial_transfer, x_new):
    posterior = partial_transfer(WAYS["correlated noise"], site=[1], output=[1])
    variances = np.diagonal(posterior.independent.noise)
    for observed in (None, np.tile([0.4, NAN, 0.2], (4, 1))):
        readings, signals = (
            posterior.predict(x_new, observed, include_noise=noise).cov[0]
            for noise in (True, False)
        )
        noise = readings - signals
        assert_allclose(noise[:, 1], np.tile([0, variances[1], 0], (4, 1)), atol=1e-9)
        assert np.all(np.abs(noise[:, 0, 2]) > 1e-6)


@each_way
def test_left_out_readings_are_predicted_alone_or_with_transfer(partial_transfer, way):
    """By site and in groups by the one list, by output by the other."""
    posterior = partial_transfer(way, site=[2], output=[1])
    observed, N = posterior.observations.observed.T, 12
    sites = np.tile(np.arange(N), (3, 1))
    # Sites where something else was read; where not, the first list counts.
    others = observed.sum(axis=1)[:, None] - observed > 0
    for sets, lost in [(sites, 2), (sites // 4, 2), (np.arange(3 * N).reshape(3, N), 1)]:
        joint, alone = (other.leave_out(sets) for other in both(posterior))
        ours = posterior.leave_out(sets)
        own = np.zeros((N, 3), bool)
        if lost == 2:
            own[:, 2] = True
        else:
            own[:, 1], own[:, 2] = others[:, 1], ~others[:, 2]
        assert_allclose(ours.mean, np.where(own, alone.mean, joint.mean))
        variances = np.where(
            own, np.einsum("cmdd->cmd", alone.cov), np.einsum("cmdd->cmd", joint.cov)
        )
        assert_allclose(np.einsum("cmdd->cmd", ours.cov), variances)
    if way.get("conditioning") == 3:
        some = np.array([5, 2])
        assert_allclose(posterior.leave_out(sets, some).mean, ours.mean[:, some])


@pytest.mark.parametrize("way", ["three members", "a committee", "correlated noise", "neighbours"])
def test_samples_are_as_predicted_and_independent_of_outputs_alone(partial_transfer, x_new, way):
    """6 means, 14 covariances and 2 correlations within 5 standard errors: once in 80,000 runs."""
    posterior, n, x = partial_transfer(WAYS[way], site=[2]), 8000, x_new[:2]
    drawn = posterior.sample(x, n, np.random.default_rng(1))
    predicted = posterior.predict(x)
    mean, cov = mixture(predicted.mean, predicted.cov)
    for i in range(2):
        assert agrees(drawn[:, i], mean[i], cov[i])
    scaled = (drawn - mean) / drawn.std(axis=0)
    across = np.mean(scaled[:, 0, 2, None] * scaled[:, 1, :2], axis=0)
    assert np.all(np.abs(across) < 5 / np.sqrt(n))


def test_samples_of_an_output_alone_are_joint_over_locations(partial_transfer, x_new):
    """10 covariances within 5 standard errors, once in 170,000 runs."""
    posterior = partial_transfer(WAYS["three members"], site=[2])
    mean, cov = condition_jointly(posterior.observations, x_new, posterior.independent)
    drawn = posterior.sample(x_new, 8000, np.random.default_rng(2), include_noise=False)
    assert agrees(drawn[..., 2], mean[2], cov[2, :, 2])


def test_samples_given_other_outputs_follow_the_other_list(partial_transfer, x_new):
    """12 means within 5 standard errors: once in 140,000 runs."""
    posterior, n = partial_transfer({}, site=[2]), 4000
    observed = np.tile([0.4, NAN, NAN], (4, 1))
    drawn = posterior.sample(x_new, n, np.random.default_rng(3), observed)
    joint = posterior.with_transfer().predict(x_new, observed)
    std = np.sqrt(np.einsum("mdd->md", joint.cov[0]))
    assert np.all(np.abs(drawn.mean(axis=0) - joint.mean[0]) < 5 * std / np.sqrt(n))


def test_too_costly_readings_change_the_conditioning_of_both(partial_transfer, x_new, monkeypatch):
    """An output alone is then predicted from as few neighbours as the others."""
    import emgpr.prediction.lmc_posterior as module

    posterior = replace(partial_transfer({}, [2], [2]), automatic=True)
    observed = np.full((4, 3), 0.3)
    n = posterior.observations.n_readings
    monkeypatch.setattr(module, "EXACT_OPERATIONS", (n + 6) ** 3 / 3)
    monkeypatch.setattr(module, "DEFAULT_NEIGHBOURS", 2)
    with pytest.warns(UserWarning, match="auto") as warned:
        predicted = posterior.predict(x_new, observed, include_noise=False)
    assert len(warned) == 1
    near = replace(posterior, conditioning=2)
    expected = near.predict(x_new, observed, include_noise=False)
    assert_allclose(predicted.mean, expected.mean, rtol=1e-12)
