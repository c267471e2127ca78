"""kernel="auto" finds the smoothness and the length-scales that data were drawn with."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import IndependentGP
from emgpr.latents import Latent, choose_kernels, fit_latents, kernel_choice
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


def correlation(kernel, distance):
    return kernel(np.zeros((1, 1)), np.array([[distance]]))[0, 0]


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

    def fit(kernels, gain, **_):
        values = [gain * np.ndim(kernel.length_scale) - 60 for kernel in kernels]
        return [Latent(kernel, 0.1, value) for kernel, value in zip(kernels, values, strict=True)]

    enough = 0.5 * np.log(40)
    for gain, n in [(enough - 0.01, 0), (enough + 0.01, 1)]:
        latents = choose_kernels(observations, partial(fit, gain=gain))
        assert [np.ndim(latent.kernel.length_scale) for latent in latents] == [n, n]


def test_smoother_kernels_are_fitted_only_where_rougher_ones_are_not_better(rng):
    """Outputs whose likeliest kernels are Matern 1/2, 3/2, 5/2 and RBF; one cannot be fitted."""
    likelihoods = {
        0.5: [9, 1, 1, 1, 3],
        1.5: [5, 9, 5, 5, np.nan],
        2.5: [9, 8, 9, 7, 2],
        np.inf: 5 * [8],
    }
    fitted = []
    observations = Observations.from_table(rng.uniform(size=(20, 1)), rng.normal(size=(20, 5)))

    def fit(kernels, outputs, starts):
        fitted.append((smoothness(kernels[0]), list(outputs)))
        values = [float(likelihoods[smoothness(kernels[0])][d]) for d in outputs]
        return [Latent(kernel, 0.1, value) for kernel, value in zip(kernels, values, strict=True)]

    found = choose_kernels(observations, fit)
    assert [smoothness(latent.kernel) for latent in found] == [0.5, 1.5, 2.5, np.inf, 0.5]
    assert fitted == [
        (1.5, [0, 1, 2, 3, 4]),
        (0.5, [0, 1, 2, 3, 4]),
        (2.5, [1, 2, 3]),
        (np.inf, [2, 3]),
    ]


def test_each_search_starts_from_the_kernel_fitted_before_with_the_same_range(rng):
    starts_of = {}
    observations = Observations.from_table(rng.uniform(size=(20, 2)), rng.normal(size=(20, 2)))

    def fit(kernels, outputs, starts):
        starts_of[kernels[0].n_dims, smoothness(kernels[0])] = starts
        kernels = [
            clone(k).set_params(length_scale=0.2 * np.ones_like(k.length_scale)) for k in kernels
        ]
        messages = ["", "ended at a bound"]
        value = {0.5: 1.0, 1.5: 2.0, 2.5: 3.0, np.inf: 4.0}[smoothness(kernels[0])]
        return [
            Latent(k, 0.1, value, message=messages[d])
            for k, d in zip(kernels, outputs, strict=True)
        ]

    choose_kernels(observations, fit)
    assert starts_of.pop((1, 1.5)) == [None, None]
    assert len(starts_of) == 4
    for (n_scales, nu), (start, none) in starts_of.items():
        assert none is None  # the fit of the second output says little about other kernels
        before = {0.5: Matern(0.2, nu=1.5), 2.5: Matern(0.2, nu=1.5), np.inf: Matern(0.2, nu=2.5)}[
            nu
        ]
        if n_scales == 2:
            assert start.to_exceed == 4.0 + 0.5 * np.log(20)
            assert_allclose(start.kernel.length_scale, [0.2, 0.2])
            continue
        assert start.noise == 0.1
        half = brentq(lambda r, k=before: correlation(k, r) - 0.5, 1e-3, 9)
        assert_allclose(correlation(start.kernel, half), 0.5, atol=1e-3)


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


@pytest.mark.parametrize("kernel", [Matern([0.3, 0.4], nu=1.5), Matern(0.3, nu=0.7)])
def test_a_kernel_of_another_form_is_no_start_for_others(kernel):
    latent = Latent(kernel, 0.1, -1.0)
    own = Matern(nu=1.5)
    assert kernel_choice._warm_start(latent, own, Matern(nu=0.5)) is None
    assert kernel_choice._warm_start(Latent(own, 0.1, -1.0), own, Matern(nu=0.5)) is not None
