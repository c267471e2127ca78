"""Step 1: scikit-learn's optimum, in any units, within the user's bounds, never in silence."""

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


def fit(X, Y, kernels, **settings):
    """Step 1 of every column of Y."""
    kernels = kernels if isinstance(kernels, list) else [kernels] * Y.shape[1]
    settings = {"n_restarts": 5, "max_iter": 200, "rng": np.random.default_rng(0)} | settings
    return fit_latents(Observations.from_table(X, Y), kernels, **settings)


def drawn(rng, kernel, noise, N=50):
    """One standardised output of a Gaussian process."""
    X = rng.uniform(size=(N, 2))
    y = np.linalg.cholesky(kernel(X) + noise * np.eye(N)) @ rng.normal(size=N)
    return X, ((y - y.mean()) / y.std())[:, None]


@pytest.fixture
def data(rng):
    return drawn(rng, RBF(0.25), 0.1)


@pytest.mark.parametrize("kernel", [RBF, lambda scale, bounds: Matern(scale, bounds, nu=1.5)])
@pytest.mark.parametrize(("scale", "noise"), [(0.15, 0.02), (0.3, 0.1), (0.8, 0.5)])
def test_the_optimum_is_scikit_learns_best_of_many_starts(rng, kernel, scale, noise):
    X, Y = drawn(rng, kernel(scale, (1e-3, 1e3)), noise)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # some starts end at a bound; not the best
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
    assert ours.trouble == ""
    assert_allclose(ours.log_likelihood, theirs.log_marginal_likelihood_value_, atol=1e-4)
    assert_allclose(ours.kernel.length_scale, theirs.kernel_.k1.length_scale, rtol=0.01)
    assert_allclose(ours.noise, theirs.kernel_.k2.noise_level, rtol=0.02)


def test_the_likelihood_reported_is_that_of_what_was_found(data):
    (latent,) = fit(*data, ConstantKernel(0.7) * Matern(nu=2.5) + ConstantKernel(0.1))
    cov = latent.kernel(data[0]) + latent.noise * np.eye(50)
    assert_allclose(
        latent.log_likelihood, multivariate_normal(np.zeros(50), cov).logpdf(data[1][:, 0])
    )


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 5e6), (1e3, -5e6)])
@pytest.mark.parametrize("kernel", [RBF(), Matern([1.0, 1.0], nu=1.5)], ids=["RBF", "Matern ARD"])
def test_units_and_origin_of_the_inputs_do_not_matter(data, kernel, factor, shift):
    X, Y = data
    (plain,) = fit(X, Y, kernel)
    (moved,) = fit(factor * X + shift, Y, kernel)
    assert_allclose(moved.noise, plain.noise, rtol=1e-4)
    assert_allclose(moved.log_likelihood, plain.log_likelihood, atol=1e-6)
    assert_allclose(
        moved.kernel.length_scale, factor * np.asarray(plain.kernel.length_scale), rtol=1e-4
    )


def test_columns_may_have_wildly_different_units(rng):
    """Degrees beside pascals beside metres: each length-scale comes in its column's unit."""
    X, Y = drawn(rng, RBF([0.2, 0.6]), 0.05)
    units = np.array([1e-4, 1e7])
    (plain,) = fit(X, Y, RBF([1.0, 1.0]))
    (mixed,) = fit(X * units, Y, RBF([1.0, 1.0]))
    assert_allclose(plain.kernel.length_scale, [0.2, 0.6], rtol=0.5)
    assert_allclose(mixed.kernel.length_scale, plain.kernel.length_scale * units, rtol=1e-3)
    assert_allclose(mixed.log_likelihood, plain.log_likelihood, atol=1e-4)


def test_bounds_that_the_user_set_are_kept_and_reported_when_reached(data):
    (latent,) = fit(*data, RBF(1.0, (0.7, 2.0)))
    assert_allclose(latent.kernel.length_scale, 0.7)
    assert "length_scale ended at its lower bound (0.7, 2)" in latent.trouble


