"""Inspection of a fitted model: variograms, and parts of the correlations between signals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.inspection import (
    lmc_variogram,
    regressions,
    signal_correlations,
    stacking_weights,
    variogram_warnings,
    variograms,
)
from emgpr.prediction import LMCModel, LMCPosterior
from emgpr.variograms import Lags, ModelVariogram, empirical_variogram
from tests.simulated import world
from tests.stacking.stacked import stacked_posterior


def test_parts_sum_to_the_correlations_of_the_signals(rng):
    W, variances = rng.normal(size=(3, 4, 2)), np.array([0.5, 1.0, 2.0])
    B = W @ np.swapaxes(W, 1, 2)
    parts = signal_correlations(B, variances)
    total = np.einsum("qde,q->de", B, variances)
    std = np.sqrt(np.diagonal(total))
    assert_allclose(parts.sum(axis=0), total / np.outer(std, std), rtol=1e-12)
    assert_allclose(parts[1], B[1] / np.outer(std, std), rtol=1e-12)


def test_an_output_without_a_signal_has_no_correlations(rng):
    W = rng.normal(size=(2, 3, 1))
    W[:, 1] = 0.0
    parts = signal_correlations(W @ np.swapaxes(W, 1, 2), np.ones(2))
    assert np.isnan(parts[:, 1]).all()
    assert np.isnan(parts[:, :, 1]).all()
    assert_array_equal(np.isfinite(parts[:, ::2, ::2]), True)


@pytest.fixture
def made(rng):
    return world(rng, N=40, missing=0.1)


@pytest.fixture
def posterior(made):
    model = LMCModel(made.kernels, made.W[None], made.noise)
    return LMCPosterior(made.observed, model, (np.arange(40),), "all")


def tabulate(posterior, pairs=None, kind="auto"):
    table, of_model = posterior.observations, lmc_variogram(posterior)
    names = ["Cd", "Ni", "Zn"]
    return variograms(table, of_model, names, pairs, n_lags=5, max_lag=None, kind=kind)


def test_empirical_and_model_variograms_are_side_by_side(made, posterior):
    frame = tabulate(posterior, [("Ni", "Ni"), ("Cd", "Zn")])
    assert frame.columns.tolist() == [
        "first", "second", "kind", "lag", "pairs", "empirical", "model",
    ]  # fmt: skip
    assert len(frame) == 10
    lags = Lags.between(made.X, 5)
    lag, value, n = empirical_variogram(made.observed, lags, 0, 2)
    own = frame[frame["second"] == "Zn"]
    assert_allclose(own[["lag", "empirical", "pairs"]], np.transpose([lag, value, n]))
    model = ModelVariogram.from_kernels(made.kernels, made.X, lags)
    B = made.W @ made.W.swapaxes(1, 2)
    assert_allclose(own["model"], model.expected(B, made.noise, 0, 2))


def test_variograms_of_each_output_are_the_default(posterior):
    frame = tabulate(posterior, kind="pseudo")
    assert frame["first"].drop_duplicates().tolist() == ["Cd", "Ni", "Zn"]
    assert (frame["kind"] == "cross").all()  # of one output there is only one kind


def test_unknown_outputs_and_kinds_are_rejected(posterior):
    with pytest.raises(ValueError, match="'Pb', which is not an output"):
        tabulate(posterior, [("Cd", "Pb")])
    with pytest.raises(ValueError, match="kind='both'"):
        tabulate(posterior, kind="both")


def frame_with_sill(*ratios, pairs=100):
    """Variograms of outputs whose model is these multiples of the readings at large lags."""
    empirical = np.array([0.2, 0.6, 1.0, 1.0, 1.0, 1.0])
    far = np.arange(6) >= 3
    parts = [
        pd.DataFrame(
            {
                "first": name, "second": name, "pairs": pairs, "empirical": empirical,
                "model": np.where(far, ratio, 1.0) * empirical,
            }
        )
        for name, ratio in zip(("Cd", "Ni", "Zn"), ratios, strict=False)
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def test_a_sill_above_twice_or_below_half_that_of_the_readings_is_warned_of():
    assert variogram_warnings(frame_with_sill(0.55, 1.0, 1.9)) == []
    high, low = variogram_warnings(frame_with_sill(2.1, 0.4, 5.0))
    assert "far above the readings" in high
    assert "2.1 for Cd, 5 for Zn" in high
    assert "far below the readings" in low
    assert "0.4 for Ni" in low


def test_few_pairs_are_not_enough_for_a_warning():
    assert variogram_warnings(frame_with_sill(5.0, pairs=60)) == []


def test_cross_variograms_are_not_checked():
    frame = frame_with_sill(5.0)
    assert variogram_warnings(frame.assign(second="Ni")) == []


NAMES = ["Cd", "Ni", "Zn"]


@pytest.fixture(scope="module")
def stacked():
    return stacked_posterior()[1]


def test_weights_are_listed_for_every_question(stacked):
    frame, stack = stacking_weights(stacked, NAMES), stacked.stack
    assert list(frame.columns) == ["own", "joint", "regression"]
    assert frame.index.names == ["output", "known", "distance"]
    assert len(frame) == 4 + 2 * len(stack.known)
    for d, name in enumerate(NAMES):
        found, has_gap = stack.unknown[d], name == "Ni"
        assert_array_equal(frame.loc[(name, "", "near" if has_gap else "any")], found.near)
        assert_array_equal(frame.loc[(name, "", "far" if has_gap else "any")], found.far)
    found = stack.known[1, (0, 2)]
    assert_array_equal(frame.loc[("Ni", "Cd, Zn", "near")], found.near)
    assert_array_equal(frame.loc[("Ni", "Cd, Zn", "far")], found.far)


def test_regressions_are_listed_with_their_candidates(stacked):
    frame = regressions(stacked, NAMES)
    fitted = stacked.stack.regressions[2, (0, 1)]
    rows = frame.loc[("Zn", "Cd, Ni")]
    assert len(rows) == len(fitted.kept)
    residual, prior = fitted.kept[0]
    assert_array_equal(rows.iloc[0, :5], [*residual, *prior])
    assert_array_equal(rows[["weight_near", "weight_far"]].T, fitted.weights)
    assert_array_equal(rows[["variance_near", "variance_far"]].T, fitted.variances)


def test_without_a_stack_the_lists_are_empty(stacked):
    joint = stacked.with_transfer()
    weights, fitted = stacking_weights(joint, NAMES), regressions(joint, NAMES)
    assert len(weights) == len(fitted) == 0
    assert list(weights.columns) == list(stacking_weights(stacked, NAMES).columns)
    assert list(fitted.columns) == list(regressions(stacked, NAMES).columns)
