"""Fourier sums: additive over parts of a table, and exact whatever is computed at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.fourier import grid as grid_module
from emgpr.fourier.grid import FourierSums
from emgpr.observations import Observations
from tests.simulated import world

from .small_features import small_grid


def test_sums_of_parts_add_up_to_those_of_the_whole_in_any_order(rng):
    made = world(rng, N=40, missing=0.3)
    grid = small_grid(2)
    whole = FourierSums.from_observations(grid, made.observed)
    a, b, c, d = (
        FourierSums.from_observations(grid, made.observed.at(part))
        for part in np.array_split(rng.permutation(40), 4)
    )
    for total in ((a + b) + (c + d), d + c + a + b):
        assert total.patterns.keys() == whole.patterns.keys()
        assert total.n_readings == whole.n_readings == made.observed.n_readings
        for outputs, sums in whole.patterns.items():
            for name, value in vars(sums).items():
                assert_allclose(getattr(total.patterns[outputs], name), value, atol=1e-12)
    assert whole.n_sites == int(made.observed.observed.any(axis=0).sum())
    read = made.Y[~np.isnan(made.Y[:, 1]), 1]
    assert_allclose(whole.mean_square(1), np.mean(read**2))


def test_sums_over_different_grids_cannot_be_added(rng):
    made = world(rng, N=5)
    one, other = (FourierSums.from_observations(small_grid(2, n), made.observed) for n in (3, 4))
    with pytest.raises(ValueError, match="cannot be added; compute both with"):
        one + other


def test_a_table_without_readings_has_no_sums():
    table = Observations.from_table(np.zeros((2, 1)), np.full((2, 2), np.nan))
    assert FourierSums.from_observations(small_grid(1), table).n_readings == 0


@pytest.mark.parametrize("P", [1, 3])
def test_sums_and_values_are_those_of_the_exponentials(P, rng, monkeypatch):
    """With few rows at once, so that there are several runs."""
    monkeypatch.setattr(grid_module, "CHUNK_BYTES", 40_000.0)
    grid = small_grid(P)
    x, V = rng.uniform(size=(30, P)), rng.normal(size=(30, 2))
    axes = [range(4), *[range(-3, 4)] * (P - 1)]
    m = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, P)
    E = np.exp(-1j * (x - np.array(grid.low)) @ grid.frequencies(m).T)
    assert_allclose(grid.sums(x, V).reshape(2, -1), V.T @ E, atol=1e-12)
    coefficients = rng.normal(size=(2, *grid.shape)) + 1j * rng.normal(size=(2, *grid.shape))
    expected = (E @ coefficients.reshape(2, -1).T).real
    assert_allclose(grid.evaluate(x, coefficients), expected, atol=1e-11)