def test_what_is_fixed_stays(data):
    (latent,) = fit(*data, ConstantKernel(2.0, "fixed") * RBF(0.4, "fixed"))
    assert latent.kernel == ConstantKernel(2.0, "fixed") * RBF(0.4, "fixed")
    assert latent.trouble == ""
    grid = np.geomspace(0.5, 2.0, 21) * latent.noise
    K, y = latent.kernel(data[0]), data[1][:, 0]
    values = [multivariate_normal(np.zeros(50), K + s * np.eye(50)).logpdf(y) for s in grid]
    assert np.argmax(values) == 10  # the noise beside it was still learned


def test_fixed_noise_stays(data):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.33, "fixed"))
    assert_allclose(latent.noise, 0.33)
    assert latent.kernel.length_scale > 0.1
    assert latent.trouble == ""


def test_noise_fixed_at_none_is_next_to_none_and_no_trouble(data):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.0, "fixed"))
    assert 0 < latent.noise <= 1e-8 * (1 + 1e-9)
    assert np.isfinite(latent.log_likelihood)


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_bounds_of_the_noise_are_kept(data, kind):
    (latent,) = fit(*data, RBF() + WhiteKernel(0.33, kind([0.3, 0.4])))
    assert_allclose(latent.noise, 0.3)
    assert "noise ended at its lower bound (0.3, 0.4)" in latent.trouble


@pytest.mark.parametrize("seed", range(4))
def test_an_output_free_of_noise_is_reported_and_its_search_converges(seed):
    """Though its likelihood, of a covariance that is nearly singular, is rough with rounding."""
    X = np.random.default_rng(seed).uniform(size=(40, 2))
    (latent,) = fit(X, np.sin(2 * X[:, :1]) + X[:, 1:] ** 2 - 1.0, RBF())
    assert "noise ended at its lower bound" in latent.trouble
    assert "free of noise" in latent.trouble
    assert "did not converge" not in latent.trouble


def test_an_output_of_nothing_but_noise_is_reported():
    X = np.linspace(0, 1, 60)[:, None]
    restless = (-1.0) ** np.arange(60)  # neighbours disagree: no smooth process explains it
    (latent,) = fit(X, restless[:, None], RBF())
    assert "white noise explains its readings better" in latent.trouble


def test_a_search_cut_short_is_reported(data):
    (latent,) = fit(*data, RBF(), max_iter=1)
    assert "did not converge within max_iter=1" in latent.trouble


@pytest.mark.parametrize("cut_short", [0, 1])
def test_of_the_searches_that_were_followed_the_best_is_kept(data, monkeypatch, cut_short):
    values = []

    def stay(loss, x0, *, max_iter, **settings):
        return minimize(loss, x0, max_iter=0, **settings)  # so that all starts are apart

    def minimize_badly_once(loss, x0, *, max_iter, **settings):
        end = minimize(loss, x0, max_iter=1 if len(values) == cut_short else max_iter, **settings)
        values.append(end.value[0])
        return end

    monkeypatch.setattr("emgpr.latents.starts.minimize", stay)
    monkeypatch.setattr("emgpr.latents.starts.BEHIND", np.inf)
    monkeypatch.setattr("emgpr.latents.climb.minimize", minimize_badly_once)
    (latent,) = fit(*data, RBF())
    assert len(values) == 2
    assert -latent.log_likelihood == values[1 - cut_short] < values[cut_short]


def test_a_missing_reading_takes_no_part(data, rng):
    X, Y = data
    kept = rng.uniform(size=50) < 0.7
    kept[[X[:, 0].argmin(), X[:, 0].argmax(), X[:, 1].argmin(), X[:, 1].argmax()]] = True
    (holes,) = fit(X, np.where(kept[:, None], Y, np.nan), RBF())
    (absent,) = fit(X[kept], Y[kept], RBF())
    assert_allclose(holes.log_likelihood, absent.log_likelihood, atol=1e-4)
    assert_allclose(holes.kernel.length_scale, absent.kernel.length_scale, rtol=1e-3)


