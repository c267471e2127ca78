"""Starting points lead to the highest optimum, whatever the seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.datasets import load_jura
from emgpr.latents import SiteDistances, fit_latents, search_space
from emgpr.latents.starts import (
    MAX_STARTS,
    MIN_DISTANCE,
    SUBSAMPLE_SITES,
    WarmStart,
    find_starting_points,
    given_starting_points,
)
from emgpr.observations import Observations


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=1.5)])
def test_every_seed_finds_the_higher_of_two_optima_of_raw_metals(kernel):
    """Raw Cd and Zn: a short range with little noise is 20 to 40 above a long one with much."""
    train = load_jura().train
    Y = train[["Cd", "Zn"]].to_numpy()
    observations = Observations.from_table(
        train[["Xloc", "Yloc"]].to_numpy(), (Y - Y.mean(axis=0)) / Y.std(axis=0)
    )
    values = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found = fit_latents(observations, [kernel] * 2, n_restarts=5, max_iter=120, rng=rng)
        values.append([latent.log_likelihood for latent in found])
    assert_allclose(values, np.tile(values[0], (4, 1)), atol=1e-3)


def test_an_optimum_whose_start_looks_worse_is_found():
    """Two optima, 9 log units apart; the start that leads to the higher one looks worse."""
    rng = np.random.default_rng(1038)
    N, P = int(rng.choice([25, 60, 150, 260])), int(rng.choice([2, 3, 5]))
    X = rng.uniform(size=(N, P))
    scales, noise = 10 ** rng.uniform(-1.2, 0.7, size=P), 10 ** rng.uniform(-3, 0.2)
    K = (RBF(scales) + RBF(scales / 8))(X) + 1e-7 * np.eye(N)
    y = np.linalg.cholesky(K) @ rng.normal(size=N) + np.sqrt(noise) * rng.normal(size=N)
    table = Observations.from_table(X, ((y - y.mean()) / y.std())[:, None])
    (latent,) = fit_latents(
        table, [RBF(np.ones(P))], n_restarts=5, max_iter=200, rng=np.random.default_rng(0)
    )
    assert latent.log_likelihood > -75.87


def test_the_points_of_an_output_are_distinct_and_inside_the_bounds(draw):
    X, Y = draw(RBF(0.2), 0.2, N=SUBSAMPLE_SITES + 30)
    table = Observations.from_table(X, np.hstack([Y, Y[::-1]]))
    search = search_space(RBF(), None, SiteDistances(X), 5, np.random.default_rng(0))
    points = find_starting_points(table, RBF(), search, 120, weak_prior=True, device="cpu")
    low, high = search.bounds.T
    assert np.all((points.x >= low) & (points.x <= high))
    for d in (0, 1):
        own = points.x[points.outputs == d]
        assert 1 <= len(own) <= MAX_STARTS
        gaps = [np.abs(a - b).max() for i, a in enumerate(own) for b in own[:i]]
        assert all(gap > MIN_DISTANCE for gap in gaps)
    assert len(points.select(range(1)).x) == 1


def test_given_starts_are_kept_inside_the_bounds_with_a_curvature_for_all_readings(draw):
    X, Y = draw(RBF(0.2), 0.2, N=3 * SUBSAMPLE_SITES)
    table = Observations.from_table(X, np.hstack([Y, Y[::-1]]))
    search = search_space(RBF(), None, SiteDistances(X), 5, np.random.default_rng(0))
    starts = [WarmStart(RBF(0.3), 0.1, -80.0), WarmStart(RBF(1e9), 0.2)]
    points = given_starting_points(table, RBF(), search, starts, weak_prior=True)
    assert_allclose(np.exp(points.x[0]), [0.3, 0.1])
    assert_allclose(points.x[1], [search.bounds[0, 1], np.log(0.2)])
    assert points.outputs.tolist() == [0, 1]
    assert points.to_exceed.tolist() == [-80.0, -np.inf]
    changes = [
        given_starting_points(
            table.at(sites), RBF(), search, starts, weak_prior=False
        ).memory.gradient_changes[0]
        for sites in (table.subsample(SUBSAMPLE_SITES), np.arange(table.n_sites))
    ]
    assert_allclose(np.abs(changes[1]), 3 * np.abs(changes[0]), rtol=1e-6)


def test_a_warm_start_ends_at_the_optimum_that_a_search_from_scratch_finds(draw):
    X, Y = draw(Matern(0.2, nu=1.5), 0.2, N=90)
    table, rng = Observations.from_table(X, Y), np.random.default_rng(0)
    settings = {"n_restarts": 5, "max_iter": 120, "rng": rng, "weak_prior": True}
    (found,) = fit_latents(table, [Matern(nu=1.5)], **settings)
    start = WarmStart(Matern(0.4, nu=1.5), 0.1)
    (warm,) = fit_latents(table, [Matern(nu=1.5)], starts=[start], **settings)
    assert_allclose(warm.log_likelihood, found.log_likelihood, atol=5e-3)
    assert warm.message == ""


def test_a_search_ends_early_only_if_it_will_not_exceed_the_given_likelihood(draw):
    X, Y = draw(Matern(0.2, nu=1.5), 0.2, N=90)
    table, rng = Observations.from_table(X, Y), np.random.default_rng(0)
    settings = {"n_restarts": 5, "max_iter": 120, "rng": rng, "weak_prior": True}
    (found,) = fit_latents(table, [RBF()], **settings)
    for lead, ends_early in ((-1.0, False), (100.0, True)):
        start = WarmStart(RBF(0.3), 0.1, found.log_likelihood + lead)
        (warm,) = fit_latents(table, [RBF()], starts=[start], **settings)
        assert warm.log_likelihood < found.log_likelihood + 1e-2
        assert (warm.log_likelihood < found.log_likelihood - 5e-3) == ends_early
