"""Empirical variograms: against loops over pairs, with gaps and without common sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.cokriging import EmpiricalVariograms
from emgpr.cokriging import empirical as module
from emgpr.cokriging.empirical import CLOSEST_PAIRS, distance_bins
from emgpr.noise import output_variances
from emgpr.observations import Observations


def table(rng, N=40, missing=0.2):
    X, Y = rng.uniform(size=(N, 2)), 3.0 * rng.normal(size=(N, 2))
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return Observations.from_table(X, Y)


def test_values_are_means_over_the_pairs_in_each_bin(rng):
    readings = table(rng)
    found = EmpiricalVariograms.measure(readings, 6)
    lags = distance_bins(readings.x, 6)
    scale = np.sqrt(output_variances(readings))
    y = np.where(readings.observed, readings.y, np.nan) / scale[:, None]
    for d in range(2):
        for e in range(2):
            by_bin = [[] for _ in range(6)]
            for i in range(readings.n_sites):
                for j in range(i):
                    h = np.linalg.norm(readings.x[i] - readings.x[j])
                    bin = int(np.searchsorted(lags.edges, h)) - 1
                    product = 0.5 * (y[d, i] - y[d, j]) * (y[e, i] - y[e, j])
                    if bin < 6 and not np.isnan(product):
                        by_bin[max(bin, 0)].append((h, product))
            expected = np.array([np.mean(pairs, axis=0) if pairs else [0, 0] for pairs in by_bin])
            assert_allclose(found.lag[:, d, e], expected[:, 0])
            assert_allclose(found.value[:, d, e], expected[:, 1], atol=1e-12)
            assert_allclose(found.n_pairs[:, d, e], list(map(len, by_bin)))


def test_outputs_without_common_sites_have_covariances(rng):
    readings = table(rng, N=90, missing=0.0)
    apart = np.arange(90) % 2 == np.arange(2)[:, None]
    apart = Observations(readings.x, np.where(apart, readings.y, 0.0), apart)
    found = EmpiricalVariograms.measure(apart, 4)
    assert found.is_covariance.tolist() == [[False, True], [True, False]]
    lags = distance_bins(apart.x, 4)
    y = apart.y / np.sqrt(output_variances(apart))[:, None]
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
    found = EmpiricalVariograms.measure(table(rng), 5)
    assert_allclose(
        found.weights, found.n_pairs / np.maximum(found.lag, found.lag[found.lag > 0].min())
    )


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
