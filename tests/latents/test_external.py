"""Step 1 by scikit-learn's regressor and by GPyTorch's models, in any units."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.latents import Borrowed
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

KERNEL = ConstantKernel(1.5) * RBF(0.4, (0.01, 10)) + WhiteKernel(0.05, (1e-6, 1))


@pytest.fixture
def data(rng):
    X, Y = smooth_table(rng, N=35)
    return X, Y - Y.mean(axis=0)


@pytest.fixture
def x_new(rng):
    return rng.uniform(size=(6, 2))


def regressor(**settings):
    return GaussianProcessRegressor(KERNEL, **settings)


@pytest.mark.parametrize("theirs_normalised", [False, True])
@pytest.mark.parametrize("ours_normalised", [False, True])
def test_fitted_regressors_predict_the_same_through_us(
    data, x_new, theirs_normalised, ours_normalised
):
    """Units differ by 10⁴ between the outputs; scikit-learn does not add alpha to variances."""
    X, Y = data
    theirs = [
        regressor(normalize_y=theirs_normalised, optimizer=None, alpha=1e-3).fit(X, y) for y in Y.T
    ]
    ours = IndependentGP(
        output_transform=None,
        latent_learner=theirs,
        normalize_y=ours_normalised,
        parameter_uncertainty=False,
    ).fit(X, Y)
    mean, std = ours.predict(x_new, return_std=True)
    for d, model in enumerate(theirs):
        their_mean, their_std = model.predict(x_new, return_std=True)
        assert_allclose(mean[:, d], their_mean, rtol=1e-6)
        variance = their_std**2 + 1e-3 * model._y_train_std**2
        assert_allclose(std[:, d] ** 2, variance, rtol=1e-6)


def test_an_unfitted_regressor_is_cloned_and_fitted_to_every_output(data, x_new):
    X, Y = data
    learner = regressor(alpha=0)
    ours = IndependentGP(output_transform=None, latent_learner=learner).fit(X, Y)
    assert not hasattr(learner, "kernel_")
    standard = (Y - Y.mean(0)) / Y.std(0)
    theirs = [regressor(alpha=0).fit(X, y) for y in standard.T]
    for d, model in enumerate(theirs):
        assert_allclose(ours.noise_[d], model.kernel_.k2.noise_level, rtol=1e-5)
        assert_allclose(ours.kernels_[d].theta, model.kernel_.k1.theta, rtol=1e-5, atol=1e-6)
        expected = model.predict(x_new) * Y[:, d].std() + Y[:, d].mean()
        assert_allclose(ours.predict(x_new)[:, d], expected, rtol=1e-5)


def test_a_regressor_without_a_kernel_gets_the_outputs_kernel(data):
    X, Y = data
    model = IndependentGP(
        RBF(0.4), output_transform=None, latent_learner=GaussianProcessRegressor(alpha=0)
    ).fit(X, Y)
    assert all(isinstance(kernel, RBF) for kernel in model.kernels_)
    assert np.all(model.noise_ < 0.1)


def test_a_regressor_fitted_to_all_outputs_at_once_has_the_units_of_each(data, x_new):
    """scikit-learn's own multi-output fit shares a kernel but normalises each output."""
    X, Y = data
    shared = regressor(normalize_y=True, optimizer=None).fit(X, Y)
    settings = {"output_transform": None, "parameter_uncertainty": False}
    ours = IndependentGP(latent_learner=shared, **settings).fit(X, Y)
    mean, std = ours.predict(x_new, return_std=True)
    their_mean, their_std = shared.predict(x_new, return_std=True)
    assert_allclose(mean, their_mean, rtol=1e-6)
    assert_allclose(std, their_std, rtol=1e-6)


def test_missing_readings_are_left_out_for_the_regressor(data):
    X, Y = data
    Y[:10, 1] = np.nan
    model = IndependentGP(output_transform=None, latent_learner=regressor(optimizer=None)).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_clones_of_a_borrowed_regressor_keep_its_fit(data):
    """scikit-learn's clone of the regressor itself would discard it."""
    X, Y = data
    fitted = regressor(optimizer=None).fit(X, Y[:, 0])
    model = clone(IndependentGP(output_transform=None, latent_learner=Borrowed(fitted)))
    lender = model.latent_learner.lender
    assert lender is not fitted
    assert lender.kernel_ == fitted.kernel_
    assert model.get_params()["latent_learner__lender__optimizer"] is None


def too_many_columns(X, Y):
    return regressor(optimizer=None).fit(np.hstack([X, X]), Y[:, 0])


