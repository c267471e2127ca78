"""The problems have the shapes that their names say, and standardised outputs."""

import numpy as np
import pytest

from benchmarks.data import PROBLEMS, SIDE, DataNotAvailable, heaton, simulated

pytestmark = pytest.mark.slow

SHAPES = {"jura": ((359, 3), (100, 3)), "amsua": ((315, 6), (315, 6))}


@pytest.mark.parametrize("name", SHAPES)
def test_problems_of_embedded_data_are_standardised(name):
    problem = PROBLEMS[name]()
    assert (problem.Y.shape, problem.truth.shape) == SHAPES[name]
    np.testing.assert_allclose(np.nanmean(problem.Y, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(problem.Y, axis=0), 1, atol=1e-12)


def test_jura_predicts_cadmium_with_errors_in_mg_per_kg():
    problem = PROBLEMS["jura"]()
    assert np.isnan(problem.truth).all(axis=0).tolist() == [False, True, True]
    median_of_cd = np.nanmean(problem.loss(problem.truth, np.zeros((100, 3)))[:, 0])
    assert 0.5 < median_of_cd < 0.65  # predicting the median of Cd: 0.56


def test_simulated_problems_have_the_named_size_and_are_repeatable():
    problem, again = PROBLEMS["simulated-200x5"](), simulated(200, 5)
    assert problem.Y.shape == (200, 5)
    assert problem.truth.shape == (200, 5)
    np.testing.assert_array_equal(problem.Y, again.Y)


def test_without_a_granule_the_error_names_the_variable_to_set(monkeypatch):
    monkeypatch.delenv("EMGPR_ATMS", raising=False)
    with pytest.raises(DataNotAvailable, match="set EMGPR_ATMS"):
        PROBLEMS["atms"]()


def test_a_granule_gives_800_training_sites_of_ten_channels(granule, monkeypatch):
    pytest.importorskip("h5py")
    monkeypatch.setenv("EMGPR_ATMS", str(granule[0].parent))
    problem = PROBLEMS["atms"]()
    assert (problem.Y.shape, problem.truth.shape) == ((800, 10), (200, 10))


def test_without_an_image_the_error_names_the_variable_to_set(monkeypatch):
    monkeypatch.delenv("EMGPR_HEATON", raising=False)
    with pytest.raises(DataNotAvailable, match="set EMGPR_HEATON"):
        PROBLEMS["heaton-1"]()


def test_readings_in_shifted_gaps_of_an_image_are_held_out(tmp_path, monkeypatch, rng):
    """A grid of 30 × 20 cells, of which a block is asked for and absent from the training part."""
    X = np.stack(np.meshgrid(np.arange(30.0), np.arange(20.0), indexing="ij"), -1).reshape(-1, 2)
    y = rng.normal(size=600)
    asked = (X[:, 0] < 5) & (X[:, 1] < 4)
    file = tmp_path / "satellite_training.npz"
    np.savez(file, lon_lat=X[~asked], temperature=y[~asked], asked_lon_lat=X[asked])
    monkeypatch.setenv("EMGPR_HEATON", str(file))
    problem = heaton((10, 7))
    assert problem.truth.shape == (20, 1)
    assert len(problem.X) == 600 - 20 - 20
    held_out = problem.X_new * 29 / SIDE
    np.testing.assert_allclose(held_out.min(axis=0), [10, 7], atol=1e-9)
    np.testing.assert_allclose(held_out.max(axis=0), [14, 10], atol=1e-9)
    assert problem.methods is not None
