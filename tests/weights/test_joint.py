"""Optimisation after step 2, in sweeps or jointly: the likelihood rises from where step 2 ended."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr.covariance import log_likelihood
from emgpr.ensemble import split_sites
from emgpr.kernels import kernel_matrices
from emgpr.noise import noise_prior, output_variances
from emgpr.weights import (
    ParameterVector,
    Stage,
    fit_weights,
    refine,
    subsample_batches,
)
from emgpr.weights.sill_prior import SillPrior
from tests.simulated import clone_kernel, start_of, world

pytestmark = pytest.mark.slow

joint = sys.modules[refine.__module__]
fit = sys.modules[fit_weights.__module__]

CASES = {
    "one table": {"batch": None, "missing": 0.2},
    "one latent, a complete table": {"batch": None, "Q": 1, "k": 2},
    "members": {"batch": 7, "missing": 0.2},
}
WAYS = {
    "sweeps, independent": {"sweeps": 2},
    "sweeps, correlated": {"sweeps": 2, "correlated": True},
    "joint, independent": {"sweeps": "joint"},
    "joint, correlated": {"sweeps": "joint", "correlated": True},
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
ITERATIONS = 3
TINY = 1e-5  # what a log-likelihood may lose in the low-rank form of step 2


def after_step_2(case):
    """A table and the result of step 2, from kernels and noise that are somewhat wrong."""
    rng = np.random.default_rng(23)
    settings = {"D": 3, "Q": 3, "k": 1, "correlated": True} | case
    batch = settings.pop("batch")
    made = world(rng, N=15, **settings)
    kernels = tuple(clone_kernel(kernel) for kernel in made.kernels)
    noise = 2 * np.diag(np.diag(made.noise))
    start = start_of(made, kernels=kernels, noise=noise, W=0.5 * made.W)
    batches = split_sites(np.zeros((15, 1)), batch, "random", rng)
    fitted = fit_weights(made.observations, batches, start, max_iter=20)
    return made.observations, batches, start, fitted


@pytest.fixture(scope="module")
def prepared():
    return {name: after_step_2(case) for name, case in CASES.items()}


@pytest.fixture(scope="module", params=CASES)
def step_2(request, prepared):
    return prepared[request.param]


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS.keys())
def way(request):
    return request.param


@pytest.fixture(scope="module")
def refined(step_2, way):
    """The result of a few iterations."""
    return refine(*step_2, **way, max_iter=ITERATIONS)


def likelihoods(refined):
    return np.array([stage.log_likelihood for stage in refined.history])


def test_the_likelihood_rises_at_every_stage(step_2, refined):
    *_, fitted = step_2
    assert refined.members.log_likelihood.sum() > fitted.log_likelihood.sum() + 0.01
    assert np.all(np.diff(likelihoods(refined)) >= -TINY)


def test_the_history_names_what_was_optimised_and_the_likelihood_reached(step_2, way, refined):
    *_, fitted = step_2
    stages = ["weights", *["kernels and noise", "weights"] * 2]
    if way["sweeps"] == "joint":
        stages = ["start", *["everything"] * ITERATIONS]
    assert [stage.learned for stage in refined.history] == stages
    assert all(isinstance(stage, Stage) for stage in refined.history)
    assert_allclose(likelihoods(refined)[0], fitted.log_likelihood.sum(), atol=TINY)
    assert_allclose(likelihoods(refined)[-1], refined.members.log_likelihood.sum(), rtol=1e-10)


def test_the_likelihood_of_every_member_is_that_of_its_batch(step_2, refined):
    observations, batches, *_ = step_2
    parameters, members = refined.parameters, refined.members
    for batch, W, value in zip(batches, members.W, members.log_likelihood, strict=True):
        table = observations.at(batch)
        K = kernel_matrices(parameters.kernels, table.x)
        assert_allclose(log_likelihood(table, W, parameters.noise, K).value, value, atol=TINY)


def test_kernels_noise_and_weights_all_change(step_2, refined):
    _, _, start, fitted = step_2
    for new, old in zip(refined.parameters.kernels, start.kernels, strict=True):
        assert np.all(new.theta != old.theta)
    assert not np.isclose(np.diag(refined.parameters.noise), np.diag(start.noise)).any()
    assert refined.members.W.shape == fitted.W.shape
    assert np.all(refined.members.W != fitted.W)


def test_noise_is_correlated_only_if_it_may_be(way, refined):
    noise = refined.parameters.noise
    between = noise[~np.eye(len(noise), dtype=bool)]
    assert np.all(between != 0) if way.get("correlated") else np.all(between == 0)
    assert_array_equal(noise, noise.T)
    assert np.all(np.linalg.eigvalsh(noise) > 0)


def test_the_members_of_a_joint_optimisation_converge_together(prepared):
    members = refine(*prepared["members"], sweeps="joint", max_iter=ITERATIONS).members
    assert members.n_iter.tolist() == [ITERATIONS] * 2
    assert members.converged.tolist() == [False] * 2


@each_way
@pytest.mark.parametrize("name", ["one latent, a complete table", "members"])
def test_fixed_weights_stay(prepared, name, way):
    observations, batches, start, fitted = prepared[name]
    free = np.zeros(start.W.shape, bool)
    free[..., 0] = free[0] = True
    free[..., 0, :] = False
    held = replace(start, free=free)
    W = refine(observations, batches, held, fitted, **way, max_iter=3).members.W
    fixed = np.broadcast_to(~free, W.shape)
    assert_array_equal(W[fixed], fitted.W[fixed])
    assert np.all(W[~fixed] != fitted.W[~fixed])


@each_way
def test_the_history_includes_the_log_priors_of_the_noise_and_the_sills(prepared, way):
    observations, batches, start, fitted = prepared["members"]
    found = refine(*prepared["members"], **way, weak_prior=True, max_iter=ITERATIONS)
    variances = output_variances(observations)
    of_noise, of_sills = noise_prior(variances, True), SillPrior(variances)
    joint = way["sweeps"] == "joint"  # the weights in a sweep have no prior

    def log_prior(noise, W):
        ones = np.ones((len(W), W.shape[1], len(batches[0])))  # kernels have unit variance
        return of_noise(noise)[0] + (of_sills(W, noise, ones).value.sum() if joint else 0.0)

    first, *_, last = likelihoods(found)
    at_start = fitted.log_likelihood.sum() + log_prior(start.noise, fitted.W)
    assert_allclose(first, at_start, atol=TINY)
    own = found.members.log_likelihood.sum()
    own += log_prior(found.parameters.noise, found.members.W)
    assert_allclose(last, own, atol=TINY)
    assert np.all(np.diff(likelihoods(found)) >= -TINY)


def test_failed_members_do_not_count_in_the_history(prepared):
    observations, batches, start, fitted = prepared["members"]
    failed = replace(fitted, log_likelihood=np.array([-np.inf, fitted.log_likelihood[1]]))
    history = refine(observations, batches, start, failed, sweeps=0, max_iter=1).history
    assert history == [Stage("weights", fitted.log_likelihood[1])]


@pytest.mark.parametrize("sweeps", [1, "joint"])
def test_an_optimisation_continues_from_the_end_of_another(prepared, sweeps):
    """From independent to correlated noise, for one."""
    observations, batches, start, fitted = prepared["members"]
    before = refine(observations, batches, start, fitted, sweeps="joint", max_iter=2)
    after = refine(
        observations,
        batches,
        before.parameters,
        before.members,
        sweeps=sweeps,
        correlated=True,
        max_iter=3,
    )
    assert_allclose(likelihoods(after)[0], likelihoods(before)[-1], rtol=1e-9)
    assert np.all(np.diff(likelihoods(after)) >= -TINY)


def test_another_sweep_continues_from_the_last(prepared):
    histories = [
        refine(*prepared["members"], sweeps=n, correlated=True, max_iter=3).history for n in (1, 2)
    ]
    assert [len(history) for history in histories] == [3, 5]
    assert histories[0] == histories[1][:3]


@pytest.mark.parametrize("limit", ["chunks", "LARGE_BATCH"])
def test_members_one_by_one_are_optimised_as_all_at_once(prepared, monkeypatch, limit):
    """In chunks that fit the memory, or because a batch is large."""
    how = {"sweeps": "joint", "correlated": True, "max_iter": 4}
    whole = refine(*prepared["members"], **how)
    assert len(whole.members.W) == 2
    if limit == "chunks":
        monkeypatch.setattr(joint, "chunks", lambda n, *_: [range(i, i + 1) for i in range(n)])
    else:
        monkeypatch.setattr(joint, "LARGE_BATCH", 20)  # of 21 to 24 readings
    pieces = refine(*prepared["members"], **how)
    assert_allclose(pieces.members.W, whole.members.W, rtol=1e-7)
    assert_allclose(pieces.members.log_likelihood, whole.members.log_likelihood, rtol=1e-9)
    assert_allclose(pieces.parameters.noise, whole.parameters.noise, rtol=1e-7)


@pytest.mark.parametrize("name", ["one table", "members"])
def test_a_joint_optimisation_starts_on_a_subsample_and_ends_on_all(prepared, name, monkeypatch):
    observations, batches, _, fitted = prepared[name]
    how = {"sweeps": "joint", "correlated": True, "max_iter": 10}
    plain = refine(*prepared[name], **how)
    monkeypatch.setattr(fit, "SUBSAMPLE_READINGS", 12)
    monkeypatch.setattr(fit, "SUBSAMPLE_READINGS_PER_PARAMETER", 0)
    reduced = subsample_batches(observations, batches, 50)
    assert sum(map(len, reduced)) < sum(map(len, batches))
    sites, factors, real = [], [], ParameterVector.around

    def noted(start, observations, distances, **given):
        sites.append(len(distances.x))
        factors.append(given.get("min_length_factor", 1.0))
        return real(start, observations, distances, **given)

    monkeypatch.setattr(joint.ParameterVector, "around", noted)
    refined = refine(*prepared[name], **how)
    assert sites == [15, sum(map(len, reduced))]
    assert factors == [1.0, 5.0]  # a sparser table would explain noise by short length-scales
    assert likelihoods(refined)[0] != likelihoods(plain)[0]  # another start
    assert np.all(np.diff(likelihoods(refined)) >= -TINY)
    assert_allclose(likelihoods(refined)[-1], refined.members.log_likelihood.sum(), rtol=1e-10)
    assert likelihoods(refined)[-1] > fitted.log_likelihood.sum()


@pytest.fixture(scope="module")
def refined_from_truth():
    """Refine a small table from its true parameters, some of them changed."""
    made = world(np.random.default_rng(20171), N=25, D=2, Q=1, k=2, correlated=True)

    def go(sweeps="joint", max_iter=20, correlated=False, **changed):
        start, batches = start_of(made, **changed), [np.arange(25)]
        start = start if correlated else replace(start, noise=np.diag(np.diag(start.noise)))
        fitted = fit_weights(made.observations, batches, start, max_iter=30)
        how = {"sweeps": sweeps, "correlated": correlated, "max_iter": max_iter}
        return refine(made.observations, batches, start, fitted, **how)

    return go


def test_many_sweeps_come_near_the_joint_optimum_and_not_above_it(refined_from_truth):
    """Within a tenth of the way there, and to a hundredth not above."""
    together = likelihoods(refined_from_truth("joint", 2000, correlated=True))
    sweeps = likelihoods(refined_from_truth(12, 200, correlated=True))
    assert sweeps[-1] < together[-1] + 0.01
    assert together[-1] - sweeps[-1] < 0.1 * (together[-1] - sweeps[0])


def test_correlated_noise_makes_correlated_data_more_likely(refined_from_truth):
    """From the same start to the end."""
    diagonal = np.diag([0.1, 0.1])
    independent, correlated = (
        refined_from_truth("joint", 2000, may, noise=diagonal) for may in (False, True)
    )
    assert independent.history[0] == correlated.history[0]
    assert likelihoods(correlated)[-1] > likelihoods(independent)[-1]


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_fixed_parameters_of_a_kernel_stay(refined_from_truth, sweeps):
    refined = refined_from_truth(sweeps, kernels=(RBF(0.35, "fixed"),))
    assert refined.parameters.kernels[0].length_scale == 0.35


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_a_parameter_that_ends_at_a_bound_is_named(refined_from_truth, sweeps):
    refined = refined_from_truth(sweeps, kernels=(RBF(2.0, (1.9, 2.1)),))
    assert "at a bound of latent 0's length_scale" in refined.message
    assert_allclose(refined.parameters.kernels[0].length_scale, 1.9)


@pytest.mark.parametrize("names", [None, ["Cd", "Ni", "Zn"]])
def test_noise_at_a_bound_is_named_by_its_output(prepared, names):
    observations, batches, start, fitted = prepared["one table"]
    bounds = np.outer(np.diag(start.noise), [0.99, 1.01])
    tight = replace(start, noise_bounds=bounds)
    message = refine(
        observations, batches, tight, fitted, sweeps=1, max_iter=30, output_names=names
    ).message
    assert f"the noise of output {'Cd' if names else 0!r}" in message


@pytest.mark.parametrize("sweeps", [2, "joint"])
def test_bounds_of_noise_variances_hold_for_correlated_noise(prepared, sweeps):
    """And fixed variances stay."""
    observations, batches, start, fitted = prepared["one table"]
    variances = np.diag(start.noise)
    for bounds in (np.outer(variances, [1.0, 1.0]), np.outer(variances, [0.8, 1.25])):
        held = replace(start, noise_bounds=bounds)
        noise = refine(
            observations, batches, held, fitted, sweeps=sweeps, correlated=True, max_iter=5
        ).parameters.noise
        assert np.all(np.diag(noise) > bounds[:, 0] * (1 - 1e-9))
        assert np.all(np.diag(noise) < bounds[:, 1] * (1 + 1e-9))


@pytest.mark.parametrize("sweeps", [1, "joint"])
def test_a_search_that_is_cut_short_says_so(step_2, sweeps):
    message = refine(*step_2, sweeps=sweeps, max_iter=1).message
    assert "it did not converge within max_iter=1; increase max_iter" in message


def test_weights_that_did_not_converge_in_the_last_sweep_are_counted(prepared):
    """Kernels and noise are fixed, so that only the weights are cut short."""
    observations, batches, start, _ = prepared["members"]
    held = replace(
        start,
        kernels=tuple(RBF(0.4, "fixed") for _ in start.kernels),
        noise_bounds=np.outer(np.diag(start.noise), [1.0, 1.0]),
    )
    fitted = fit_weights(observations, batches, held, max_iter=1)
    refined = refine(observations, batches, held, fitted, sweeps=1, max_iter=2)
    assert not refined.members.converged.any()
    said = "the weights of 2 of 2 members did not converge within max_iter=2"
    assert refined.message == said


@pytest.mark.parametrize("sweeps", [1, "joint"])
def test_a_search_that_converged_needs_no_message(refined_from_truth, sweeps):
    assert refined_from_truth(sweeps, max_iter=2000).message == ""