def noise_for_every_row(X, Y):
    return regressor(alpha=np.full(len(X), 0.1), optimizer=None).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, Y: [regressor(), regressor()], "2 regressors for 3 outputs"),
        (noise_for_every_row, r"alpha is an array.*WhiteKernel"),
        (too_many_columns, "fitted to 4 input columns, but X has 2"),
        (
            lambda X, Y: GaussianProcessRegressor(WhiteKernel(0.1), optimizer=None),
            "has no signal",
        ),
        (
            lambda X, Y: Borrowed(3),
            r"Borrowed\(3\): expected a GaussianProcessRegressor, a trained",
        ),
        (lambda X, Y: Borrowed(lambda x, y: None), "returned None; expected"),
        (
            lambda X, Y: Borrowed(lambda x, y: GaussianProcessRegressor()),
            "returned .*Regressor.*; expected a fitted",
        ),
    ],
)
def test_models_that_cannot_be_used_are_refused(data, make, message):
    with pytest.raises(ValueError, match=message):
        IndependentGP(output_transform=None, latent_learner=make(*data)).fit(*data)


def gpytorch_model(kernel, noise):
    """An object with the attributes of a trained GPyTorch model."""
    likelihood = SimpleNamespace(noise=np.array([noise]))
    return SimpleNamespace(covar_module=kernel, likelihood=likelihood)


def gpytorch_kernel(name, **parameters):
    return type(name, (SimpleNamespace,), {})(**parameters)


SMOOTH = gpytorch_kernel("RBFKernel", lengthscale=np.array([[0.3]]))
ROUGH = gpytorch_kernel("MaternKernel", lengthscale=np.array([[0.2, 0.7]]), nu=1.5)


def test_a_gpytorch_model_trained_in_other_units_is_converted(data):
    """Outputs of variance 10⁴: the same as scikit-learn's regressor of that kernel and noise."""
    X, Y = data
    theirs = [
        Borrowed(
            gpytorch_model(
                gpytorch_kernel("ScaleKernel", base_kernel=SMOOTH, outputscale=np.array(y.var())),
                0.05 * y.var(),
            )
        )
        for y in Y.T
    ]
    same = [
        GaussianProcessRegressor(y.var() * RBF(0.3), alpha=0.05 * y.var(), optimizer=None).fit(X, y)
        for y in Y.T
    ]
    ours, reference = (
        IndependentGP(output_transform=None, latent_learner=own).fit(X, Y) for own in (theirs, same)
    )
    assert_allclose(ours.predict(X), reference.predict(X), rtol=1e-6)
    assert_allclose(ours.noise_, reference.noise_)
    assert np.isfinite(ours.log_marginal_likelihood_value_)


def test_a_function_receives_standardised_outputs(data):
    X, Y = data
    given = []

    def train(x, y):
        given.append((y.mean(), y.std()))
        return gpytorch_model(ROUGH, 0.1), SimpleNamespace(noise=np.array([0.2]))

    model = EMGPR(latent_learner=Borrowed(train), refine=0, output_transform=None, batch_size=None)
    model.fit(X, Y)
    assert_allclose(given, [(0.0, 1.0)] * 3, atol=1e-6)
    assert_allclose(model.noise_, 0.2)
    assert model.kernels_ == [Matern([0.2, 0.7], nu=1.5)] * 3


@pytest.mark.filterwarnings("ignore")  # of GPyTorch's own
def test_a_variational_gpytorch_model(rng):
    """As in the documentation: trained by stochastic variational inference."""
    torch = pytest.importorskip("torch")
    gpytorch = pytest.importorskip("gpytorch")

    class Sparse(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            variational = gpytorch.variational
            distribution = variational.CholeskyVariationalDistribution(len(points))
            super().__init__(variational.VariationalStrategy(self, points, distribution))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    trained = []

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
        trained.append((float(y[0]), model, likelihood))
        return model, likelihood

    X = rng.uniform(size=(200, 2))
    Y = np.stack([np.sin(7 * X[:, 0]), np.cos(5 * X[:, 1])], axis=1)
    noisy = Y + 0.2 * rng.normal(size=Y.shape)
    model = IndependentGP(output_transform=None, latent_learner=Borrowed(train)).fit(
        X[:150], noisy[:150]
    )
    assert np.sqrt(np.mean((model.predict(X[150:]) - Y[150:]) ** 2)) < 0.15
    first = (noisy[0, 0] - noisy[:150, 0].mean()) / noisy[:150, 0].std()
    _, theirs, likelihood = min(trained, key=lambda one: abs(one[0] - first))  # of output 0
    K = theirs.covar_module(torch.tensor(X[:9])).to_dense().detach().numpy()
    assert_allclose(model.kernels_[0](X[:9]), K, rtol=1e-3)
    assert_allclose(model.noise_[0], float(likelihood.noise), rtol=1e-3)
