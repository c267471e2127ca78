"""Step 1 by GPyTorch: trained models, read without importing torch, and its own numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import smooth_table
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from emgpr import EMGPR, IndependentGP
from emgpr.latents import Borrowed
from emgpr.latents.translated import translated


def named(name, **held):
    """An object of a class of this name, as GPyTorch's are known here."""
    return type(name, (SimpleNamespace,), {})(**held)


def scaled(base, by=2.5):
    return named("ScaleKernel", base_kernel=base, outputscale=np.array(by))


SMOOTH = named("RBFKernel", lengthscale=np.array([[0.3]]))
ROUGH = named("MaternKernel", lengthscale=np.array([[0.2, 0.7]]), nu=1.5)
LONG = named("RQKernel", lengthscale=np.array([[0.4]]), alpha=np.array([2.0]))


def trained(kernel=SMOOTH, noise=0.05):
    likelihood = SimpleNamespace(noise=np.array([noise]))
    return SimpleNamespace(covar_module=kernel, likelihood=likelihood)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (SMOOTH, RBF(0.3)),
        (ROUGH, Matern([0.2, 0.7], nu=1.5)),
        (scaled(LONG), ConstantKernel(2.5) * RationalQuadratic(0.4, 2.0)),
        (
            named("AdditiveKernel", kernels=[scaled(SMOOTH), ROUGH]),
            ConstantKernel(2.5) * RBF(0.3) + Matern([0.2, 0.7], nu=1.5),
        ),
        (
            named("ProductKernel", kernels=[SMOOTH, ROUGH]),
            RBF(0.3) * Matern([0.2, 0.7], nu=1.5),
        ),
    ],
    ids=["RBF", "Matern", "scaled", "sum", "product"],
)
def test_kernels_are_the_same_in_other_words(theirs, ours):
    assert translated(theirs) == ours


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (named("SpectralMixtureKernel"), "SpectralMixtureKernel has no counterpart.*RBFKernel"),
        (named("RBFKernel", active_dims=[0], lengthscale=np.ones((1, 1))), "some columns only"),
        (named("RBFKernel", lengthscale=np.ones((3, 1, 1))), r"\(3, 1, 1\): a batch of models"),
        (scaled(SMOOTH, by=[1.0, 2.0]), r"shape \(2,\); expected a single number"),
    ],
)
def test_what_cannot_be_said_here_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        translated(kernel)


@pytest.fixture
def data(rng):
    X, Y = smooth_table(rng, N=40)
    return X, Y - Y.mean(axis=0)


def test_what_was_trained_in_other_units_comes_in_ours(data):
    """Outputs of variance 10⁴: the same as scikit-learn's regressor of that kernel and noise."""
    X, Y = data
    units = [scaled(SMOOTH, by=y.var()) for y in Y.T]
    theirs = [Borrowed(trained(unit, 0.05 * y.var())) for unit, y in zip(units, Y.T, strict=True)]
    alike = [
        GaussianProcessRegressor(y.var() * RBF(0.3), alpha=0.05 * y.var(), optimizer=None).fit(X, y)
        for y in Y.T
    ]
    ours, reference = (IndependentGP(latent_learner=own).fit(X, Y) for own in (theirs, alike))
    assert_allclose(ours.predict(X), reference.predict(X), rtol=1e-6)
    assert_allclose(ours.noise_, reference.noise_)
    assert np.isfinite(ours.log_marginal_likelihood_value_)


def test_a_function_trains_on_standardised_outputs(data):
    X, Y = data
    given = []

    def train(x, y):
        given.append((y.mean(), y.std()))
        return trained(ROUGH), SimpleNamespace(noise=np.array([0.2]))

    model = EMGPR(latent_learner=Borrowed(train), refine=0, transform=None, batch_size=None)
    model.fit(X, Y)
    assert_allclose(given, [(0.0, 1.0)] * 3, atol=1e-6)
    assert_allclose(model.noise_, 0.2)
    assert model.kernels_ == [Matern([0.2, 0.7], nu=1.5)] * 3


@pytest.mark.parametrize(
    ("lender", "message"),
    [
        (3, r"Borrowed\(3\): expected a GaussianProcessRegressor, a trained GPyTorch"),
        (lambda x, y: None, "gave None; expected"),
        (lambda x, y: GaussianProcessRegressor(), "gave .*Regressor.*; expected .* was fitted"),
    ],
)
def test_what_lends_nothing_is_refused(data, lender, message):
    with pytest.raises(ValueError, match=message):
        IndependentGP(latent_learner=Borrowed(lender)).fit(*data)


@pytest.mark.filterwarnings("ignore")  # of GPyTorch's own
def test_a_variational_model_of_gpytorch(rng):
    """As the docs have it: trained by stochastic variational inference, predicted from by us."""
    torch = pytest.importorskip("torch")
    gpytorch = pytest.importorskip("gpytorch")

    class Sparse(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            variational = gpytorch.variational
            places = variational.CholeskyVariationalDistribution(len(points))
            super().__init__(variational.VariationalStrategy(self, points, places))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    def train(x, y, rounds=80, batch=64):
        torch.manual_seed(0)
        x, y = torch.tensor(x), torch.tensor(y)
        model, likelihood = Sparse(x[::6].clone()), gpytorch.likelihoods.GaussianLikelihood()
        model, likelihood = model.double(), likelihood.double()
        bound = gpytorch.mlls.VariationalELBO(likelihood, model, len(y))
        optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
        for _ in range(rounds):
            some = torch.randperm(len(y))[:batch]
            optimizer.zero_grad()
            (-bound(model(x[some]), y[some])).backward()
            optimizer.step()
        return model, likelihood

    X = rng.uniform(size=(200, 2))
    Y = np.stack([np.sin(7 * X[:, 0]), np.cos(5 * X[:, 1])], axis=1)
    noisy = Y + 0.2 * rng.normal(size=Y.shape)
    model = IndependentGP(latent_learner=Borrowed(train)).fit(X[:150], noisy[:150])
    assert np.sqrt(np.mean((model.predict(X[150:]) - Y[150:]) ** 2)) < 0.15
    standard = (noisy[:150] - noisy[:150].mean(0)) / noisy[:150].std(0)
    theirs, likelihood = train(X[:150], standard[:, 0])
    K = theirs.covar_module(torch.tensor(X[:9])).to_dense().detach().numpy()
    assert_allclose(model.kernels_[0](X[:9]), K, rtol=1e-3)
    assert_allclose(model.noise_[0], float(likelihood.noise), rtol=1e-3)
