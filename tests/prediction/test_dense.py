"""The dense posterior: it is that of the linear model where both apply, and plain inversion."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.arrays import NumericalError
from emgpr.kernels import kernel_matrix
from emgpr.observations import Observations
from emgpr.prediction import (
    DensePosterior,
    LMCModel,
    LMCPosterior,
    Posterior,
    ReadingLocations,
)
from tests.simulated import agrees, lmc_posterior, world


@dataclass(frozen=True)
class LMCCovariance:
    """The covariance function of a linear model of coregionalisation, written out."""

    model: LMCModel

    @property
    def n_outputs(self) -> int:
        return len(self.model.noise)

    def between(self, a, b):
        pairs = np.ix_(a.output, b.output)
        return sum(
            B[pairs] * kernel_matrix(kernel, a.x, b.x)
            for B, kernel in zip(self.model.B[0], self.model.kernels, strict=True)
        )

    def at_each(self, x):
        return self.model.prior_covariance(x)[0]


def dense(made) -> DensePosterior:
    own = lmc_posterior(made).independent
    return DensePosterior(
        made.observations, LMCCovariance(made.model), np.diagonal(made.noise), own
    )


@pytest.fixture
def made(rng):
    return world(rng, N=12, missing=0.3)


def same(found, expected):
    assert_allclose(found.mean, expected.mean, atol=1e-10)
    assert_allclose(found.cov, expected.cov, atol=1e-10)


def test_it_is_a_posterior(made):
    posterior = dense(made)
    assert isinstance(posterior, Posterior)
    assert (posterior.n_outputs, posterior.n_components, posterior.n_sites) == (3, 1, 12)
    assert_allclose(posterior.extent, made.X)
    assert_allclose(posterior.reference_values, made.Y)


@pytest.mark.parametrize("include_noise", [True, False])
def test_predictions_are_those_of_the_linear_model(rng, made, include_noise):
    x = rng.uniform(size=(5, 2))
    found = dense(made).predict(x, include_noise=include_noise)
    same(found, lmc_posterior(made).predict(x, include_noise=include_noise))


def test_locations_in_several_blocks_are_predicted_alike(rng, made, monkeypatch):
    from emgpr.prediction import dense as module

    x = rng.uniform(size=(5, 2))
    whole = dense(made).predict(x)
    monkeypatch.setattr(module, "chunk_bytes", lambda device: 1.0)
    same(dense(made).predict(x), whole)


def test_means_need_no_covariances(rng, made):
    x = rng.uniform(size=(5, 2))
    found = dense(made).predict(x, with_cov=False)
    assert_allclose(found.mean, dense(made).predict(x).mean)


def test_observed_outputs_are_those_of_the_linear_model(rng, made):
    """New readings, and rows that repeat those of a site, which are not counted twice."""
    x = np.concatenate([rng.uniform(size=(4, 2)), made.X[:3]])
    observed = rng.normal(size=(7, 3))
    observed[rng.uniform(size=(7, 3)) < 0.4] = np.nan
    observed[4:] = made.Y[:3]
    found = dense(made).predict(x, observed)
    same(found, lmc_posterior(made).predict(x, observed))
    repeated = dense(made).predict(x[4:], made.Y[:3])
    same(repeated, dense(made).predict(x[4:]))


@pytest.mark.parametrize("by", ["site", "output", "groups"])
def test_left_out_readings_are_those_of_the_linear_model(made, by):
    N = len(made.X)
    sets = {
        "site": np.tile(np.arange(N), (3, 1)),
        "output": np.arange(3 * N).reshape(3, N),
        "groups": np.tile(np.arange(N) % 4, (3, 1)),
    }[by]
    found = dense(made).leave_out(sets)
    same(found, lmc_posterior(made).leave_out(sets))
    some = np.array([7, 2])
    part = dense(made).leave_out(sets, some)
    assert_allclose(part.mean, found.mean[:, some])
    assert_allclose(part.cov, found.cov[:, some])


def test_a_left_out_site_is_predicted_as_if_it_had_not_been_measured(made):
    sets = np.tile(np.arange(len(made.X)), (3, 1))
    found = dense(made).leave_out(sets)
    Y = made.Y.copy()
    Y[5] = np.nan
    without = dense(made.table(Y)).predict(made.X[5:6])
    read = ~np.isnan(made.Y[5])
    assert_allclose(found.mean[0, 5, read], without.mean[0, 0, read], atol=1e-10)


@pytest.mark.parametrize("include_noise", [True, False])
def test_samples_have_the_joint_distribution(rng, made, include_noise):
    """Five standard errors for each of 42 moments: about one false alarm in 10⁵ seeds."""
    x = rng.uniform(size=(2, 2))
    posterior = dense(made)
    drawn = posterior.sample(x, 4000, rng, include_noise=include_noise)
    assert drawn.shape == (4000, 2, 3)
    new = ReadingLocations.all_outputs(x, 3)
    readings, noise = posterior.readings, np.diagonal(made.noise)
    K = posterior.covariance.between(readings, readings) + np.diag(noise[readings.output])
    cross = posterior.covariance.between(readings, new)
    y = made.Y.T[~np.isnan(made.Y.T)]
    mean = cross.T @ np.linalg.solve(K, y)
    cov = posterior.covariance.between(new, new) - cross.T @ np.linalg.solve(K, cross)
    cov += include_noise * np.diag(noise[new.output])
    assert agrees(np.swapaxes(drawn, 1, 2).reshape(4000, 6), mean, cov)


def test_a_joint_sample_that_is_too_large_is_refused(rng, made):
    with pytest.raises(ValueError, match="Sample fewer locations"):
        dense(made).sample(np.zeros((2001, 2)), 1, rng)


def test_without_transfer_the_other_outputs_do_not_matter(made):
    posterior = dense(made)
    alone = posterior.without_transfer()
    assert isinstance(alone, LMCPosterior)
    Y = made.Y.copy()
    Y[:, 1:] += 1.0
    changed = dense(made.table(Y)).without_transfer()
    x = made.X[:2] + 0.01
    assert_allclose(alone.predict(x).mean[..., 0], changed.predict(x).mean[..., 0])


def test_a_worker_gets_no_factors(made):
    posterior = dense(made)
    _ = posterior.gamma
    assert not {"factor", "gamma"} & vars(posterior.for_worker()).keys()
    same(posterior.for_worker().predict(made.X), posterior.predict(made.X))


def test_a_covariance_that_is_not_definite_is_an_error(made):
    posterior = replace(dense(made), noise=np.full(3, -9.0))
    with pytest.raises(NumericalError, match=r"covariance of the \d+ readings"):
        posterior.predict(made.X)


def test_readings_are_listed_by_output():
    table = Observations.from_table(np.array([[0.0], [1.0]]), np.array([[np.nan, 1.0], [2.0, 3.0]]))
    readings = ReadingLocations.measured(table)
    assert readings.output.tolist() == [0, 1, 1]
    assert readings.x.ravel().tolist() == [1.0, 0.0, 1.0]
