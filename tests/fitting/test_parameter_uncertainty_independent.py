"""The uncertain parameters of independent outputs, computed for each output by itself."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.fitting.parameter_uncertainty import (
    DIRECTIONS_PER_OUTPUT,
    average_covariance,
    independent_directions,
    mean_covariance,
    output_information,
)
from emgpr.noise import NoiseParameters
from emgpr.prediction import LMCModel, LMCPosterior, principal_directions
from tests.simulated import agrees, lmc_posterior, world

pytestmark = pytest.mark.slow


def separate_outputs(rng, *, D=4, constant=(), silent=(), kernels=None, missing=0.2):
    """A table, and a model with a latent process for each output."""
    made = world(rng, N=14, D=D, Q=1, missing=missing)
    Y = made.Y * np.linspace(0.5, 1.5, D)
    for d in (*constant, *silent):
        Y[:, d] = np.where(np.isnan(Y[:, d]), np.nan, 0.0)
    weights = np.diag(np.linspace(1.0, 0.7, D))
    weights[silent, silent] = 0.0
    kernels = kernels or [RBF(0.3), Matern(0.5, nu=1.5), RBF(1.0), Matern(0.2, nu=0.5)]
    model = LMCModel(
        tuple(kernels[d % len(kernels)] for d in range(D)),
        weights[None, :, :, None],
        np.diag(np.linspace(0.05, 0.3, D)),
    )
    return made.table(Y).observations, model


def dense_directions(observations, model, *, known_means=False):
    """The directions from one matrix of information about the parameters of all outputs."""
    (W,), D = model.weights, len(model.noise)
    n_dims = [kernel.n_dims for kernel in model.kernels]
    t, ends = sum(n_dims), np.cumsum(n_dims)
    size = t + D + W.size
    information, free = np.zeros((size, size)), np.ones(size, bool)
    free[t + D :] = np.eye(D).ravel()
    for d in range(D):
        own = output_information(observations.output(d), model.separate_output(d))
        at = np.r_[ends[d] - n_dims[d] : ends[d], t + d, t + D + d * D + d]
        information[np.ix_(at, at)] = own
    return principal_directions(
        information, model, NoiseParameters(D, correlated=False), observations, free=free,
        max_directions=DIRECTIONS_PER_OUTPUT * D,
        mean_covariance=None if known_means else mean_covariance(observations, model),
    )  # fmt: skip


def covariance(directions, d):
    """The covariance of the parameters of output d."""
    n_dims = directions.theta.shape[1] // directions.mean.shape[1]
    parts = [
        directions.theta[:, n_dims * d : n_dims * (d + 1)], directions.W[:, d, d],
        directions.noise[:, d, d, None], directions.mean[:, d, None],
    ]  # fmt: skip
    changes = np.concatenate(parts, axis=1)
    return changes.T @ changes


def without_others(model, outputs):
    """The model of these outputs only."""
    at = np.ix_(outputs, outputs)
    kernels = tuple(model.kernels[d] for d in outputs)
    return LMCModel(kernels, model.weights[:, *at], model.noise[at])


@pytest.mark.parametrize("known_means", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"missing": 0.0},
        {"constant": (2,)},
        {"silent": (1,)},
        {"kernels": [RBF([0.3, 0.6]), Matern([0.5, 2.0], nu=1.5)]},  # more than four directions
        {"D": 1},
    ],
)
def test_the_directions_are_those_of_the_parameters_of_all_outputs_together(
    rng, settings, known_means
):
    observations, model = separate_outputs(rng, **settings)
    found = independent_directions(observations, model, known_means=known_means)
    # Which directions the dense formula finds for readings without variation is up to rounding.
    varies = np.flatnonzero(~observations.constant)
    table, part = observations.select_outputs(varies), without_others(model, varies)
    expected = dense_directions(table, part, known_means=known_means)
    for i, d in enumerate(varies):
        assert_allclose(covariance(found, d), covariance(expected, i), rtol=1e-8, atol=1e-10)
    every = dense_directions(observations, model, known_means=known_means)
    assert_allclose(found.inflation, every.inflation, rtol=1e-10)
    assert not found.mean[:, observations.constant].any()
    x = rng.uniform(size=(5, 2))
    cov, dense = (
        LMCPosterior(*given, (np.arange(14),), "all", directions=directions).predict(x).cov
        for given, directions in (((observations, model), found), ((table, part), expected))
    )
    assert_allclose(cov[..., varies[:, None], varies], dense, rtol=1e-10, atol=1e-12)


def test_only_the_weights_of_own_processes_are_uncertain(rng):
    observations, model = separate_outputs(rng)
    directions = independent_directions(observations, model)
    assert directions.W.any()
    assert not directions.W[:, ~np.eye(4, dtype=bool)].any()
    assert not directions.noise[:, ~np.eye(4, dtype=bool)].any()


def test_the_number_of_directions_does_not_grow_with_the_outputs(rng):
    observations, model = separate_outputs(rng, D=12)
    assert len(independent_directions(observations, model)) <= DIRECTIONS_PER_OUTPUT


def test_without_a_signal_or_uncertain_means_there_are_no_directions(rng):
    observations, model = separate_outputs(rng, D=2, silent=(0, 1))
    assert len(independent_directions(observations, model, known_means=True)) == 0


def test_samples_of_independent_outputs_are_independent(rng):
    """Outputs share the numbers of their directions, not the steps along them."""
    observations, model = separate_outputs(rng, D=2, missing=0.0)
    directions = independent_directions(observations, model)
    large = replace(directions, theta=3 * directions.theta, mean=3 * directions.mean)
    posterior = LMCPosterior(observations, model, (np.arange(14),), "all", directions=large)
    x = rng.uniform(size=(2, 2))
    drawn = posterior.sample(x, 4000, rng, include_noise=False)
    predicted = posterior.predict(x, include_noise=False)
    assert_allclose(predicted.cov[0, :, 0, 1], 0.0, atol=1e-15)
    for i in range(2):
        assert agrees(drawn[:, i], predicted.mean[0, i], predicted.cov[0, i])


def test_the_uncertainty_of_the_means_is_that_of_each_output_by_itself(rng):
    observations, model = separate_outputs(rng, constant=(2,))
    parts = [
        mean_covariance(
            observations.select_outputs(np.array([d])), model.separate_output(d), np.arange(14)
        )
        for d in range(4)
    ]
    assert_allclose(block_diag(*parts), mean_covariance(observations, model), rtol=1e-10)


def test_the_average_is_of_the_chosen_sites(rng):
    made = world(rng, missing=0.2)
    own = lmc_posterior(made).independent
    some = np.arange(6)
    found = average_covariance(made.observations, own, some)
    assert not np.allclose(found, average_covariance(made.observations, own))
    every = average_covariance(made.observations, own, np.arange(12))
    assert_allclose(every, average_covariance(made.observations, own))
