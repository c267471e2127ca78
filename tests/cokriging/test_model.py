"""Ordinary co-kriging as a model with unknown means: it solves the textbook's kriging systems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.cokriging import MAX_MEAN_VARIANCE, VariogramModel
from emgpr.kernels import Spherical
from emgpr.observations import Observations
from emgpr.prediction import LMCPosterior
from emgpr.prediction.joint_samples import root

D = 3
DIFFUSE = 1e4  # the default of CoKriging


def a_model(rng) -> VariogramModel:
    W = rng.normal(size=(2, D, D))
    A = rng.normal(size=(D, D))
    return VariogramModel((Spherical(0.3), Matern(0.8, nu=0.5)), W, 0.1 * (A @ A.T + np.eye(D)))


def a_table(rng, N=25, missing=0.3) -> Observations:
    """Readings with means far from zero."""
    Y = rng.normal(size=(N, D)) + np.array([5.0, -3.0, 0.0])
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return Observations.from_table(rng.uniform(size=(N, 2)), Y)


def posterior(table, model, variance, conditioning="all"):
    joint, alone = (m.with_unknown_means(np.full(D, variance)) for m in (model, model.direct()))
    sites = (np.arange(table.n_sites),)
    return LMCPosterior(table, joint, sites, conditioning, independent=alone)


def covariance(model, x, d, z, e):
    return sum(
        B[np.ix_(d, e)] * kernel(x, z) for B, kernel in zip(model.sills, model.kernels, strict=True)
    )


def kriging_system(table, model, x, *, ordinary):
    """Means and covariances of the signals at x from the kriging system of a textbook.

    For ordinary co-kriging, the weights of the readings of output e in the prediction of output d
    sum to 1 if e = d, and to 0 otherwise; each condition has a Lagrange multiplier.
    """
    d, site = np.nonzero(table.observed)
    y, n, outputs = table.y[d, site], len(d), np.arange(D)
    K = covariance(model, table.x[site], d, table.x[site], d)
    K += np.equal.outer(site, site) * model.nugget[np.ix_(d, d)]
    F = np.equal.outer(d, outputs).astype(float)
    if ordinary:
        K = np.block([[K, F], [F.T, np.zeros((D, D))]])
    means, covs = [], []
    for location in x:
        there = np.tile(location, (D, 1))
        k = covariance(model, table.x[site], d, there, outputs)
        right = np.vstack([k, np.eye(D)]) if ordinary else k
        solved = np.linalg.solve(K, right)
        means.append(solved[:n].T @ y)
        covs.append(covariance(model, there, outputs, there, outputs) - solved.T @ right)
    return np.array(means), np.array(covs)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_a_diffuse_prior_of_the_means_is_ordinary_cokriging(rng, missing):
    model, table, x = a_model(rng), a_table(rng, missing=missing), rng.uniform(size=(6, 2))
    mean, cov = kriging_system(table, model, x, ordinary=True)
    found = posterior(table, model, DIFFUSE).predict(x, include_noise=False)
    assert_allclose(found.mean[0], mean, atol=2e-3)
    assert_allclose(found.cov[0], cov, atol=2e-3)
    closer = posterior(table, model, MAX_MEAN_VARIANCE).predict(x, include_noise=False)
    assert_allclose(closer.mean[0], mean, atol=2e-5)
    assert_allclose(closer.cov[0], cov, atol=2e-5)


def test_the_error_is_inversely_proportional_to_the_prior_variance(rng):
    model, table, x = a_model(rng), a_table(rng), rng.uniform(size=(6, 2))
    mean, _ = kriging_system(table, model, x, ordinary=True)
    errors = [
        np.abs(posterior(table, model, v).predict(x, include_noise=False).mean[0] - mean).max()
        for v in (1e3, 1e4, 1e5)
    ]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.02)


def test_known_means_are_simple_cokriging(rng):
    model, table, x = a_model(rng), a_table(rng), rng.uniform(size=(6, 2))
    mean, cov = kriging_system(table, model, x, ordinary=False)
    found = posterior(table, model, 0.0).predict(x, include_noise=False)
    assert_allclose(found.mean[0], mean, atol=1e-10)
    assert_allclose(found.cov[0], cov, atol=1e-10)
    nearly = posterior(table, model, 1e-9).predict(x, include_noise=False)
    assert_allclose(nearly.mean[0], mean, atol=1e-6)


def test_a_constant_added_to_an_output_is_added_to_its_predictions(rng):
    """Which defines an unknown mean; without it, predictions far away return to zero."""
    model, table, x = a_model(rng), a_table(rng), rng.uniform(size=(4, 2)) + 0.5
    moved = Observations(table.x, table.y + 7.0 * table.observed, table.observed)
    before, after = (posterior(t, model, DIFFUSE).predict(x).mean for t in (table, moved))
    assert_allclose(after - before, 7.0, rtol=1e-3)


def test_far_from_all_readings_the_mean_is_predicted(rng):
    model, table = a_model(rng), a_table(rng)
    far = posterior(table, model, DIFFUSE).predict(np.array([[99.0, 99.0]]), include_noise=False)
    mean, cov = kriging_system(table, model, np.array([[99.0, 99.0]]), ordinary=True)
    assert_allclose(far.mean[0], mean, atol=2e-3)
    assert_allclose(far.cov[0], cov, atol=2e-3)
    # Its variance is that of a signal, plus that of the estimated mean.
    assert (np.einsum("mdd->d", far.cov[0]) > np.einsum("qdd->d", model.sills)).all()


def test_a_neighbourhood_has_a_mean_of_its_own(rng):
    """From the nearest sites, as in gstat with nmax: the kriging system of these sites alone."""
    model, table = a_model(rng), a_table(rng, missing=0.0)
    x = rng.uniform(size=(4, 2))
    found = posterior(table, model, DIFFUSE, 6).predict(x, include_noise=False)
    for i, location in enumerate(x):
        near = np.argsort(np.linalg.norm(table.x - location, axis=1))[:6]
        mean, cov = kriging_system(table.at(near), model, location[None], ordinary=True)
        assert_allclose(found.mean[0, i], mean[0], atol=0.02)
        assert_allclose(found.cov[0, i], cov[0], atol=0.02)


def test_left_out_sites_are_kriged_from_all_others(rng):
    model, table = a_model(rng), a_table(rng)
    sets = np.tile(np.arange(table.n_sites), (D, 1))
    found = posterior(table, model, DIFFUSE).leave_out(sets)
    for i in (0, 7):
        others = np.delete(np.arange(table.n_sites), i)
        mean, cov = kriging_system(table.at(others), model, table.x[i : i + 1], ordinary=True)
        read = np.flatnonzero(table.observed[:, i])
        assert_allclose(found.mean[0, i, read], mean[0, read], atol=5e-3)
        expected = (cov[0] + model.nugget)[np.ix_(read, read)]
        assert_allclose(found.cov[0, i][np.ix_(read, read)], expected, atol=5e-3)


def test_samples_share_the_uncertain_mean(rng):
    """The variance of the average over far locations is that of the mean; five standard errors."""
    model, table = a_model(rng), a_table(rng)
    x = np.column_stack([50.0 + 9.0 * np.arange(40), np.zeros(40)])
    given = posterior(table, model, DIFFUSE)
    drawn = given.sample(x, 2000, rng, include_noise=False).mean(axis=1)
    _, cov = kriging_system(table, model, x[:1], ordinary=True)
    of_mean = cov[0] - model.sills.sum(axis=0)
    expected = np.diag(of_mean + model.sills.sum(axis=0) / 40)
    error = expected * np.sqrt(2 / 2000)
    assert np.all(np.abs(drawn.var(axis=0) - expected) < 5 * error)


def test_without_transfer_each_output_is_kriged_alone(rng):
    model, table, x = a_model(rng), a_table(rng), rng.uniform(size=(4, 2))
    alone = posterior(table, model, DIFFUSE).without_transfer().predict(x, include_noise=False)
    mean, _ = kriging_system(table, model.direct(), x, ordinary=True)
    assert_allclose(alone.mean[0], mean, atol=5e-3)
    one = Observations(table.x, table.y, table.observed & (np.arange(D)[:, None] == 1))
    expected, _ = kriging_system_of_one(one, model, x, 1)
    assert_allclose(alone.mean[0, :, 1], expected, atol=5e-3)


def kriging_system_of_one(table, model, x, d):
    """Ordinary kriging of one output with its direct variogram."""
    sites = np.flatnonzero(table.observed[d])
    z, y = table.x[sites], table.y[d, sites]

    def k(a, b):
        return sum(
            B[d, d] * kernel(a, b) for B, kernel in zip(model.sills, model.kernels, strict=True)
        )

    K = k(z, z) + model.nugget[d, d] * np.eye(len(z))
    system = np.block([[K, np.ones((len(z), 1))], [np.ones((1, len(z))), np.zeros((1, 1))]])
    right = np.vstack([k(z, x), np.ones((1, len(x)))])
    solved = np.linalg.solve(system, right)
    return solved[: len(z)].T @ y, solved


def test_weights_are_roots_of_sills(rng):
    W = rng.normal(size=(2, D, D))
    B = W @ np.swapaxes(W, 1, 2)
    R = root(B)
    assert_allclose(R @ np.swapaxes(R, 1, 2), B)
    model = VariogramModel((RBF(), RBF()), R, np.eye(D))
    assert_allclose(model.sills, B)
    assert_allclose(model.direct().sills, B * np.eye(D))
    with_means = model.with_unknown_means(np.array([0.0, 1.0, 4.0]))
    assert isinstance(with_means.kernels[-1], ConstantKernel)
    assert_allclose(with_means.B[0, -1], np.diag([0.0, 1.0, 4.0]))
