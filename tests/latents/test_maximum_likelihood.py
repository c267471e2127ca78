"""Step 1 finds scikit-learn's optimum, in any units, within the user's bounds."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)

from emgpr.latents import fit_latents
from emgpr.observations import Observations
from emgpr.optimize import minimize
from emgpr.parallel import Execution


def fit(X, Y, kernels, **settings):
    """Step 1 of every column of Y."""
    kernels = kernels if isinstance(kernels, list) else [kernels] * Y.shape[1]
    settings = {"n_restarts": 5, "max_iter": 200, "rng": np.random.default_rng(0)} | settings
    return fit_latents(Observations.from_table(X, Y), kernels, **settings)


@pytest.fixture
def data(draw):
    return draw(RBF(0.25), 0.1)


def matern(scale, bounds):
    return Matern(scale, bounds, nu=1.5)


@pytest.mark.parametrize(
    ("kernel", "scale", "noise"), [(RBF, 0.15, 0.02), (matern, 0.3, 0.1), (RBF, 0.8, 0.5)]
)
def test_the_optimum_is_scikit_learns_best_of_many_starts(draw, kernel, scale, noise):
    X, Y = draw(kernel(scale, (1e-3, 1e3)), noise)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # the best start does not end at a bound
        theirs = max(
            (
                GaussianProcessRegressor(kernel(s, (1e-3, 1e3)) + WhiteKernel(w), alpha=0).fit(
                    X, Y[:, 0]
                )
                for s in (0.05, 0.2, 0.8)
                for w in (0.02, 0.3)
            ),
            key=lambda model: model.log_marginal_likelihood_value_,
        )
    (ours,) = fit(X, Y, kernel(1.0, (1e-5, 1e5)))
    assert ours.message == ""
    assert_allclose(ours.log_likelihood, theirs.log_marginal_likelihood_value_, atol=1e-4)
    assert_allclose(ours.kernel.length_scale, theirs.kernel_.k1.length_scale, rtol=0.01)
    assert_allclose(ours.noise, theirs.kernel_.k2.noise_level, rtol=0.02)


def test_the_reported_likelihood_is_that_of_the_fitted_kernel_and_noise(data):
    (latent,) = fit(*data, ConstantKernel(0.7) * Matern(nu=2.5) + ConstantKernel(0.1))
    cov = latent.kernel(data[0]) + latent.noise * np.eye(50)
    assert_allclose(
        latent.log_likelihood, multivariate_normal(np.zeros(50), cov).logpdf(data[1][:, 0])
    )


@pytest.mark.parametrize(
    ("factor", "shift", "kernel"),
    [(1e-6, 0.0, RBF()), (1.0, 5e6, RBF()), (1e3, -5e6, Matern([1.0, 1.0], nu=1.5))],
)
def test_units_and_origin_of_the_inputs_do_not_matter(data, kernel, factor, shift):
    X, Y = data
    (plain,) = fit(X, Y, kernel)
    (moved,) = fit(factor * X + shift, Y, kernel)
    assert_allclose(moved.noise, plain.noise, rtol=1e-4)
    assert_allclose(moved.log_likelihood, plain.log_likelihood, atol=1e-6)
    assert_allclose(
        moved.kernel.length_scale, factor * np.asarray(plain.kernel.length_scale), rtol=1e-4
    )


def test_columns_may_have_very_different_units(draw):
    """Degrees beside pascals: each length-scale is in the unit of its column."""
    X, Y = draw(RBF([0.2, 0.6]), 0.05)
    units = np.array([1e-4, 1e7])
    (plain,) = fit(X, Y, RBF([1.0, 1.0]))
    (mixed,) = fit(X * units, Y, RBF([1.0, 1.0]))
    assert_allclose(plain.kernel.length_scale, [0.2, 0.6], rtol=0.5)
    assert_allclose(mixed.kernel.length_scale, plain.kernel.length_scale * units, rtol=1e-3)
    assert_allclose(mixed.log_likelihood, plain.log_likelihood, atol=1e-4)


def test_bounds_set_by_the_user_are_kept_and_reported_when_reached(data):
    (latent,) = fit(*data, RBF(1.0, (0.7, 2.0)))
    assert_allclose(latent.kernel.length_scale, 0.7)
    assert "length_scale ended at its lower bound (0.7, 2)" in latent.message


def test_fixed_hyper_parameters_stay_and_the_noise_is_still_fitted(data):
    (latent,) = fit(*data, ConstantKernel(2.0, "fixed") * RBF(0.4, "fixed"))
    assert latent.kernel == ConstantKernel(2.0, "fixed") * RBF(0.4, "fixed")
    assert latent.message == ""
    grid = np.geomspace(0.5, 2.0, 21) * latent.noise
    K, y = latent.kernel(data[0]), data[1][:, 0]
    values = [multivariate_normal(np.zeros(50), K + s * np.eye(50)).logpdf(y) for s in grid]
    assert np.argmax(values) == 10


def test_fixed_noise_stays(data):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.33, "fixed"))
    assert_allclose(latent.noise, 0.33)
    assert latent.kernel.length_scale > 0.1
    assert latent.message == ""


def test_noise_fixed_at_zero_is_the_smallest_allowed(data):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.0, "fixed"))
    assert 0 < latent.noise <= 1e-8 * (1 + 1e-9)
    assert np.isfinite(latent.log_likelihood)


@pytest.mark.parametrize("kind", [tuple, np.array])
def test_bounds_of_the_noise_are_kept(data, kind):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.33, kind([0.3, 0.4])))
    assert_allclose(latent.noise, 0.3)
    assert "noise ended at its lower bound (0.3, 0.4)" in latent.message


@pytest.mark.parametrize("seed", range(2))
def test_an_output_free_of_noise_is_reported_and_its_search_converges(seed):
    """Although its likelihood, of a covariance that is nearly singular, is rough with rounding."""
    X = np.random.default_rng(seed).uniform(size=(40, 2))
    (latent,) = fit(X, np.sin(2 * X[:, :1]) + X[:, 1:] ** 2 - 1.0, RBF())
    assert "noise ended at its lower bound" in latent.message
    assert "free of noise" in latent.message
    assert "did not converge" not in latent.message


def test_an_output_of_nothing_but_noise_is_reported():
    X = np.linspace(0, 1, 60)[:, None]
    alternating = (-1.0) ** np.arange(60)  # neighbours differ: no smooth process explains them
    (latent,) = fit(X, alternating[:, None], RBF())
    assert "white noise is more likely" in latent.message


def test_a_search_that_is_cut_short_is_reported(data):
    (latent,) = fit(*data, RBF(), max_iter=1)
    assert "did not converge within max_iter=1" in latent.message


def test_a_kernel_that_cannot_be_evaluated_is_reported(data):
    class NotANumber(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            K = np.full((len(X), len(X if Y is None else Y)), np.nan)
            return (K, K[..., None]) if eval_gradient else K

    (latent,) = fit(*data, NotANumber())
    assert "could not be evaluated" in latent.message


@pytest.mark.parametrize("cut_short", [0, 1])
def test_the_best_of_several_searches_is_kept(data, monkeypatch, cut_short):
    values = []

    def stay(objective, x0, *, max_iter, **settings):
        return minimize(objective, x0, max_iter=0, **settings)  # so that all starts are distinct

    def minimize_badly_once(objective, x0, *, max_iter, **settings):
        n = 1 if len(values) == cut_short else max_iter
        end = minimize(objective, x0, max_iter=n, **settings)
        values.append(end.value[0])
        return end

    monkeypatch.setattr("emgpr.latents.starts.minimize", stay)
    monkeypatch.setattr("emgpr.latents.starts.MAX_DEFICIT", np.inf)
    monkeypatch.setattr("emgpr.latents.maximum_likelihood.minimize", minimize_badly_once)
    (latent,) = fit(*data, RBF([1.0, 1.0]))
    assert len(values) == 2
    assert -latent.log_likelihood == values[1 - cut_short] < values[cut_short]


def test_a_missing_reading_has_no_influence(data, rng):
    X, Y = data
    kept = rng.uniform(size=50) < 0.7
    kept[[X[:, 0].argmin(), X[:, 0].argmax(), X[:, 1].argmin(), X[:, 1].argmax()]] = True
    (missing,) = fit(X, np.where(kept[:, None], Y, np.nan), RBF())
    (absent,) = fit(X[kept], Y[kept], RBF())
    assert_allclose(missing.log_likelihood, absent.log_likelihood, atol=1e-4)
    assert_allclose(missing.kernel.length_scale, absent.kernel.length_scale, rtol=1e-3)


def test_every_output_gets_its_own_kernel_and_the_result_it_has_by_itself(data):
    X, first = data
    Y = np.hstack([first, np.roll(first, 7), first**2 - 1])
    kernels = [RBF(), Matern(nu=1.5), RBF()]
    together = fit(X, Y, kernels)
    assert [type(latent.kernel) for latent in together] == [RBF, Matern, RBF]
    for d, kernel in enumerate(kernels):
        (alone,) = fit(X, Y[:, [d]], kernel)
        assert_allclose(together[d].log_likelihood, alone.log_likelihood, atol=1e-3)


def test_kernels_with_different_numbers_of_length_scales_are_distinguished(data):
    X, Y = data
    one, several = fit(X, np.hstack([Y, Y]), [RBF(), RBF(np.ones(2))])
    assert one.kernel.n_dims == 1
    assert several.kernel.n_dims == 2


def test_a_kernel_that_is_only_scikit_learns_is_fitted_too(rng):
    X = np.linspace(0, 3, 40)[:, None]
    y = np.sin(2 * np.pi * X / 0.8) + 0.1 * rng.normal(size=X.shape)
    (latent,) = fit(X, y / y.std(), ExpSineSquared(1.0, 0.75, periodicity_bounds=(0.5, 1.2)))
    assert_allclose(latent.kernel.periodicity, 0.8, rtol=0.02)


def test_a_kernel_of_nothing_but_noise_is_refused(data):
    with pytest.raises(ValueError, match=r"only noise.*such as RBF"):
        fit(*data, WhiteKernel() + WhiteKernel(0.2))


def test_the_number_of_processes_changes_nothing(draw):
    X, first = draw(RBF(0.25), 0.1, N=25)
    Y = np.hstack([first, np.roll(first, 7)])
    one, two = (fit(X, Y, RBF(), execution=Execution(n_jobs=n)) for n in (1, 2))
    assert one == two


def test_on_a_device_outputs_optimised_together_get_the_same_results(draw, device):
    X, first = draw(RBF(0.25), 0.1, N=30)
    Y = np.hstack([first, np.roll(first, 7), first**2 - 1, np.roll(first, 3)])
    Y[:4, 3] = np.nan  # measured at other sites than the others
    kernels = [RBF(), RBF(), Matern(nu=1.5), RBF()]
    on_cpu = fit(X, Y, kernels)
    on_device = fit(X, Y, kernels, execution=Execution(device))
    for here, there in zip(on_cpu, on_device, strict=True):
        assert_allclose(there.log_likelihood, here.log_likelihood, atol=1e-5)
        assert_allclose(there.kernel.theta, here.kernel.theta, atol=1e-2)
        assert there.message == here.message
