"""Statistics of predictive distributions: values, names and descriptions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from emgpr.prediction import GaussianMixture
from emgpr.statistics import CENTRES, Exceedance, Quantiles, covariances, threshold_per_output
from emgpr.statistics.builtin import Centre, StandardDeviation
from emgpr.transforms import OutputScaler

NAMES = ("Cd", "Zn")
UNITS = {"Cd": "mg/kg"}


@pytest.fixture
def scaler(rng):
    return OutputScaler.fit(rng.normal(3.0, 2.0, size=(50, 2)), [None, None], names=NAMES)


@pytest.fixture
def distribution(rng):
    """One Gaussian of two outputs at four locations."""
    root = rng.normal(size=(1, 4, 2, 2))
    return GaussianMixture(rng.normal(size=(1, 4, 2)), root @ np.swapaxes(root, -1, -2))


def gaussian(scaler, distribution):
    """The same distribution in original units."""
    std = np.sqrt(np.einsum("mdd->md", distribution.cov[0])) * scaler.scale
    return norm(scaler.to_original(distribution.mean[0]), std)


def test_values_are_those_of_the_distribution_in_original_units(scaler, distribution):
    expected = gaussian(scaler, distribution)
    q = [0.1, 0.9]
    thresholds = np.array([2.0, 4.0])
    for statistic, values in (
        (Centre("median"), expected.median()[None]),
        (Centre("mean"), expected.mean()[None]),
        (StandardDeviation(), expected.std()[None]),
        (Quantiles(q), np.stack([expected.ppf(p) for p in q])),
        (Exceedance(thresholds), expected.sf(thresholds)[None]),
    ):
        found = statistic(scaler, distribution)
        assert found.shape == (statistic.n_values, 4, 2)
        assert_allclose(found, values, rtol=1e-9)


def test_covariances_are_of_each_output_with_every_other(scaler, distribution):
    found = covariances(scaler, distribution)
    assert found.shape == (2, 4, 2)
    expected = distribution.cov[0] * np.outer(scaler.scale, scaler.scale)
    assert_allclose(np.moveaxis(found, 0, 1), expected)


def test_columns_and_descriptions_name_the_output():
    quantiles = Quantiles([0.05, 0.95])
    exceedance = Exceedance(np.array([0.8, np.nan]))
    assert Centre("mean").columns("Cd", 0) == ["Cd"]
    assert StandardDeviation().columns("Cd", 0) == ["Cd_std"]
    assert quantiles.columns("Cd", 0) == ["Cd_q0.05", "Cd_q0.95"]
    assert exceedance.columns("Cd", 0) == ["Cd_above_0.8"]
    assert Centre("mean").describe("Cd", 0, UNITS) == "mean of Cd"
    assert StandardDeviation().describe("Cd", 0, UNITS) == "standard deviation of Cd"
    assert quantiles.describe("Cd", 0, UNITS) == "quantiles of Cd"
    described = exceedance.describe("Cd", 0, UNITS)
    assert described == "probability that Cd is above 0.8 mg/kg"
    assert exceedance.describe("Cd", 0, {}) == "probability that Cd is above 0.8"


def test_statistics_have_the_unit_of_their_output_and_probabilities_none():
    assert Centre("median").unit("Cd", UNITS) == "mg/kg"
    assert Centre("median").unit("Zn", UNITS) is None
    assert Exceedance(np.array([0.8, np.nan])).unit("Zn", UNITS) == "1"


def test_only_quantiles_have_an_axis():
    quantiles = Quantiles([0.05, 0.95])
    dims, values, attributes = quantiles.coordinate()[quantiles.axis]
    assert dims == ("quantile",)
    assert_array_equal(values, [0.05, 0.95])
    assert attributes["units"] == "1"
    assert Centre("median").axis is None
    assert Centre("median").coordinate() == {}


def test_exceedance_applies_to_outputs_with_a_threshold():
    exceedance = Exceedance(threshold_per_output({"Zn": 4.0}, NAMES))
    assert [exceedance.applies_to(d) for d in (0, 1)] == [False, True]
    assert all(StandardDeviation().applies_to(d) for d in (0, 1))


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1.0, [1.0, 1.0]), ([1.0, 2.0], [1.0, 2.0]), ({"Zn": 4.0}, [np.nan, 4.0])],
)
def test_thresholds_are_one_for_each_output(given, expected):
    assert_array_equal(threshold_per_output(given, NAMES), expected)


def test_thresholds_of_numbered_outputs_can_have_integer_keys():
    for key in (1, np.int64(1), "1"):
        assert_array_equal(threshold_per_output({key: 4.0}, ["0", "1"]), [np.nan, 4.0])
    with pytest.raises(ValueError, match=r"exceedance has the keys \[1, '1'\].* the same column"):
        threshold_per_output({1: 4.0, "1": 5.0}, ["0", "1"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"exceedance has shape \(1,\); expected one threshold for all outputs, or 2"),
        ({"Pb": 1.0}, r"exceedance has thresholds for \['Pb'\]; .* are \['Cd', 'Zn'\]"),
        ({}, r"exceedance has thresholds for \[\]"),
    ],
)
def test_thresholds_of_other_outputs_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        threshold_per_output(given, NAMES)


@pytest.mark.parametrize("q", [0, 1.5, [0.5, np.nan], [[0.5]]])
def test_quantiles_outside_0_and_1_are_refused(q):
    with pytest.raises(ValueError, match=r"quantiles=.*; expected probabilities between 0 and 1"):
        Quantiles(q)


def test_an_unknown_centre_is_refused():
    assert all(Centre(name).statistic == name for name in CENTRES)
    with pytest.raises(ValueError, match="statistic='mode'; expected 'median' or 'mean'"):
        Centre("mode")
