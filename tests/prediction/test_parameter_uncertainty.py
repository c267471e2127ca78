"""Predictions that include the uncertainty of the parameters."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.prediction import (
    LMCModel,
    ParameterDirections,
    condition,
    condition_on_neighbours,
    noise_given_sample,
)
from emgpr.prediction.exact import mean_derivatives
from emgpr.prediction.neighbours import differentiate_group, mean_derivatives_from_neighbours
from emgpr.stacking import CandidateWeights, Stack, StackedPosterior
from tests.simulated import agrees, lmc_posterior, moved, some_directions, world

pytestmark = pytest.mark.slow

each_device = pytest.mark.parametrize("device", ["cpu", "torch"])
each_conditioning = pytest.mark.parametrize("conditioning", ["all", "batch", 5])
MADE = {
    "complete": {},
    "correlated noise and gaps": {"correlated": True, "missing": 0.3},
    "one output": {"D": 1, "Q": 2, "k": 1},
}
each_world = pytest.mark.parametrize("settings", MADE.values(), ids=MADE)


def differences(predict, model, directions, step=1e-5):
    """The derivatives of predicted means along every direction, by central differences."""
    ways = [
        [predict(moved(model, directions, i, sign * step)).mean[0] for sign in (1, -1)]
        for i in range(len(directions))
    ]
    return np.stack([(above - below) / (2 * step) for above, below in ways], axis=-1)


def separate(made):
    """The same world with two groups of outputs that are not coupled."""
    W, noise = made.W.copy(), made.noise.copy()
    W[0, 2], W[1:, :2] = 0.0, 0.0
    noise[2, :2] = noise[:2, 2] = 0.0
    return replace(made, W=W, noise=noise)


@each_device
@each_world
def test_derivatives_given_all_readings_are_those_of_the_means(rng, settings, device):
    made = world(rng, **settings)
    directions = some_directions(rng, made.model, size=1.0)
    x = np.vstack([rng.uniform(size=(4, 2)), made.X[:2]])
    found = mean_derivatives(made.observations, x, made.model, directions, device=device)
    predict = partial(condition, made.observations, x)
    expected = differences(predict, made.model, directions)
    assert_allclose(found, expected, atol=3e-6 * np.abs(expected).max())


@each_device
@each_world
def test_derivatives_given_neighbours_are_those_of_the_means(rng, settings, device):
    made = world(rng, **settings)
    directions = some_directions(rng, made.model, size=1.0)
    x = np.vstack([rng.uniform(size=(4, 2)), made.X[:2]])
    found = mean_derivatives_from_neighbours(
        made.observations, x, made.model, 4, directions, device=device
    )
    expected = differences(
        lambda model: condition_on_neighbours(made.observations, x, model, 4),
        made.model,
        directions,
    )
    assert_allclose(found, expected, atol=3e-6 * np.abs(expected).max())


def test_groups_of_outputs_that_are_not_coupled_have_their_own_derivatives(rng):
    made = separate(world(rng, correlated=True, missing=0.2))
    assert len(list(made.model.coupled_outputs())) == 2
    directions = some_directions(rng, made.model, size=1.0)
    x = rng.uniform(size=(4, 2))
    expected = differences(partial(condition, made.observations, x), made.model, directions)
    found = mean_derivatives(made.observations, x, made.model, directions)
    assert_allclose(found, expected, atol=3e-6 * np.abs(expected).max())
    near = mean_derivatives_from_neighbours(made.observations, x, made.model, 12, directions)
    assert_allclose(near, expected, atol=3e-6 * np.abs(expected).max())


def test_kernels_with_several_or_no_parameters(rng):
    kernels = (ConstantKernel(1.5) * Matern([0.3, 0.6], nu=2.5), RBF(0.4, "fixed"), RBF(0.2))
    made = replace(world(rng), kernels=kernels)
    directions = some_directions(rng, made.model, size=1.0)
    assert directions.theta.shape == (4, 4)
    x = rng.uniform(size=(3, 2))
    expected = differences(partial(condition, made.observations, x), made.model, directions)
    for found in (
        mean_derivatives(made.observations, x, made.model, directions),
        mean_derivatives_from_neighbours(made.observations, x, made.model, 12, directions),
    ):
        assert_allclose(found, expected, atol=3e-6 * np.abs(expected).max())


@each_conditioning
def test_covariances_are_inflated_and_increase_by_the_squares_of_the_derivatives(rng, conditioning):
    made = world(rng, correlated=True, missing=0.3)
    fixed = lmc_posterior(made, conditioning=conditioning)
    directions = some_directions(rng, made.model, means=True)
    x = rng.uniform(size=(5, 2))
    if conditioning == 5:
        slopes = mean_derivatives_from_neighbours(made.observations, x, made.model, 5, directions)
    else:
        slopes = mean_derivatives(made.observations, x, made.model, directions)
    plain = fixed.predict(x, include_noise=False)
    found = replace(fixed, directions=directions).predict(x, include_noise=False)
    assert_array_equal(found.mean, plain.mean)
    scale = np.sqrt(directions.inflation)
    expected = plain.cov[0] * np.outer(scale, scale) + slopes @ np.swapaxes(slopes, 1, 2)
    assert_allclose(found.cov[0], expected, rtol=1e-10)


@each_device
@each_world
@pytest.mark.parametrize("conditioning", ["all", 4])
def test_a_change_of_the_means_moves_the_readings_and_the_predictions(
    rng, settings, device, conditioning
):
    """The change is linear, so one step of any size shows the derivative."""
    made = world(rng, **settings)
    zero = some_directions(rng, made.model, size=0.0)
    directions = replace(zero, mean=rng.normal(size=zero.mean.shape))
    x = np.vstack([rng.uniform(size=(4, 2)), made.X[:2]])
    if conditioning == "all":
        found = mean_derivatives(made.observations, x, made.model, directions, device=device)
        predict = condition
    else:
        found = mean_derivatives_from_neighbours(
            made.observations, x, made.model, 4, directions, device=device
        )
        predict = partial(condition_on_neighbours, n_neighbours=4)
    before = predict(made.observations, x, model=made.model).mean[0]
    for r, change in enumerate(directions.mean):
        moved_table = Observations.from_table(made.X, made.Y - change)
        after = change + predict(moved_table, x, model=made.model).mean[0]
        assert_allclose(found[..., r], after - before, atol=1e-9)


@each_conditioning
def test_variances_of_readings_are_inflated_less_but_exceed_those_of_signals(rng, conditioning):
    made = world(rng, correlated=True, missing=0.3)
    fixed = lmc_posterior(made, conditioning=conditioning)
    zero = some_directions(rng, made.model, size=0.0)
    posterior = replace(fixed, directions=replace(zero, inflation=np.array([1.0, 1.4, 2.0])))
    x = rng.uniform(size=(5, 2))
    known, signals, readings = (
        np.einsum("mdd->md", each.predict(x, include_noise=include_noise).cov[0])
        for each, include_noise in ((fixed, False), (posterior, False), (posterior, True))
    )
    assert_allclose(signals, known * [1.0, 1.4, 2.0], rtol=1e-10)
    noise = np.diagonal(made.noise)
    assert_allclose(readings - noise, known + [0.0, 0.4, 1.0] * known**2 / (known + noise))
    assert (readings > signals).all()
    much = replace(fixed, directions=replace(zero, inflation=np.full(3, 20.0)))
    assert (np.einsum("mdd->md", much.predict(x).cov[0]) >= 20.0 * known * (1 - 1e-9)).all()


@each_device
@each_world
def test_derivatives_of_the_variances(rng, settings, device):
    made = world(rng, **settings)
    kernels = (ConstantKernel(1.5) * Matern([0.3, 0.6], nu=2.5), *made.kernels[1:])
    made = replace(made, kernels=kernels)
    directions = some_directions(rng, made.model, size=1.0)
    x, step = np.vstack([rng.uniform(size=(4, 2)), made.X[:2]]), 1e-5
    (group,) = made.model.coupled_outputs()
    _, found = differentiate_group(
        made.observations, x, np.ones(2), 12, group,
        made.model.directions_of(group, directions), of_variances=True, device=device,
    )  # fmt: skip
    for r in range(len(directions)):
        above, below = (
            condition(made.observations, x, moved(made.model, directions, r, sign * step)).cov[0]
            for sign in (1, -1)
        )
        expected = np.einsum("mdd->md", above - below) / (2 * step)
        assert_allclose(found[..., r], expected, atol=3e-6 * np.abs(expected).max())


def test_without_readings_of_an_output_its_mean_is_as_uncertain_as_before(rng):
    """A group of outputs without kernels is predicted by its mean."""
    made = world(rng)
    made = replace(made, W=np.zeros_like(made.W))
    directions = replace(
        some_directions(rng, made.model), mean=rng.normal(size=(4, 3)), inflation=np.full(3, 2.0)
    )
    for conditioning in ("all", 4):
        posterior = lmc_posterior(made, conditioning=conditioning, directions=directions)
        cov = posterior.predict(made.X[:2], include_noise=False).cov[0, 0]
        assert_allclose(np.diagonal(cov), (directions.mean**2).sum(axis=0), rtol=1e-12)


@each_conditioning
def test_directions_of_length_zero_change_nothing(rng, conditioning):
    made = world(rng, correlated=True, missing=0.3)
    fixed = lmc_posterior(made, conditioning=conditioning)
    zero = some_directions(rng, made.model, size=0.0)
    none = ParameterDirections(
        zero.theta[:0], zero.W[:0], zero.noise[:0], zero.mean[:0], np.ones(3)
    )
    x, sets = rng.uniform(size=(5, 2)), np.tile(np.arange(12), (3, 1))
    for directions in (zero, none):
        posterior = replace(fixed, directions=directions)
        for part in ("mean", "cov"):
            assert_array_equal(getattr(posterior.predict(x), part), getattr(fixed.predict(x), part))
            assert_array_equal(
                getattr(posterior.leave_out(sets), part), getattr(fixed.leave_out(sets), part)
            )


def test_means_alone_are_predicted_without_derivatives(rng):
    made = world(rng)
    posterior = lmc_posterior(made, directions=some_directions(rng, made.model))
    assert not posterior.predict(made.X, include_noise=False, with_cov=False).cov.any()


def test_readings_of_a_sample_also_inform_the_uncertain_parameters(rng):
    """The additional covariance is transformed like the covariance of the signals."""
    made = world(rng, correlated=True, missing=0.3)
    directions = some_directions(rng, made.model)
    posterior = lmc_posterior(made, directions=directions)
    x, observed = rng.uniform(size=(3, 2)), np.full((3, 3), np.nan)
    observed[0, 1], observed[2, :2] = 0.7, [-0.5, 0.9]
    table = made.observations.extended_by(Observations.from_table(x, observed))
    signals = condition(table, x, made.model, directions=directions)
    given, _, noise = noise_given_sample(
        signals, made.model.prior_covariance(x), made.noise, observed
    )
    found = posterior.predict(x, observed)
    assert_allclose(found.mean, given.mean, rtol=1e-10)
    assert_allclose(found.cov, given.cov + noise, rtol=1e-10)
    fixed = lmc_posterior(made).predict(x, observed)
    more = np.einsum("mdd->md", (found.cov - fixed.cov)[0])
    assert (more > 0).all()


@each_conditioning
@pytest.mark.parametrize("include_noise", [True, False], ids=["readings", "signals"])
def test_samples_have_the_predicted_means_and_covariances(rng, conditioning, include_noise):
    """9 values and 6 covariances at each of 3 locations: a false alarm in 30,000 runs."""
    made = world(rng, correlated=True, missing=0.2)
    directions = some_directions(rng, made.model, size=0.3, means=True)
    posterior = lmc_posterior(made, conditioning=conditioning, directions=directions)
    fixed = replace(posterior, directions=None)
    x = rng.uniform(0.2, 0.8, size=(3, 2))
    drawn = posterior.sample(x, 10_000, rng, include_noise=include_noise)
    predicted = posterior.predict(x, include_noise=include_noise)
    narrower = fixed.predict(x, include_noise=include_noise)
    for m in range(3):
        assert agrees(drawn[:, m], predicted.mean[0, m], predicted.cov[0, m])
    assert not all(agrees(drawn[:, m], narrower.mean[0, m], narrower.cov[0, m]) for m in range(3))


def test_samples_share_their_parameters_over_all_locations(rng):
    """With known signals and one direction, samples differ by multiples of one vector."""
    made = world(rng, noise=1e-8)
    directions = some_directions(rng, made.model, r=1, size=50.0)
    posterior = lmc_posterior(made, directions=directions)
    x = made.X[:3] + 1e-9
    drawn = posterior.sample(x, 50, rng, include_noise=False)
    slopes = mean_derivatives(made.observations, x, made.model, directions)[..., 0]
    xi = np.tensordot(drawn - drawn.mean(axis=0), slopes) / (slopes**2).sum()
    rest = drawn - drawn.mean(axis=0) - xi[:, None, None] * slopes
    assert rest.std() < 0.1 * drawn.std()


def test_the_order_of_sites_and_outputs_does_not_matter(rng):
    made = world(rng, correlated=True, missing=0.3)
    directions = some_directions(rng, made.model, means=True)
    posterior = lmc_posterior(made, directions=directions)
    sites, outputs, latents = rng.permutation(12), np.array([2, 0, 1]), np.array([1, 2, 0])
    model = LMCModel(
        tuple(made.kernels[q] for q in latents),
        made.W[None][:, latents][:, :, outputs],
        made.noise[np.ix_(outputs, outputs)],
    )
    table = Observations.from_table(made.X[sites], made.Y[sites][:, outputs])
    reordered = directions.reorder(made.kernels, latents, outputs)
    other = replace(posterior, observations=table, model=model, directions=reordered)
    x = rng.uniform(size=(4, 2))
    first, second = posterior.predict(x), other.predict(x)
    assert_allclose(second.mean, first.mean[..., outputs], rtol=1e-8)
    assert_allclose(second.cov, first.cov[..., outputs[:, None], outputs], rtol=1e-6)


def test_torch_and_numpy_agree(rng):
    made = world(rng, correlated=True, missing=0.3)
    for conditioning in ("all", 4):
        posterior = lmc_posterior(
            made,
            conditioning=conditioning,
            directions=some_directions(rng, made.model, means=True),
        )
        x = rng.uniform(size=(4, 2))
        numpy, torch = (
            posterior.predict(x, execution=Execution(device=device)) for device in ("cpu", "torch")
        )
        assert_allclose(torch.cov, numpy.cov, rtol=1e-8, atol=1e-9)


def test_a_constant_output_has_no_additional_uncertainty(rng):
    made = world(rng, missing=0.2)
    Y, W = made.Y.copy(), made.W.copy()
    Y[:, 1], W[:, 1] = 0.0, 0.0
    made = replace(made, Y=Y, W=W)
    x = rng.uniform(size=(4, 2))
    for conditioning in ("all", 4):
        fixed = lmc_posterior(made, conditioning=conditioning)
        posterior = replace(fixed, directions=some_directions(rng, made.model, means=True))
        difference = posterior.predict(x).cov - fixed.predict(x).cov
        assert_array_equal(difference[..., 1], 0.0)
        assert (np.einsum("mdd->md", difference[0])[:, [0, 2]] > 0).all()


def test_left_out_readings_are_predicted_with_uncertain_parameters(rng):
    """A site's own readings are not used for its derivatives."""
    made = world(rng, missing=0.2)
    fixed = lmc_posterior(made)
    directions = some_directions(rng, made.model, means=True)
    sets = np.tile(np.arange(12), (3, 1))
    found = replace(fixed, directions=directions).leave_out(sets)
    plain = fixed.leave_out(sets)
    for i in (0, 5):
        others = made.observations.at(np.setdiff1d(np.arange(12), [i]))
        slopes = mean_derivatives(others, made.X[[i]], made.model, directions)[0]
        cov = condition(others, made.X[[i]], made.model).cov[0, 0]
        share = np.diagonal(cov) / np.diagonal(cov + made.noise)
        scale = np.sqrt(1 + (directions.inflation - 1) * share)
        both = np.outer(*[~np.isnan(made.Y[i])] * 2)
        added = np.where(both, slopes @ slopes.T + cov * (np.outer(scale, scale) - 1), 0.0)
        assert_allclose(found.cov[0, i] - plain.cov[0, i], added, rtol=1e-6, atol=1e-10)


def test_outputs_without_gain_have_the_uncertainty_of_their_own_model(rng):
    made = world(rng, missing=0.2)
    fixed = lmc_posterior(made)
    own = fixed.independent
    posterior = replace(
        fixed,
        directions=some_directions(rng, made.model),
        independent_directions=some_directions(rng, own),
    )
    alone = posterior.without_transfer()
    assert alone.directions is posterior.independent_directions
    assert fixed.without_transfer().directions is None
    weights = tuple(CandidateWeights.of_one(name) for name in ("joint", "own", "joint"))
    stacked = StackedPosterior.extending(posterior, Stack(len(made.X), weights, fixed=weights))
    x = rng.uniform(size=(4, 2))
    found = stacked.predict(x).moments()[1]
    assert_allclose(found[:, 1, 1], alone.predict(x).cov[0, :, 1, 1], rtol=1e-12)
    assert_allclose(found[:, 0, 0], posterior.predict(x).cov[0, :, 0, 0], rtol=1e-12)