def test_every_task_gets_its_own_kernel_and_the_answer_it_has_alone(rng):
    X, first = drawn(rng, RBF(0.25), 0.1)
    Y = np.hstack([first, np.roll(first, 7), first**2 - 1])
    kernels = [RBF(), Matern(nu=1.5), RBF()]
    together = fit(X, Y, kernels)
    assert [type(latent.kernel) for latent in together] == [RBF, Matern, RBF]
    for d, kernel in enumerate(kernels):
        (alone,) = fit(X, Y[:, [d]], kernel)
        assert_allclose(together[d].log_likelihood, alone.log_likelihood, atol=1e-3)


def test_a_kernel_that_scikit_learn_alone_knows_is_learned_too(rng):
    X = np.linspace(0, 3, 40)[:, None]
    y = np.sin(2 * np.pi * X / 0.8) + 0.1 * rng.normal(size=X.shape)
    (latent,) = fit(X, y / y.std(), ExpSineSquared(1.0, 0.75, periodicity_bounds=(0.5, 1.2)))
    assert_allclose(latent.kernel.periodicity, 0.8, rtol=0.02)


def test_a_kernel_of_nothing_but_noise_is_refused(data):
    with pytest.raises(ValueError, match=r"nothing but noise.*such as RBF"):
        fit(*data, WhiteKernel() + WhiteKernel(0.2))


def test_workers_change_nothing(rng):
    X, first = drawn(rng, RBF(0.25), 0.1, N=25)
    Y = np.hstack([first, np.roll(first, 7)])
    for one, two in zip(fit(X, Y, RBF(), n_jobs=1), fit(X, Y, RBF(), n_jobs=2), strict=True):
        assert one == two


def test_on_a_device_tasks_in_lockstep_get_the_answer_they_have_alone(rng, device):
    X, first = drawn(rng, RBF(0.25), 0.1, N=30)
    Y = np.hstack([first, np.roll(first, 7), first**2 - 1, np.roll(first, 3)])
    Y[:4, 3] = np.nan  # measured elsewhere than the others
    kernels = [RBF(), RBF(), Matern(nu=1.5), RBF()]
    for here, there in zip(fit(X, Y, kernels), fit(X, Y, kernels, device=device), strict=True):
        assert_allclose(there.log_likelihood, here.log_likelihood, atol=1e-5)
        assert_allclose(there.kernel.theta, here.kernel.theta, atol=1e-2)
        assert there.trouble == here.trouble


def test_a_peak_that_looks_low_from_its_start_is_found():
    """Two peaks, 9 log units apart; the start that leads to the higher one looks worse."""
    rng = np.random.default_rng(1038)
    N, P = int(rng.choice([25, 60, 150, 260])), int(rng.choice([2, 3, 5]))
    X = rng.uniform(size=(N, P))
    scales, noise = 10 ** rng.uniform(-1.2, 0.7, size=P), 10 ** rng.uniform(-3, 0.2)
    K = (RBF(scales) + RBF(scales / 8))(X) + 1e-7 * np.eye(N)
    y = np.linalg.cholesky(K) @ rng.normal(size=N) + np.sqrt(noise) * rng.normal(size=N)
    (latent,) = fit(X, ((y - y.mean()) / y.std())[:, None], RBF(np.ones(P)))
    assert latent.log_likelihood > -75.87


def test_kernels_that_differ_in_their_number_of_scales_are_told_apart(data):
    X, Y = data
    one, several = fit(X, np.hstack([Y, Y]), [RBF(), RBF(np.ones(2))])
    assert one.kernel.n_dims == 1
    assert several.kernel.n_dims == 2


def test_a_kernel_that_cannot_be_evaluated_is_said_to_be_so(data):
    class Nothing(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            K = np.full((len(X), len(X if Y is None else Y)), np.nan)
            return (K, K[..., None]) if eval_gradient else K

    (latent,) = fit(*data, Nothing())
    assert "could not be evaluated" in latent.trouble
