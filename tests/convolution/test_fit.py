"""The fit of convolved processes: known parameters are found, and searches report their ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr.convolution import ConvolutionParameters, ConvolvedCovariance, fit_convolution
from emgpr.convolution import fit as module
from emgpr.convolution.fit import SearchResult, describe_end
from emgpr.convolution.parameters import ConvolutionVector
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.parallel import Execution
from tests.convolution.convolved import drawn_table

KNOWN = ConvolutionParameters(
    ConvolvedCovariance(np.array([0.15]), np.array([0.0, 0.15]), np.array([[0.9, -0.9]]), 2),
    np.array([0.1, 0.05]),
)


@pytest.fixture(scope="module")
def table():
    return drawn_table(np.random.default_rng(0), KNOWN, N=150, missing=0.2)


@pytest.fixture(scope="module")
def fitted(table):
    rng = np.random.default_rng(0)
    return fit_convolution(table, 1, own_processes=False, n_restarts=3, rng=rng)


def test_known_parameters_are_found(fitted):
    """Within four standard deviations over draws, so that one seed in ten thousand would fail."""
    covariance = fitted.parameters.covariance
    scales = np.sqrt(np.diagonal(covariance.T[0]))
    expected = np.sqrt(np.diagonal(KNOWN.covariance.T[0]))
    assert np.all(np.abs(np.log(scales / expected)) < [0.38, 0.23])
    assert np.all(np.abs(np.log(fitted.parameters.noise / KNOWN.noise)) < [0.73, 0.47])
    assert np.sign(np.prod(covariance.weights)) == -1


def test_the_best_of_all_searches_is_kept(fitted, table):
    assert len(fitted.searches) == 3
    assert fitted.best.log_density == max(s.log_density for s in fitted.searches)
    assert fitted.best.converged
    assert fitted.message == ""
    at_truth = module.ReadingPairs(table).evaluate(KNOWN.covariance, KNOWN.noise).value
    assert fitted.best.log_likelihood > at_truth


def test_the_result_depends_on_the_seed_and_nothing_else(table, fitted):
    again = fit_convolution(
        table, 1, own_processes=False, n_restarts=3, rng=np.random.default_rng(0),
        execution=Execution(n_jobs=2),
    )  # fmt: skip
    assert_array_equal(again.best.x, fitted.best.x)


def test_a_search_that_is_cut_short_says_so(table):
    cut = fit_convolution(
        table, 1, own_processes=True, n_restarts=1, max_iter=2, rng=np.random.default_rng(0)
    )
    assert not cut.best.converged
    assert "did not converge within max_iter=2" in cut.message


def test_a_bound_that_is_reached_is_named(table):
    kernel = RBF(3.0, (2.0, 4.0))
    found = fit_convolution(
        table, 1, own_processes=True, kernel=kernel, n_restarts=1, rng=np.random.default_rng(0),
        names=["Cd", "Ni"],
    )  # fmt: skip
    assert len(found.searches) == 2  # the length-scale that was set is a starting point, too
    scale = found.parameters.covariance.length_scales[0]
    assert 2.0 - 1e-9 < scale < 4.0 + 1e-9


def test_a_fixed_length_scale_is_not_changed(table):
    found = fit_convolution(
        table, 1, own_processes=False, kernel=RBF(0.12, "fixed"), n_restarts=1,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert_allclose(found.parameters.covariance.length_scales, 0.12)


def test_noise_at_its_bound_is_reported(rng):
    x = np.linspace(0, 1, 30)[:, None]
    table = Observations.from_table(x, np.hstack([np.sin(6 * x), np.cos(6 * x)]))
    found = fit_convolution(table, 1, own_processes=True, n_restarts=1, rng=rng, names=["a", "b"])
    assert "the noise of output 'a' ended at its lower bound (1e-08, 100)" in found.message
    assert "the readings appear to be free of noise" in found.message


LATENT = "the length-scale of latent process 0 ended at its upper bound (0.1, 20)"
OWN = "the length-scale of the own process of output {!r} ended at its lower bound (0.1, 20)"
TREND = ": the process hardly varies over the region, or follows a trend"
UNCORRELATED = ": the process appears to be uncorrelated between sites"


@pytest.mark.parametrize(
    ("part", "at", "message"),
    [
        (0, "upper", LATENT + TREND),
        (0, "lower", ""),
        (1, "lower", ""),
        (2, "lower", "; ".join(OWN.format(name) + UNCORRELATED for name in "ab")),
    ],
)
def test_a_bound_is_named_with_its_meaning(part, at, message):
    vector = ConvolutionVector(2, 1, 1, True)
    x = np.zeros(sum(vector.sizes))
    x[vector.parts[4]] = x[vector.parts[5]] = 1.0  # weights
    bounds = np.tile(np.log([0.1, 20.0]), (len(x), 1))
    x[vector.parts[part]] = np.log(0.1 if at == "lower" else 20.0)
    end = SearchResult(x, 0.0, 0.0, 10, True)
    assert describe_end(end, vector, bounds, 200, ["a", "b"]) == message


def test_constant_outputs_have_no_signal(rng, table):
    y = np.where(table.observed, table.y, np.nan).T
    y = np.column_stack([y, np.zeros(len(y))])
    with_constant = Observations.from_table(table.x, y)
    found = fit_convolution(
        with_constant, 1, own_processes=True, n_restarts=1, max_iter=20, rng=rng
    )
    covariance = found.parameters.covariance
    assert covariance.weights[0, 2] == 0
    assert covariance.own_weights[2] == 0
    assert np.isfinite(found.best.log_likelihood)


def test_with_many_readings_starts_are_tried_on_a_subsample(table, fitted, monkeypatch):
    monkeypatch.setattr(module, "SEARCH_READINGS", 80)
    found = fit_convolution(
        table, 1, own_processes=False, n_restarts=4, rng=np.random.default_rng(0)
    )
    assert len(found.searches) == 4
    assert all(s.log_likelihood > fitted.best.log_likelihood for s in found.searches)  # of fewer
    assert found.best.log_likelihood == pytest.approx(fitted.best.log_likelihood, abs=0.01)


def test_a_single_output_is_an_ordinary_process(rng):
    """One latent process without smoothing: the likelihood is that of scikit-learn."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    one = drawn_table(rng, KNOWN, N=60).output(0)
    found = fit_convolution(one, 1, own_processes=False, n_restarts=2, rng=rng)
    parameters = found.parameters
    kernel = ConstantKernel(float(parameters.covariance.weights[0, 0] ** 2)) * RBF(
        float(np.sqrt(parameters.covariance.T[0, 0, 0]))
    ) + WhiteKernel(float(parameters.noise[0]))
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(one.x, one.y[0])
    value, gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert found.best.log_likelihood == pytest.approx(value, rel=1e-10)
    assert_allclose(gradient, 0.0, atol=0.2)  # a maximum


def test_a_likelihood_that_is_nowhere_defined_is_an_error(monkeypatch, table):
    bad = [Latent(RBF(), 0.1, 0.0)] * 2
    monkeypatch.setattr(module, "fit_alone", lambda *_: bad)
    monkeypatch.setattr(
        module,
        "search_maximum",
        lambda *_: module.SearchResult(np.zeros(8), -np.inf, 0.0, 0, False),
    )
    with pytest.raises(module.NumericalError, match="at any starting point"):
        fit_convolution(table, 1, own_processes=False, n_restarts=1, rng=np.random.default_rng(0))
