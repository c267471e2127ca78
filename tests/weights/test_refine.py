"""The ascent continued, in sweeps or all at once: from where the two steps ended, only upwards."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import clone_kernel, start_of, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.checkpoint import NOTHING_KEPT
from emgpr.covariance import log_likelihood
from emgpr.ensemble import split_sites
from emgpr.kernels import matrices
from emgpr.latents.prior import noise_prior, variances
from emgpr.weights import fit_weights, refine, thinned
from emgpr.weights.refine import SPARED, _Ascent

CASES = {
    "one part, full table": {"batch": None},
    "one part, missing readings": {"batch": None, "missing": 0.2},
    "one latent, full table": {"batch": None, "Q": 1, "k": 2},
    "one latent, missing readings": {"batch": None, "Q": 1, "k": 2, "missing": 0.2},
    "members": {"batch": 7},
    "members, missing readings": {"batch": 7, "missing": 0.2},
}
WAYS = {
    "sweeps, independent": {"sweeps": 2},
    "sweeps, correlated": {"sweeps": 2, "correlated": True},
    "joint, independent": {"sweeps": "joint"},
    "joint, correlated": {"sweeps": "joint", "correlated": True},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
FEW = 3
TINY = 1e-5  # of a log-likelihood: what a full table loses in the span of its latents


def two_steps_in(case):
    """A table and where step 2 ended on it, from kernels and noise that are somewhat wrong."""
    rng = np.random.default_rng(23)
    settings = {"D": 3, "Q": 3, "k": 1, "correlated": True} | case
    batch = settings.pop("batch")
    made = world(rng, N=15, **settings)
    kernels = tuple(clone_kernel(kernel) for kernel in made.kernels)
    noise = 2 * np.diag(np.diag(made.noise))
    start = start_of(made, kernels=kernels, noise=noise, W=0.5 * made.W)
    parts = split_sites(np.zeros((15, 1)), batch, "random", rng)
    return made.seen, parts, start, fit_weights(made.seen, parts, start, max_iter=20)


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def two_steps(request):
    return two_steps_in(request.param)


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS.keys())
def way(request):
    return request.param


@pytest.fixture(scope="module")
def refined(two_steps, way):
    """Some way up."""
    return refine(*two_steps, **way, max_iter=FEW)


def likelihoods(refined):
    return np.array([stage.log_likelihood for stage in refined.history])


def test_the_likelihood_rises_and_on_the_way_it_never_falls(two_steps, refined):
    """Sweep by sweep, or iteration by iteration."""
    *_, fitted = two_steps
    assert refined.members.log_likelihood.sum() > fitted.log_likelihood.sum() + 0.01
    assert np.all(np.diff(likelihoods(refined)) >= -TINY)


def test_the_history_says_what_was_learned_and_how_far_it_led(two_steps, way, refined):
    *_, fitted = two_steps
    joint = ["start", *["everything"] * FEW]
    sweeps = ["weights", *["kernels and noise", "weights"] * 2]
    learned = [stage.learned for stage in refined.history]
    assert learned == (joint if way["sweeps"] == "joint" else sweeps)
    assert_allclose(likelihoods(refined)[0], fitted.log_likelihood.sum(), atol=TINY)
    assert_allclose(likelihoods(refined)[-1], refined.members.log_likelihood.sum(), rtol=1e-10)


def test_the_likelihood_reported_is_that_of_what_was_found(two_steps, refined):
    """Of every member with its own weights, and the kernels and the noise that all share."""
    seen, parts, *_ = two_steps
    mixture, members = refined.mixture, refined.members
    for part, W, value in zip(parts, members.W, members.log_likelihood, strict=True):
        table = seen.at(part)
        K = matrices(mixture.kernels, table.x)
        assert_allclose(log_likelihood(table, W, mixture.noise, K).value, value, atol=TINY)


def test_kernels_noise_and_weights_all_move(two_steps, refined):
    _, _, start, fitted = two_steps
    for new, old in zip(refined.mixture.kernels, start.kernels, strict=True):
        assert np.all(new.theta != old.theta)
    assert not np.isclose(np.diag(refined.mixture.noise), np.diag(start.noise)).any()
    assert refined.members.W.shape == fitted.W.shape
    assert np.all(refined.members.W != fitted.W)


def test_noise_is_joined_only_if_it_may_be(way, refined):
    noise = refined.mixture.noise
    apart = noise[~np.eye(len(noise), dtype=bool)]
    assert np.all(apart != 0) if way.get("correlated") else np.all(apart == 0)
    assert_array_equal(noise, noise.T)
    assert np.all(np.linalg.eigvalsh(noise) > 0)


@every_way
@pytest.mark.parametrize("name", ["one latent, full table", "members, missing readings"])
def test_weights_that_are_not_free_stay(name, way):
    seen, parts, start, fitted = two_steps_in(CASES[name])
    free = np.zeros(start.W.shape, bool)
    free[..., 0] = free[0] = True
    free[..., 0, :] = False
    W = refine(seen, parts, replace(start, free=free), fitted, **way, max_iter=3).members.W
    held = np.broadcast_to(~free, W.shape)
    assert_array_equal(W[held], fitted.W[held])
    assert np.all(W[~held] != fitted.W[~held])


@every_way
@pytest.mark.parametrize("name", ["one part, full table", "members, missing readings"])
def test_the_history_counts_what_the_prior_says_at_every_stage(name, way):
    seen, parts, start, fitted = two_steps_in(CASES[name])
    found = refine(seen, parts, start, fitted, **way, weak_prior=True, max_iter=FEW)
    prior = noise_prior(variances(seen), True)
    first, *_, last = likelihoods(found)
    assert_allclose(first, fitted.log_likelihood.sum() + prior(start.noise)[0], atol=TINY)
    own = found.members.log_likelihood.sum() + prior(found.mixture.noise)[0]
    assert_allclose(last, own, atol=TINY)
    assert np.all(np.diff(likelihoods(found)) >= -TINY)


def test_on_some_of_the_sites_no_length_scale_may_shrink_as_far():
    seen, parts, start, _ = two_steps_in(CASES["one part, full table"])
    fine, coarse = (
        _Ascent(seen, parts, start, False, False, None, "cpu", ledger=NOTHING_KEPT, spared=spared)
        for spared in (False, True)
    )
    scales = np.array(["length_scale" in name for name in fine.named])
    assert scales.sum() == 3
    assert_allclose(coarse.bounds[scales, 0], fine.bounds[scales, 0] + SPARED)
    assert_array_equal(coarse.bounds[scales, 1], fine.bounds[scales, 1])
    assert_array_equal(coarse.bounds[~scales], fine.bounds[~scales])


@every_way
@pytest.mark.parametrize("name", ["one latent, full table", "members, missing readings"])
def test_an_ascent_may_be_continued_by_another_and_none_begins_with_a_fall(name, way):
    """From independent noise to noise that is joined, for one."""
    seen, parts, start, fitted = two_steps_in(CASES[name])
    before = refine(seen, parts, start, fitted, sweeps="joint", max_iter=2)
    after = refine(seen, parts, before.mixture, before.members, **way, max_iter=3)
    assert_allclose(likelihoods(after)[0], likelihoods(before)[-1], rtol=1e-9)
    assert np.all(np.diff(likelihoods(after)) >= -TINY)


@pytest.mark.parametrize("correlated", [False, True])
def test_a_sweep_more_goes_on_from_where_the_last_one_ended(correlated):
    given = two_steps_in(CASES["members, missing readings"])
    ways = [{"sweeps": n, "correlated": correlated, "max_iter": 3} for n in (1, 2, 3)]
    histories = [refine(*given, **way).history for way in ways]
    assert [len(history) for history in histories] == [3, 5, 7]
    assert histories[0] == histories[2][:3]
    assert histories[1] == histories[2][:5]


def test_one_member_at_a_time_or_all_at_once_it_is_the_same_ascent(monkeypatch):
    """Members go in runs that fit the memory."""
    given = two_steps_in(CASES["members, missing readings"])
    way = {"sweeps": "joint", "correlated": True, "max_iter": 4}
    whole = refine(*given, **way)
    assert len(whole.members.W) == 2
    monkeypatch.setattr(
        sys.modules[refine.__module__], "chunks", lambda n, *_: [range(i, i + 1) for i in range(n)]
    )
    pieces = refine(*given, **way)
    assert_allclose(pieces.members.W, whole.members.W, rtol=1e-7)
    assert_allclose(pieces.members.log_likelihood, whole.members.log_likelihood, rtol=1e-9)
    assert_allclose(pieces.mixture.noise, whole.mixture.noise, rtol=1e-7)


@pytest.mark.parametrize("name", ["one part, missing readings", "members"])
def test_some_of_the_sites_may_show_the_way_and_all_of_them_have_the_last_word(name, monkeypatch):
    seen, parts, start, fitted = two_steps_in(CASES[name])
    way = {"sweeps": "joint", "correlated": True, "max_iter": 20}
    plain = refine(seen, parts, start, fitted, **way)
    monkeypatch.setattr(sys.modules[thinned.__module__], "ENOUGH", 12)
    monkeypatch.setattr(sys.modules[thinned.__module__], "EACH", 0)
    few = thinned(seen, parts, 50)
    for some, part in zip(few, parts, strict=True):
        assert np.isin(some, part).all()
        assert 1 <= len(np.unique(some)) == len(some) < len(part)
    refined = refine(seen, parts, start, fitted, **way)
    assert likelihoods(refined)[0] != likelihoods(plain)[0]  # it began elsewhere
    assert np.all(np.diff(likelihoods(refined)) >= -TINY)
    assert_allclose(likelihoods(refined)[-1], refined.members.log_likelihood.sum(), rtol=1e-10)
    assert likelihoods(refined)[-1] > fitted.log_likelihood.sum()


@pytest.fixture
def climb(rng):
    """Refines a small world from its own parameters, some of them changed."""
    made = world(rng, N=25, D=2, Q=1, k=2, correlated=True)

    def go(sweeps="joint", max_iter=20, correlated=False, **changed):
        start, parts = start_of(made, **changed), split_sites(np.zeros((25, 1)), None)
        start = start if correlated else replace(start, noise=np.diag(np.diag(start.noise)))
        fitted = fit_weights(made.seen, parts, start, max_iter=30)
        way = {"sweeps": sweeps, "correlated": correlated, "max_iter": max_iter}
        return refine(made.seen, parts, start, fitted, **way)

    return go


@pytest.mark.parametrize("correlated", [False, True])
def test_many_sweeps_come_near_the_joint_ascent_and_not_above_it(climb, correlated):
    """They climb the same hill: within a tenth of its height, and to a hundredth not above."""
    joint = likelihoods(climb("joint", 2000, correlated))
    sweeps = likelihoods(climb(12, 200, correlated))
    assert sweeps[-1] < joint[-1] + 0.01
    assert joint[-1] - sweeps[-1] < 0.1 * (joint[-1] - sweeps[0])


def test_noise_that_may_be_joined_makes_the_data_no_less_likely(climb):
    """From the same start, to the end; here the noise of the data is joined."""
    diagonal = np.diag([0.1, 0.1])
    apart, joined = (
        climb("joint", 2000, correlated, noise=diagonal) for correlated in (False, True)
    )
    assert apart.history[0] == joined.history[0]
    assert likelihoods(joined)[-1] > likelihoods(apart)[-1]


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_what_is_fixed_in_a_kernel_stays(climb, sweeps):
    assert climb(sweeps, kernels=(RBF(0.35, "fixed"),)).mixture.kernels[0].length_scale == 0.35


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_a_bound_that_was_reached_is_named(climb, sweeps):
    refined = climb(sweeps, kernels=(RBF(2.0, (1.9, 2.1)),))
    assert "at a bound: latent 0's length_scale" in refined.trouble
    assert_allclose(refined.mixture.kernels[0].length_scale, 1.9)


@pytest.mark.parametrize("names", [None, ["Cd", "Ni", "Zn"]])
def test_noise_at_a_bound_is_named_after_its_output(names):
    seen, parts, start, fitted = two_steps_in(CASES["one part, full table"])
    bounds = np.outer(np.diag(start.noise), [0.99, 1.01])
    tight = replace(start, noise_bounds=bounds)
    trouble = refine(seen, parts, tight, fitted, sweeps=1, max_iter=30, names=names).trouble
    assert f"the noise of output {'Cd' if names else 0!r}" in trouble


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_bounds_and_fixed_values_are_those_of_the_variances_joined_or_not(sweeps):
    """As the user set them on a WhiteKernel."""
    seen, parts, start, fitted = two_steps_in(CASES["one part, full table"])
    variances = np.diag(start.noise)
    for bounds in (np.outer(variances, [1.0, 1.0]), np.outer(variances, [0.8, 1.25])):
        held = replace(start, noise_bounds=bounds)
        noise = refine(
            seen, parts, held, fitted, sweeps=sweeps, correlated=True, max_iter=10
        ).mixture.noise
        assert np.all(np.diag(noise) > bounds[:, 0] * (1 - 1e-9))
        assert np.all(np.diag(noise) < bounds[:, 1] * (1 + 1e-9))


@pytest.mark.parametrize("sweeps", [1, "joint"])
def test_a_search_cut_short_says_so(two_steps, sweeps):
    trouble = refine(*two_steps, sweeps=sweeps, max_iter=1).trouble
    assert "did not converge within max_iter=1" in trouble


def test_weights_whose_search_was_cut_short_in_the_last_sweep_say_so_too():
    """Kernels and noise are fixed, so only the weights can have been cut short."""
    seen, parts, start, _ = two_steps_in(CASES["members"])
    held = replace(
        start,
        kernels=tuple(RBF(0.4, "fixed") for _ in start.kernels),
        noise_bounds=np.outer(np.diag(start.noise), [1.0, 1.0]),
    )
    fitted = fit_weights(seen, parts, held, max_iter=1)
    refined = refine(seen, parts, held, fitted, sweeps=1, max_iter=2)
    assert not refined.members.converged.any()
    assert "did not converge within max_iter=2" in refined.trouble


@pytest.mark.parametrize("sweeps", [1, "joint"])
def test_what_converged_is_no_trouble(climb, sweeps):
    assert climb(sweeps, max_iter=2000).trouble == ""
