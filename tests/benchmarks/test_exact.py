"""The comparison of Vecchia's likelihood with the exact one."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks import exact
from emgpr import EMGPR

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def table(N):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    signal = np.sin(5 * X[:, :1]) + X[:, 1:]
    return X, np.hstack([signal, -signal]) + 0.2 * rng.normal(size=(N, 2))


def test_the_exact_log_likelihood_is_the_density_of_the_readings():
    X, Y = table(15)
    model = EMGPR(transfer="full", output_transform=None, output_bounds=None, random_state=0)
    model.fit(X, Y)
    lmc, observations = model.posterior_.model, model.posterior_.observations
    cov = np.kron(lmc.noise * np.eye(2) if lmc.noise.ndim == 1 else lmc.noise, np.eye(15))
    for kernel, w in zip(lmc.kernels, lmc.weights[0], strict=True):
        B = np.outer(w, w) if w.ndim == 1 else w @ w.T
        cov = cov + np.kron(B, kernel(observations.x))
    expected = multivariate_normal(cov=cov).logpdf(observations.y.ravel())
    assert exact.exact_log_likelihood(model) == pytest.approx(expected, rel=1e-8)


def test_the_error_is_that_of_the_left_out_sites_in_units_of_the_variance():
    X, Y = table(60)
    left_out = np.arange(60) % 2 == 0
    difference, ours, dense = exact.compare(X, Y, left_out, "auto")
    assert ours.shape == dense.shape == (30,)
    assert ours.mean() < 0.3  # the noise is a tenth of the variance
    assert dense.mean() < 0.3
    assert abs(difference) < 0.05


def test_every_site_is_left_out_once():
    X, Y = table(40)
    differences, ours, dense, paired = exact.run(X, Y, 2, "auto")
    assert len(differences) == 2
    assert paired.mean == pytest.approx(ours - dense)
