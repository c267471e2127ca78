"""Ranges and sills fitted to variograms: known models are found, degenerate tables survive."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern

from emgpr import CoKriging
from emgpr.cokriging import EmpiricalVariograms, as_structures, fit_variograms
from emgpr.cokriging import fit as module
from emgpr.cokriging.fit import MAX_RANGE, MIN_NUGGET
from emgpr.kernels import Spherical
from emgpr.observations import Observations

SILLS = np.array([[[0.4, 0.2], [0.2, 0.5]], [[0.5, -0.4], [-0.4, 0.4]]])
NUGGET = np.array([[0.1, 0.05], [0.05, 0.1]])
RANGES = 0.1, 0.4


def drawn(rng, N=500, missing=0.1):
    """A table drawn from two spherical structures on the unit square."""
    x = rng.uniform(size=(N, 2))
    cov = sum(np.kron(B, Spherical(a)(x)) for B, a in zip(SILLS, RANGES, strict=True))
    cov += np.kron(NUGGET, np.eye(N))
    Y = (np.linalg.cholesky(cov) @ rng.normal(size=2 * N)).reshape(2, N).T
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return Observations.from_table(x, Y)


@pytest.fixture(scope="module")
def table():
    return drawn(np.random.default_rng(5))


@pytest.fixture(scope="module")
def fitted(table):
    return fit_variograms(table, as_structures(["spherical", "spherical"], 2))


def test_known_structures_are_found(fitted, table):
    """One realisation: its variograms differ from the model's by tens of per cent at long lags."""
    ranges = [kernel.length_scale for kernel in fitted.model.kernels]
    assert 0.05 < ranges[0] < 0.2 < ranges[1] < 0.8
    assert fitted.message == ""
    assert fitted.n_iter > 0
    assert fitted.model.sills[0, 0, 1] > 0 > fitted.model.sills[1, 0, 1]
    assert_allclose(fitted.model.nugget, NUGGET, atol=0.1)


def test_fitted_variograms_follow_the_empirical_ones(fitted, table):
    """In the average over ten tables, sills at given ranges are those of the model."""
    kernels = [Spherical(a, "fixed") for a in RANGES]
    found = [
        fit_variograms(drawn(np.random.default_rng(seed), N=250), kernels, max_lag=0.6).model
        for seed in range(12)
    ]
    total = [m.sills.sum(axis=0) + m.nugget for m in found]
    error = np.std(total, axis=0) / np.sqrt(12)
    assert np.all(np.abs(np.mean(total, axis=0) - SILLS.sum(axis=0) - NUGGET) < 4 * error + 0.02)
    short = [m.sills[0] for m in found]
    error = np.std(short, axis=0) / np.sqrt(12)
    assert np.all(np.abs(np.mean(short, axis=0) - SILLS[0]) < 4 * error + 0.02)


def test_fixed_ranges_are_kept(table):
    kernels = [Spherical(0.2, "fixed"), Matern(0.5, "fixed", nu=0.5)]
    found = fit_variograms(table, kernels)
    assert [kernel.length_scale for kernel in found.model.kernels] == [0.2, 0.5]
    one = fit_variograms(table, [Spherical(0.15, "fixed"), *as_structures("exponential", 2)])
    assert one.model.kernels[0].length_scale == 0.15
    assert one.model.kernels[1].length_scale != 1.0


@pytest.mark.parametrize("bounds", [(0.1, 0.2), (1.0, 3.0), (1e-3, 0.02)])
def test_ranges_remain_within_the_bounds_of_the_kernel(table, bounds):
    start = float(np.sqrt(np.prod(bounds)))
    found = fit_variograms(table, [Spherical(start, bounds), *as_structures("spherical", 2)])
    first = found.model.kernels[0].length_scale
    assert bounds[0] * (1 - 1e-9) <= first <= bounds[1] * (1 + 1e-9)
    assert found.message == ""


def test_a_range_between_its_bounds_is_the_best_one(table, fitted):
    ranges = [kernel.length_scale for kernel in fitted.model.kernels]
    bounded = [Spherical(1.0, (0.5 * a, 2 * a)) for a in ranges]
    found = fit_variograms(table, bounded)
    assert_allclose([kernel.length_scale for kernel in found.model.kernels], ranges, rtol=0.05)


def test_more_structures_fit_better(fitted, table):
    one = fit_variograms(table, as_structures("spherical", 2))
    assert fitted.misfit < one.misfit
    kernels = [*as_structures(["spherical"] * 2, 2), Spherical(0.2, "fixed")]
    three = fit_variograms(table, kernels)
    assert three.misfit < 1.001 * fitted.misfit


