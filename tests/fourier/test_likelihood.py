"""The likelihood in Fourier features against the dense one with the same covariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.arrays import NumericalError
from emgpr.covariance import log_likelihood
from emgpr.fourier.grid import FourierSums
from emgpr.fourier.likelihood import FourierLikelihood, pair_index
from emgpr.fourier.resolution import FeatureChoice, Resolution
from emgpr.kernels import kernel_matrices
from emgpr.prediction import LMCModel, condition
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import world

from .small_features import covariances, small_features

KERNELS = RBF(0.4), Matern(0.5, nu=1.5), RBF(0.7)


def likelihood_of(made, features):
    sums = FourierSums.from_observations(features.grid, made.observed)
    return FourierLikelihood(sums, features, made.Y.shape[1])


@pytest.mark.parametrize(
    ("P", "Q", "D", "k", "missing"),
    [
        (1, 1, 1, 1, 0.0),
        (2, 2, 3, 1, 0.0),  # fewer weight vectors than outputs
        (2, 2, 3, 1, 0.3),
        (2, 3, 3, 2, 0.3),  # more
        (1, 3, 2, 1, 0.0),
        (3, 2, 2, 2, 0.3),
    ],
)
def test_it_is_the_dense_likelihood_with_the_covariances_of_the_features(P, Q, D, k, missing, rng):
    made = world(rng, N=25, P=P, Q=Q, D=D, k=k, missing=missing, correlated=True)
    kernels = KERNELS[:Q]
    features = small_features(P, Q)
    dense = log_likelihood(
        made.observed, made.W, made.noise, covariances(features, kernels, made.X)
    )
    likelihood, s = likelihood_of(made, features), features.variances(kernels)
    found = likelihood.log_likelihood(made.W, made.noise, s)
    assert_allclose(found.value, dense.value, rtol=1e-10)
    for name in ("of_weights", "of_noise"):
        expected = getattr(dense, name)
        assert_allclose(getattr(found, name), expected, atol=1e-8 * np.abs(expected).max())
    assert_allclose(likelihood.posterior(made.W, made.noise, s).log_likelihood, dense.value)


@pytest.mark.parametrize(("Q", "k"), [(2, 1), (3, 2)])
def test_gradients_are_the_derivatives(Q, k, rng):
    made = world(rng, N=30, Q=Q, D=2, k=k, missing=0.3, correlated=True)
    features = small_features(2, Q, max_harmonic=2)
    likelihood = likelihood_of(made, features)
    s = features.variances([RBF(0.3), RBF(0.4), Matern(0.5, nu=2.5)][:Q])
    s = np.maximum(s, 1e-12)  # where a latent has no frequency, its variance would stay zero
    found = likelihood.log_likelihood(made.W, made.noise, s)

    def of_weights(W):
        return likelihood.log_likelihood(W, made.noise, s).value

    def of_noise(noise):
        return likelihood.log_likelihood(made.W, 0.5 * (noise + noise.T), s).value

    def of_log_variances(log_s):
        return likelihood.log_likelihood(made.W, made.noise, np.exp(log_s)).value

    assert_is_the_gradient(found.of_weights, of_weights, made.W)
    assert_is_the_gradient(found.of_noise, of_noise, made.noise)
    assert_is_the_gradient(found.of_log_variances, of_log_variances, np.log(s))


def test_with_enough_features_the_posterior_is_that_of_the_dense_model(rng):
    made = world(rng, N=40, Q=2, D=3, k=1, missing=0.3, correlated=True)
    kernels = [RBF(0.3), RBF(0.5)]
    fine = FeatureChoice(kernels, np.ones(2), Resolution(1e-6, 1e-7, 10**4, 10**4))
    features = fine.for_region(np.full(2, -0.1), np.full(2, 1.1))
    s = features.variances(kernels)
    found = likelihood_of(made, features).posterior(made.W, made.noise, s)
    x = rng.uniform(size=(20, 2))
    model = LMCModel(tuple(kernels), made.W[None], made.noise)
    dense = condition(made.observed, x, model)
    sd = np.sqrt(np.einsum("mdd->md", dense.cov[0]))
    on_grid, cov_on_grid = found.on_grid()
    mean = features.grid.evaluate(x, on_grid)
    cov = features.grid.doubled.evaluate(x, cov_on_grid)[:, pair_index(3)]
    assert (np.abs(mean - dense.mean[0]) < 0.01 * sd).all()
    assert_allclose(cov, dense.cov[0], atol=1e-3 * (sd**2).max())
    K = kernel_matrices(kernels, made.X)
    exact = log_likelihood(made.observed, made.W, made.noise, K).value
    assert_allclose(found.log_likelihood, exact, atol=0.01)


def test_samples_have_the_mean_and_the_covariance_of_the_posterior(rng):
    """Of 4000 samples, within 5 standard errors of some 1,400 numbers: one false alarm in 10³."""
    made = world(rng, N=20, P=1, Q=2, D=2, k=1, missing=0.2, correlated=True)
    features = small_features(1, 2, max_harmonic=6)
    s = features.variances([RBF(0.2), RBF(0.4)])
    found = likelihood_of(made, features).posterior(made.W, made.noise, s)
    samples = found.sample(4000, rng).reshape(4000, -1)
    V = np.einsum("jda,ajbi,ieb->djei", found.A, found.B.inverse(), found.A)
    V = V.reshape(samples.shape[1], -1)
    sd = np.sqrt(np.diag(V))
    assert (np.abs(samples.mean(0) - found.mean.ravel()) < 5 * sd / np.sqrt(4000) + 1e-12).all()
    error = np.sqrt((np.outer(sd, sd) ** 2 + V**2) / 4000)
    assert (np.abs(np.cov(samples.T) - V) < 5 * error + 1e-12).all()


def test_coefficients_without_information_are_left_out_of_the_factor(rng):
    """Four latents with the same weights are one in four parts."""
    made = world(rng, N=30, Q=1, D=3, k=1)
    features = small_features(2, 1)
    likelihood = likelihood_of(made, features)
    s = features.variances([RBF(0.4)])
    one = likelihood.posterior(made.W, made.noise, s)
    four = likelihood.posterior(np.tile(made.W, (4, 1, 1)), made.noise, np.tile(s / 4, (4, 1)))
    assert len(four.B.kept) <= 2 * len(features.m) < four.B.r * four.B.J
    assert_allclose(four.mean, one.mean, atol=1e-9)
    assert_allclose(four.log_likelihood, one.log_likelihood)


def test_where_the_precision_has_no_factor_the_likelihood_is_minus_infinity(rng):
    made = world(rng, N=10, Q=1, D=1, k=1)
    features = small_features(2, 1)
    likelihood, s = likelihood_of(made, features), features.variances([RBF(0.4)])
    impossible = -0.01 * np.eye(1)
    found = likelihood.log_likelihood(made.W, impossible, s)
    assert found.value == -np.inf
    assert not found.of_weights.any()
    assert not found.of_noise.any()
    with pytest.raises(NumericalError, match=r"precision of the \d+ coefficients"):
        likelihood.posterior(made.W, impossible, s)
