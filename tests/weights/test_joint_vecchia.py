"""The joint optimisation with Vecchia's likelihood reaches the maximum and recovers the truth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, LMC
from emgpr.observations import Observations
from emgpr.weights import automatic_neighbours, vecchia_search
from tests.simulated import smooth_table


@pytest.mark.parametrize(
    ("N", "D", "expected"),
    [(1, 3, 0), (2, 3, 1), (16, 3, 15), (10**6, 3, 15), (10**6, 30, 5), (10**6, 100, 5)],
)
def test_neighbours_are_fewer_with_many_outputs_and_more_with_few_sites(N, D, expected):
    assert automatic_neighbours(N, D) == expected


@pytest.fixture
def table(rng):
    X, Y = smooth_table(rng, N=60)
    Y[::5, 1] = np.nan
    return X, (Y - np.nanmean(Y, 0)) / np.nanstd(Y, 0)


def fitted(table, **settings):
    given = {"output_transform": None, "random_state": 0, "rank": 1} | settings
    return LMC(RBF(), **given).fit(*table)


def test_with_all_neighbours_it_reaches_the_maximum_of_the_exact_likelihood(table):
    """Within the tolerance of both searches, a thousandth of the number of readings each."""
    exact, vecchias = (fitted(table, n_neighbours=n) for n in (None, 59))
    n = np.isfinite(table[1]).sum()
    assert vecchias.history_[-1][1] > exact.history_[-1][1] - 0.01 * n
    assert vecchias.converged_


def test_the_history_does_not_decrease(table):
    values = [value for _, value in fitted(table).history_]
    assert len(values) > 1
    assert np.all(np.diff(values) >= 0)


def test_few_neighbours_give_nearly_the_same_predictions(table, rng):
    X = rng.uniform(size=(40, table[0].shape[1]))
    exact, vecchias = (fitted(table, n_neighbours=n).predict(X) for n in (None, 12))
    assert np.sqrt(np.mean((exact - vecchias) ** 2)) < 0.2


def test_the_order_of_the_rows_does_not_matter(table, rng):
    rows = rng.permutation(60)
    one = fitted(table, n_neighbours=10)
    two = fitted((table[0][rows], table[1][rows]), n_neighbours=10)
    assert_allclose(two.predict(table[0]), one.predict(table[0]), atol=0.05)


def test_many_sites_are_fitted_in_growing_parts(table, monkeypatch):
    monkeypatch.setattr(vecchia_search, "COARSE_BLOCKS", 10)
    monkeypatch.setattr(vecchia_search, "GROWTH", 2)
    monkeypatch.setattr(vecchia_search, "FIRST_SITES", 30)
    sizes, n_iters = [], []
    inner = vecchia_search.VecchiaSearch.run

    def run(self, density, *given, **settings):
        sizes.append(len(density.table.blocks))
        result, values = inner(self, density, *given, **settings)
        n_iters.append(result.n_iter)
        return result, values

    monkeypatch.setattr(vecchia_search.VecchiaSearch, "run", run)
    model = fitted(table, n_neighbours=8)
    assert sizes[:3] == [30] * 3  # six sites are too few to hold out
    assert sizes[3:] == [10, 10, 20, 60]
    assert n_iters[-1] >= 2
    assert np.isfinite(model.log_marginal_likelihood_value_)


def test_a_latent_without_correlation_becomes_noise(rng):
    """The correlated noise of two outputs is not modelled as a process."""
    X = rng.uniform(size=(120, 2))
    common = rng.normal(size=(120, 1))
    Y = np.hstack([np.sin(4 * X[:, :1]), np.cos(3 * X[:, 1:])]) + 0.5 * common
    Y += 0.1 * rng.normal(size=Y.shape)
    model = EMGPR("rbf", rank=1, noise="correlated", output_transform=None, random_state=0).fit(
        X, Y
    )
    noise = model.noise_
    assert noise[0, 1] / np.sqrt(noise[0, 0] * noise[1, 1]) > 0.7


def test_a_search_that_does_not_converge_is_reported(table):
    with pytest.warns(UserWarning, match="did not converge within max_iter=1"):
        assert not fitted(table, max_iter=1).converged_


def test_held_out_sites_are_given_known_sites(rng):
    observations = Observations.from_table(rng.uniform(size=(20, 2)), rng.normal(size=(20, 2)))
    from emgpr.parallel import DEFAULT_EXECUTION
    from emgpr.weights import LMCParameters

    start = LMCParameters(
        (RBF(0.3),), 0.5 * np.eye(2), 0.7 * np.ones((1, 2, 1)), np.tile([1e-8, 1e2], (2, 1))
    )
    search = vecchia_search.VecchiaSearch(
        observations, lambda p: None, True, 10, False, DEFAULT_EXECUTION
    )
    found = search._held_out_density(start, np.arange(5), np.arange(5, 20), 3)
    assert found.shape == (5,)
    assert np.isfinite(found).all()


def test_a_search_with_the_exact_likelihood_has_the_information_of_vecchias(table):
    """With all neighbours, which for 60 sites differ little from those chosen automatically."""
    far = np.array([[3.0, 3.0], [0.5, 0.5]])
    exact, vecchias = (fitted(table, n_neighbours=n) for n in (None, 59))
    without = fitted(table, n_neighbours=None, parameter_uncertainty=False)
    std = [model.predict(far, return_std=True)[1] for model in (exact, vecchias, without)]
    assert_allclose(std[0], std[1], rtol=0.05)
    assert (std[0] > 1.02 * std[2])[0].all()
