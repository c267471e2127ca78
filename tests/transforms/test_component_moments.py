"""Means and covariances of transformed Gaussians, compared with numerical integration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.transforms.builtin import Identity, Log, NormalScore, YeoJohnson
from emgpr.transforms.component_moments import component_moments

READINGS = np.random.default_rng(0).gamma(2.0, size=80)
TRANSFORMS = {
    "linear": (Identity(), Identity()),
    "log and linear": (Log(), Identity()),
    "log": (Log(), Log()),
    "Yeo-Johnson and log": (YeoJohnson.fit(READINGS), Log()),
    "normal score and Yeo-Johnson": (NormalScore.fit(READINGS), YeoJohnson.fit(READINGS)),
}
NODES = np.linspace(-9, 9, 1201)
DENSITY = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


def integrated(transforms, m, cov):
    """Mean and covariance of two transformed outputs by a rule on a fine grid."""
    s = np.sqrt(np.diag(cov))
    rho = cov[0, 1] / s.prod()
    first = transforms[0].inverse(m[0] + s[0] * NODES)[:, None]
    u = rho * NODES[:, None] + np.sqrt(1 - rho**2) * NODES
    second = transforms[1].inverse((m[1] + s[1] * u).ravel()).reshape(u.shape)
    P = DENSITY[:, None] * DENSITY
    means = np.array([(P * first).sum(), (P * second).sum()])
    a, b = first - means[0], second - means[1]
    return means, np.array(
        [[(P * a * a).sum(), (P * a * b).sum()], [(P * a * b).sum(), (P * b * b).sum()]]
    )


@pytest.mark.parametrize("transforms", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("rho", [0.0, 0.6, -0.8])
def test_moments_are_integrals(transforms, rho):
    m = np.array([[[0.2, -0.3], [1.0, 0.1]], [[0.4, 0.4], [0.0, 0.7]]])
    s = np.array([[[0.5, 0.3], [0.8, 0.6]], [[0.2, 0.9], [0.4, 0.4]]])
    cov = s[..., :, None] * s[..., None, :] * np.where(np.eye(2, dtype=bool), 1.0, rho)
    means, covs = component_moments(transforms, m, cov)
    for c, i in np.ndindex(2, 2):
        mean, expected = integrated(transforms, m[c, i], cov[c, i])
        size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert_allclose(means[c, i], mean, rtol=1e-4, atol=1e-9)
        assert_allclose(covs[c, i] / size, expected / size, atol=2e-3)


def test_linear_outputs_keep_their_moments(rng):
    root = rng.normal(size=(3, 5, 4, 4))
    m, cov = rng.normal(size=(3, 5, 4)), root @ np.swapaxes(root, -1, -2)
    means, covs = component_moments([Identity()] * 4, m, cov)
    assert_allclose(means, m, rtol=1e-12)
    assert_allclose(covs, cov, rtol=1e-9, atol=1e-12)


def test_log_normal_outputs_have_a_closed_form(rng):
    root = 0.4 * rng.normal(size=(2, 3, 3, 3))
    m, cov = rng.normal(size=(2, 3, 3)), root @ np.swapaxes(root, -1, -2)
    means, covs = component_moments([Log()] * 3, m, cov)
    expected = np.exp(m + np.einsum("cmdd->cmd", cov) / 2)
    assert_allclose(means, expected, rtol=1e-9)
    assert_allclose(
        covs, expected[..., :, None] * expected[..., None, :] * np.expm1(cov), rtol=1e-7
    )


def test_outputs_without_variance_have_no_covariance():
    cov = np.array([[[[0.0, 0.0], [0.0, 0.5]]]])
    means, covs = component_moments([Log(), Identity()], np.zeros((1, 1, 2)), cov)
    assert_allclose(means[0, 0], [1.0, 0.0], atol=1e-12)
    assert_allclose(covs[0, 0], [[0.0, 0.0], [0.0, 0.5]], atol=1e-12)


def test_covariances_are_positive_semidefinite_and_finite_for_large_values():
    cov = np.full((1, 1, 2, 2), 1e4)
    covs = component_moments([Log(), Log()], np.full((1, 1, 2), 300.0), cov)[1]
    assert np.isfinite(covs).all()