def test_every_matrix_is_semidefinite(fitted):
    assert np.linalg.eigvalsh(fitted.model.sills).min() > -1e-10
    assert np.linalg.eigvalsh(fitted.model.nugget).min() > 0


def test_units_of_the_outputs_scale_the_sills(table, fitted):
    scale = np.array([[100.0], [0.01]])
    scaled = Observations(table.x, table.y * scale, table.observed)
    found = fit_variograms(scaled, as_structures(["spherical", "spherical"], 2))
    assert_allclose(found.model.sills, fitted.model.sills * scale * scale.T, rtol=1e-6)
    assert_allclose(found.model.nugget, fitted.model.nugget * scale * scale.T, rtol=1e-6)


def test_a_constant_added_to_an_output_changes_no_sill(table, fitted):
    moved = np.where(table.observed, table.y + np.array([[1e3], [-20.0]]), 0.0)
    found = fit_variograms(
        Observations(table.x, moved, table.observed), as_structures(["spherical"] * 2, 2)
    )
    assert_allclose(found.model.sills, fitted.model.sills, rtol=1e-6, atol=1e-9)
    assert_allclose(found.model.nugget, fitted.model.nugget, rtol=1e-6, atol=1e-9)


def test_a_trend_has_a_range_of_twice_the_longest_lag_and_converges(rng):
    x = rng.uniform(size=(80, 2))
    trend = Observations.from_table(x, x[:, :1] + 0.01 * rng.normal(size=(80, 1)))
    found = fit_variograms(trend, as_structures("spherical", 2))
    longest = EmpiricalVariograms.measure(trend, 15).lag.max()
    assert found.model.kernels[0].length_scale == pytest.approx(MAX_RANGE * longest, rel=0.02)
    assert found.message == ""


def test_a_longer_bound_of_the_range_hardly_changes_predictions(rng, monkeypatch):
    """Predictions within the lags depend on the slope of a variogram that has no sill there."""
    x, new = rng.uniform(size=(80, 2)), rng.uniform(size=(50, 2))
    y = np.sin(6 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=80)
    found = []
    for bound in (2.0, 20.0):
        monkeypatch.setattr(module, "MAX_RANGE", bound)
        model = CoKriging(output_transform=None, output_bounds=None).fit(x, y)
        found.append((model.structures_["range"][1], *model.predict(new, return_std=True)))
    (short, mean, std), (long, other_mean, other_std) = found
    assert long > 5 * short
    assert np.abs(mean - other_mean).max() < 0.3 * std.min()
    assert_allclose(std, other_std, rtol=0.05)


def test_searches_that_are_cut_short_say_so(table, monkeypatch):
    monkeypatch.setattr(module, "EVALUATIONS_PER_RANGE", 2)
    found = fit_variograms(table, as_structures("spherical", 2))
    assert "the search for the ranges did not converge" in found.message
    original = module.fit_sills
    monkeypatch.setattr(
        module, "fit_sills", lambda *args, **options: (*original(*args, **options)[:2], False)
    )
    assert "the sills did not converge" in fit_variograms(table, [Spherical(0.1, "fixed")]).message


def test_outputs_that_are_never_measured_together_are_coupled_by_covariances():
    whole = drawn(np.random.default_rng(5), missing=0.0)
    apart = np.arange(whole.n_sites) % 2 == np.arange(2)[:, None]
    apart = Observations(whole.x, np.where(apart, whole.y, 0.0), apart)
    kernels = [Spherical(a, "fixed") for a in RANGES]
    found = fit_variograms(apart, kernels).model
    assert found.sills[1, 0, 1] < -0.1
    assert found.nugget[0, 1] == pytest.approx(0.0, abs=1e-10)  # cannot be known


def test_degenerate_tables_have_a_nugget_only(rng):
    one_place = Observations.from_table(np.zeros((4, 2)), rng.normal(size=(4, 2)))
    found = fit_variograms(one_place, as_structures(["spherical", "spherical"], 2))
    assert not found.model.sills.any()
    assert_allclose(found.model.nugget, np.diag(one_place.y.var(axis=1)))
    Y = rng.normal(size=(20, 2))
    Y[1:, 1] = np.nan  # a single reading
    few = fit_variograms(
        Observations.from_table(rng.uniform(size=(20, 2)), Y), as_structures("exponential", 2)
    )
    assert not few.model.sills[:, 1].any()
    assert few.model.nugget[1, 1] == 1.0  # its variance is unknown
    constant = Observations.from_table(rng.uniform(size=(20, 2)), np.zeros((20, 1)))
    flat = fit_variograms(constant, as_structures("exponential", 2)).model
    assert not flat.sills.any()
    assert flat.nugget[0, 0] == pytest.approx(MIN_NUGGET)
