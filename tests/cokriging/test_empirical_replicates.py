"""Replicates, which are several readings at one location: their differences are the nugget."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr import CoKriging
from emgpr.cokriging import EmpiricalVariograms, as_structures, fit_variograms
from emgpr.cokriging.empirical import distance_bins
from emgpr.fitting.cokriging import left_out_coverage
from emgpr.kernels import Spherical
from emgpr.observations import Observations

PLAIN = {"output_transform": None, "output_bounds": None}
PLACES, TIMES, SD = 60, 3, 0.1


def replicated(seed, D=2, noise=SD):
    """Three noisy readings of smooth fields at each of 60 places."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(size=(PLACES, 2)), TIMES, axis=0)
    f = np.sin(6 * X[:, 0]) + X[:, 1]
    F = np.column_stack([f, f + 2 * np.cos(4 * X[:, 1])])[:, :D]
    return X, F + noise * rng.normal(size=F.shape)


def nugget(model):
    """Standard deviations of the nugget, in the units of the outputs."""
    return np.sqrt(np.diag(model.noise_)) * model.output_scaler_.scale


def within_places(Y):
    """The mean of half squared differences between readings at the same place."""
    R = Y.reshape(PLACES, TIMES, -1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    return np.mean(
        [[0.5 * np.outer(r[i] - r[j], r[i] - r[j]) for i, j in pairs] for r in R], (0, 1)
    )


def test_the_first_bin_is_the_mean_of_half_products_of_differences_at_a_place():
    X, Y = replicated(0)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    found = EmpiricalVariograms.measure(Observations.from_table(X, Y), 6)
    assert_allclose(found.value[0], within_places(Y))
    assert not found.lag[0].any()
    assert (found.n_pairs[0] == 3 * PLACES).all()
    assert (found.lag[1:] > 0).all()
    assert len(found.lag) == 7


def test_the_other_bins_contain_the_pairs_of_different_places():
    X, _ = replicated(0)
    lags, of_places = distance_bins(X, 6), distance_bins(X[::TIMES], 6)
    assert lags.edges[-1] == of_places.edges[-1]
    assert lags.distance[lags.bin == 1].min() > 0
    assert (lags.distance[lags.bin == 0] == 0).all()


def test_coordinates_that_differ_by_rounding_are_one_place(rng):
    X, Y = replicated(0)
    exact, rounded = (
        EmpiricalVariograms.measure(Observations.from_table(x, Y), 6)
        for x in (X + 1e6, (X + 1e6) * (1 + 2e-16 * rng.integers(0, 2, size=X.shape)))
    )
    assert_allclose(rounded.n_pairs[0], exact.n_pairs[0])
    assert_allclose(rounded.value[0], exact.value[0])
    apart = X + 1e-6 * rng.uniform(size=X.shape)
    assert not EmpiricalVariograms.measure(Observations.from_table(apart, Y), 6).has_replicates


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("D", [1, 2])
def test_replicates_determine_the_nugget(seed, D):
    """Within four standard errors of a variance from 120 degrees of freedom, as of the noise."""
    X, Y = replicated(seed, D)
    model = CoKriging(**PLAIN).fit(X, Y if D > 1 else Y[:, 0])
    error = np.sqrt(2 / (PLACES * (TIMES - 1)))
    assert_allclose(nugget(model) ** 2, SD**2, rtol=4 * error)
    assert_allclose(nugget(model) ** 2, np.diag(within_places(Y)), rtol=error)
    assert model.converged_


@pytest.mark.parametrize("D", [1, 2])
def test_intervals_contain_the_readings(D):
    tables = [replicated(seed, D) for seed in range(5)]
    models = [CoKriging(**PLAIN).fit(X, Y) for X, Y in tables]
    coverage = [left_out_coverage(model.posterior_) for model in models]
    assert np.min(coverage) > 0.9
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.03)


def test_the_signal_at_a_place_is_the_mean_of_its_replicates():
    """Its standard deviation is that of a mean of three; that of a further reading is larger."""
    X, Y = replicated(0, D=1)
    model = CoKriging(**PLAIN).fit(X, Y[:, 0])
    mean, std = model.predict(X[::TIMES], return_std=True, include_noise=False)
    errors = mean - Y.reshape(PLACES, TIMES).mean(axis=1)
    assert np.abs(errors).max() < SD
    assert 0.5 < np.median(std) / (SD / np.sqrt(TIMES)) < 1.1
    noisy = model.predict(X[::TIMES], return_std=True)[1]
    assert_allclose(noisy**2, std**2 + nugget(model) ** 2, rtol=1e-6)


def test_outputs_with_very_different_noise():
    """Their weights differ by orders of magnitude."""
    X, Y = replicated(0, noise=np.array([0.02, 0.6]))
    assert_allclose(nugget(CoKriging(**PLAIN).fit(X, Y)), [0.02, 0.6], rtol=0.25)


@pytest.mark.filterwarnings("error")
def test_one_output_without_replicates():
    X, Y = replicated(0)
    Y[1::TIMES, 1] = Y[2::TIMES, 1] = np.nan
    model = CoKriging(**PLAIN).fit(X, Y)
    assert nugget(model)[0] == pytest.approx(SD, rel=0.25)
    assert left_out_coverage(model.posterior_).min() > 0.85


def test_replicates_of_outputs_at_different_places():
    """Half of the places have readings of the first output, the others of the second."""
    X, Y = replicated(0)
    place = np.arange(len(X)) // TIMES
    Y[place % 2 == 0, 0] = Y[place % 2 == 1, 1] = np.nan
    found = EmpiricalVariograms.measure(Observations.from_table(X, Y), 6)
    assert found.is_covariance[0, 1]
    assert found.n_pairs[0, 0, 1] == found.weights[0, 0, 1] == 0
    assert_allclose(nugget(CoKriging(**PLAIN).fit(X, Y)), SD, rtol=0.4)


def test_a_few_copied_rows_do_not_remove_the_nugget(rng):
    """They are equal, but so few cannot show that there is no noise."""
    x = rng.uniform(size=(100, 2))
    y = Spherical(0.4)(x) + 0.5 * np.eye(100)
    y = np.linalg.cholesky(y) @ rng.normal(size=100)
    kernel = as_structures(Spherical(0.4, "fixed"), 2)
    tables = [Observations.from_table(x[k], y[k, None]) for k in (np.r_[:100], np.r_[:100, :3])]
    before, after = (fit_variograms(table, kernel).model.nugget[0, 0] for table in tables)
    assert before > 0.2
    assert after > 0.6 * before


@pytest.mark.parametrize("D", [1, 2])
def test_narrow_intervals_are_reported_with_their_reason(D, monkeypatch):
    """All sites have readings of all outputs here, so that common sites are not the reason."""
    X, Y = replicated(0, D)
    monkeypatch.setattr("emgpr.cokriging.empirical.NUGGET_ERROR", 1e-6)  # ignores replicates
    with pytest.warns(UserWarning, match="inside their 95% intervals is") as caught:
        CoKriging(**PLAIN).fit(X, Y)
    message = str(caught[0].message)
    assert "nugget is probably too small" in message
    assert "in common" not in message
    assert ("where other outputs are known" in message) == (D > 1)
