"""kernel="auto" finds the smoothness and the length-scales that data were drawn with."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import IndependentGP
from emgpr.latents import Latent, choose_kernels, fit_latents
from emgpr.observations import Observations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def drawn(rng, X, kernel, n):
    """n outputs that are draws of one kernel, read with little noise."""
    root = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(len(X)))
    return root @ rng.normal(size=(len(X), n)) + 0.05 * rng.normal(size=(len(X), n))


def chosen(X, Y):
    observations = Observations.from_table(X, Y)
    rng = np.random.default_rng(0)
    fit = partial(fit_latents, observations, n_restarts=1, max_iter=30, rng=rng)
    return [latent.kernel for latent in choose_kernels(observations, fit)]


def smoothness(kernel):
    return kernel.nu if isinstance(kernel, Matern) else np.inf


@pytest.mark.parametrize(
    ("kernel", "expected"), [(Matern(nu=0.5), {0.5}), (RBF(), {2.5, np.inf})], ids=["rough", "RBF"]
)
def test_rough_and_smooth_processes_are_distinguished(rng, kernel, expected):
    """Two of three draws. Of 24 draws of each kind at 60 sites, one rough one was missed."""
    X = rng.uniform(0, 6, size=(40, 1))
    found = [smoothness(own) in expected for own in chosen(X, drawn(rng, X, kernel, 3))]
    assert sum(found) >= 2


def test_columns_of_different_relevance_get_their_own_length_scales(rng):
    """Both outputs; so did all of 24 draws at 60 sites."""
    X = rng.uniform(size=(40, 2))
    for kernel in chosen(X, drawn(rng, X, RBF([0.15, 3.0]), 2)):
        across, along = kernel.length_scale
        assert along > 3 * across


def test_columns_of_equal_relevance_share_a_length_scale(rng):
    """Two of three draws; of 24 at 60 sites, two did not."""
    X = rng.uniform(size=(40, 2))
    kernels = chosen(X, drawn(rng, X, RBF(0.25), 3))
    assert sum(np.ndim(kernel.length_scale) == 0 for kernel in kernels) >= 2


def test_a_second_length_scale_must_gain_half_the_log_of_the_readings():
    X, Y = np.random.default_rng(0).uniform(size=(2, 40, 2))
    observations = Observations.from_table(X, Y)

    def fit(kernels, gain):
        values = [gain * np.ndim(kernel.length_scale) - 60 for kernel in kernels]
        return [Latent(kernel, 0.1, value) for kernel, value in zip(kernels, values, strict=True)]

    enough = 0.5 * np.log(40)
    for gain, n in [(enough - 0.01, 0), (enough + 0.01, 1)]:
        latents = choose_kernels(observations, partial(fit, gain=gain))
        assert [np.ndim(latent.kernel.length_scale) for latent in latents] == [n, n]


def test_with_one_column_only_the_candidates_are_fitted(rng):
    n_kernels = []
    observations = Observations.from_table(rng.uniform(size=(20, 1)), rng.normal(size=(20, 2)))

    def fit(kernels):
        n_kernels.append(len(kernels))
        values = -np.arange(len(kernels), dtype=float)
        values[5] = 10.0  # output 1, third candidate
        values[6] = np.nan  # output 0, fourth: could not be fitted
        return [Latent(kernel, 0.1, value) for kernel, value in zip(kernels, values, strict=True)]

    first, second = choose_kernels(observations, fit)
    assert n_kernels == [8]
    assert first.log_likelihood == 0.0
    assert second.log_likelihood == 10.0
    assert second.kernel == Matern(nu=2.5)


def test_the_estimator_chooses_a_kernel_for_each_output(rng):
    X = rng.uniform(0, 6, size=(45, 1))
    Y = np.column_stack([drawn(rng, X, kernel, 1) for kernel in (Matern(nu=0.5), RBF())])
    model = IndependentGP("auto", n_restarts=2, max_iter=40, random_state=0).fit(X, Y)
    rough, smooth = map(smoothness, model.kernels_)
    assert rough < smooth
    assert model.get_params()["kernel"] == "auto"


def test_the_kernel_that_is_kept_is_the_likeliest_candidate(rng):
    X = rng.uniform(0, 6, size=(30, 1))
    y = drawn(rng, X, Matern(nu=1.5), 1)[:, 0]
    settings = {"n_restarts": 1, "max_iter": 60, "random_state": 0}
    best = IndependentGP("auto", **settings).fit(X, y).log_marginal_likelihood_value_
    for kernel in (RBF(), Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5)):
        other = IndependentGP(kernel, **settings).fit(X, y).log_marginal_likelihood_value_
        assert other <= best + 1e-3


def test_an_irrelevant_column_causes_no_warning():
    """Its length-scale goes to the upper bound, which shows that it is irrelevant."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=30)
    model = IndependentGP("auto", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.converged_
    assert model.kernels_[0].length_scale[1] > 5 * model.kernels_[0].length_scale[0]
