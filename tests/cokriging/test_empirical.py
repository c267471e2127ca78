"""Empirical variograms: against loops over pairs, with gaps and without common sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.cokriging import EmpiricalVariograms, averages, centred
from emgpr.cokriging import empirical as module
from emgpr.cokriging.empirical import CLOSEST_PAIRS, distance_bins
from emgpr.noise import output_variances
from emgpr.observations import Observations


def table(rng, N=40, missing=0.2):
    X, Y = rng.uniform(size=(N, 2)), 3.0 * rng.normal(size=(N, 2))
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return Observations.from_table(X, Y)


def by_loops(readings, sites, d, e, lags):
    """Mean distance, semivariance and number of pairs of these sites, by a loop over all pairs."""
    y = readings.table.T - np.nanmean(readings.table.T, axis=1, keepdims=True)
    y /= np.sqrt(np.nanmean(y**2, axis=1, keepdims=True))
    found = [[] for _ in range(lags.n_lags)]
    for i in range(readings.n_sites):
        for j in range(i):
            h = np.linalg.norm(readings.x[i] - readings.x[j])
            bin = max(int(np.searchsorted(lags.edges, h)) - 1, 0)
            product = 0.5 * (y[d, i] - y[d, j]) * (y[e, i] - y[e, j])
            if bin < lags.n_lags and sites[i] and sites[j] and not np.isnan(product):
                found[bin].append((h, product))
    means = np.array([np.mean(pairs, axis=0) for pairs in found])
    return means[:, 0], means[:, 1], np.array(list(map(len, found)))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_values_are_means_over_the_pairs_in_each_bin(rng, missing):
    """For two outputs with gaps, in the ratio to direct variograms from the same pairs."""
    readings = table(rng, missing=missing)
    found, lags = EmpiricalVariograms.measure(readings, 6), distance_bins(readings.x, 6)
    everywhere, both = np.ones(readings.n_sites, bool), readings.observed.all(axis=0)
    direct = [by_loops(readings, everywhere, d, d, lags) for d in range(2)]
    common = [by_loops(readings, both, d, d, lags)[1] for d in range(2)]
    h, cross, n = by_loops(readings, both, 0, 1, lags)
    expected = cross * np.sqrt(direct[0][1] * direct[1][1] / (common[0] * common[1]))
    for d, e, numbers in ((0, 0, direct[0]), (1, 1, direct[1]), (1, 0, (h, expected, n))):
        assert_allclose(found.lag[:, d, e], numbers[0])
        assert_allclose(found.value[:, d, e], numbers[1])
        assert_allclose(found.n_pairs[:, d, e], numbers[2])
    assert_allclose(found.value[:, 0, 1], found.value[:, 1, 0])
    if not missing:
        assert_allclose(expected, cross)


def test_two_outputs_with_gaps_have_a_valid_matrix_in_each_bin(rng):
    """Without the ratio, cross-variograms would exceed √(γ_dd γ_ee) of such similar outputs."""
    X, f = rng.uniform(size=(60, 2)), rng.normal(size=60)
    Y = np.column_stack([f, f + 0.01 * rng.normal(size=60)])
    Y[::3, 0] = np.nan
    value = EmpiricalVariograms.measure(Observations.from_table(X, Y), 8).value
    assert np.linalg.eigvalsh(value).min() > 0


@pytest.mark.parametrize("apart", [False, True])
def test_a_constant_added_to_an_output_has_no_effect(rng, apart):
    readings = table(rng, N=60, missing=0.0)
    sites = np.arange(60) % 2 == np.arange(2)[:, None]
    observed = sites if apart else readings.observed
    tables = (
        Observations(readings.x, np.where(observed, readings.y + c, 0.0), observed)
        for c in (0.0, np.array([[100.0], [-5.0]]))
    )
    before, after = (EmpiricalVariograms.measure(t, 5) for t in tables)
    assert before.is_covariance[0, 1] == apart
    assert_allclose(after.value, before.value, atol=1e-10)


def test_outputs_without_common_sites_have_covariances(rng):
    readings = table(rng, N=90, missing=0.0)
    apart = np.arange(90) % 2 == np.arange(2)[:, None]
    apart = Observations(readings.x, np.where(apart, readings.y, 0.0), apart)
    found = EmpiricalVariograms.measure(apart, 4)
    assert found.is_covariance.tolist() == [[False, True], [True, False]]
    lags = distance_bins(apart.x, 4)
    y = centred(apart).y / np.sqrt(output_variances(centred(apart)))[:, None]
    i, j = lags.ends
    for bin in range(4):
        pairs = (lags.bin == bin) & (apart.observed[0, i] & apart.observed[1, j])
        pairs_back = (lags.bin == bin) & (apart.observed[1, i] & apart.observed[0, j])
        a = np.concatenate([y[0, i[pairs]], y[0, j[pairs_back]]])
        b = np.concatenate([y[1, j[pairs]], y[1, i[pairs_back]]])
        # Up to the difference between the variances of these readings and of all, which is 1.
        shift = 1 - 0.5 * (np.mean(a**2) + np.mean(b**2))
        assert found.value[bin, 0, 1] == pytest.approx(np.mean(a * b) + shift)


def test_a_structure_has_the_values_of_its_kind(rng):
    found = EmpiricalVariograms.measure(table(rng), 3)
    k = np.full_like(found.lag, 0.25)
    assert_allclose(found.basis(k), 0.75)


def test_short_lags_have_more_weight_for_each_pair(rng):
    readings = table(rng, missing=0.0)
    found = EmpiricalVariograms.measure(readings, 5)
    assert_allclose(found.weights, found.n_pairs / found.lag)


def test_missing_readings_reduce_weights_in_all_bins_alike(rng):
    """So that direct and cross-variograms are fitted with the same relative weights at all lags."""
    readings = table(rng, missing=0.0)
    whole = EmpiricalVariograms.measure(readings, 5).weights
    observed = readings.observed.copy()
    observed[0, ::4] = False
    few = Observations(readings.x, np.where(observed, readings.y, 0.0), observed)
    ratio = EmpiricalVariograms.measure(few, 5).weights / whole
    assert_allclose(ratio, np.tile([[0.75**2, 0.75], [0.75, 1.0]], (5, 1, 1)))


def test_averages_are_those_of_the_readings(rng):
    readings = table(rng)
    assert_allclose(averages(readings), np.nanmean(readings.table, axis=0))
    third = Observations.from_table(np.zeros((3, 1)), np.full((3, 2), 0.1))
    assert (averages(third) == 0.1).all()
    assert not centred(third).y.any()


def test_the_longest_lag_can_be_set(rng):
    readings = table(rng)
    found = EmpiricalVariograms.measure(readings, 5, max_lag=0.3)
    assert found.lag.max() <= 0.3


def test_sites_at_one_location_have_no_variogram(rng):
    one = Observations.from_table(np.zeros((5, 2)), rng.normal(size=(5, 2)))
    assert EmpiricalVariograms.measure(one, 5).lag.shape == (0, 2, 2)


def test_many_sites_are_subsampled(rng, monkeypatch):
    readings = table(rng, N=60, missing=0.0)
    monkeypatch.setattr(module, "MAX_SITES", 20)
    found = EmpiricalVariograms.measure(readings, 4)
    assert found.n_pairs[:, 0, 0].sum() <= 20 * 19 / 2


def test_an_output_with_a_single_reading_has_no_pairs(rng):
    readings = table(rng, missing=0.0)
    observed = readings.observed.copy()
    observed[1, 1:] = False
    few = Observations(readings.x, np.where(observed, readings.y, 0.0), observed)
    found = EmpiricalVariograms.measure(few, 4)
    assert found.n_pairs[:, 0, 0].all()
    assert not found.n_pairs[:, 1].any()
    assert not found.n_pairs[:, :, 1].any()


def test_the_shortest_bin_holds_the_closest_pairs(rng):
    """Of sites in clusters of two that are far from each other."""
    centres = rng.uniform(0, 100, size=(150, 2))
    x = np.concatenate([centres, centres + 0.1 * rng.normal(size=(150, 2))])
    lags = distance_bins(x, 8)
    assert int((lags.bin == 0).sum()) == CLOSEST_PAIRS
    assert lags.edges[1] < 0.3
    assert lags.edges[-1] == pytest.approx(0.5 * np.linalg.norm(np.ptp(x, axis=0)))
