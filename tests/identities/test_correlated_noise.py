"""Noise that the outputs of a sample share: what it tells of them, and that it is learned."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import (
    World,
    gram,
    known_model,
    nearest,
    paper,
    posterior,
    reading_posterior,
    smooth_table,
    world,
)
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.ensemble import mixture


@pytest.fixture
def made(rng):
    return world(rng, k=1, missing=0.4, correlated=True)


def check_same(ours, theirs, atol=1e-8):
    assert_allclose(ours[0], theirs[0], atol=atol)
    assert_allclose(ours[1], theirs[1], atol=atol)


@pytest.mark.parametrize("conditioning", ["all", 99])
def test_at_a_training_site_the_output_that_is_missing_is_of_the_same_sample(made, conditioning):
    """Its reading is conditioned on those that were made there, through signal and noise."""
    ours = known_model(made, conditioning=conditioning).predict(made.X, return_cov=True)
    check_same(ours, reading_posterior(made, made.X, np.arange(len(made.X))))
    fresh, _ = reading_posterior(made, made.X, np.full(len(made.X), -1))
    partly = np.isnan(made.Y) & ~np.isnan(made.Y).all(axis=1, keepdims=True)
    assert np.all(np.abs(ours[0] - fresh)[partly] > 1e-6)  # forgetting that would be noticed


@pytest.mark.parametrize("n", [1, 4])
def test_so_it_is_among_few_neighbours(made, n):
    """Of which the sample itself is the nearest."""
    rows = np.flatnonzero(~np.isnan(made.Y).all(axis=1))
    mean, cov = known_model(made, conditioning=n).predict(made.X[rows], return_cov=True)
    for i, row in enumerate(rows):
        near = nearest(made, made.X[row], n)
        same = np.flatnonzero(np.equal(near.X, made.X[row]).all(axis=1))
        expected = reading_posterior(near, made.X[[row]], same)
        check_same((mean[[i]], cov[[i]]), expected)


def test_the_signal_there_knows_nothing_of_that(made):
    ours = known_model(made).predict(made.X, return_cov=True, include_noise=False)
    check_same(ours, posterior(made, made.X))


def test_predictions_without_their_uncertainty_are_the_same(made, rng):
    model = known_model(made)
    observed = np.where(rng.uniform(size=made.Y.shape) < 0.3, 1.0, np.nan)
    for known in (None, observed):
        with_std, _ = model.predict(made.X, return_std=True, observed=known)
        assert_allclose(model.predict(made.X, observed=known), with_std, rtol=1e-12)


def test_a_site_visited_twice_is_no_one_sample(made):
    """Which of the two is asked for nobody knows: it is a third."""
    twice = replace(made, X=made.X.copy())
    twice.X[3] = twice.X[0]
    ours = known_model(twice).predict(twice.X, return_cov=True)
    same_as = np.arange(12)
    same_as[[0, 3]] = -1
    check_same(ours, reading_posterior(twice, twice.X, same_as))


def test_what_is_observed_at_a_training_site_is_another_sample(made, rng):
    """Where nothing is observed it is the one of the table."""
    observed = np.full((12, 3), np.nan)
    observed[::2, 1] = rng.normal(size=6)
    later = replace(made, X=np.vstack([made.X, made.X]), Y=np.vstack([made.Y, observed]))
    same_as = np.where(np.arange(12) % 2 == 0, 12, 0) + np.arange(12)
    ours = known_model(made).predict(made.X, return_cov=True, observed=observed)
    check_same(ours, reading_posterior(later, made.X, same_as))


def test_samples_observed_at_one_place_are_each_their_own(made, rng):
    x_new = np.tile(rng.uniform(size=(1, 2)), (4, 1))
    observed = rng.normal(size=(4, 3))
    observed[0, 0] = observed[1, 1:] = observed[2] = np.nan
    later = replace(made, X=np.vstack([made.X, x_new]), Y=np.vstack([made.Y, observed]))
    ours = known_model(made).predict(x_new, return_cov=True, observed=observed)
    check_same(ours, reading_posterior(later, x_new, 12 + np.arange(4)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Batches of .* sites are small")
@pytest.mark.filterwarnings("ignore:Nothing was read in")
@pytest.mark.parametrize("batch_size", [None, 9])
def test_an_ensemble_reads_as_the_mixture_of_what_its_members_would(rng, batch_size):
    """In the user's units, at sites of the table, at new ones and where some is observed."""
    X, Y = smooth_table(rng, N=24)
    Y[rng.uniform(size=Y.shape) < 0.3] = np.nan
    model = paper(
        noise="correlated",
        refine=1,
        batch_size=batch_size,
        max_iter=4,
        n_restarts=2,
        random_state=0,
    ).fit(X, Y)
    assert len(model.weights_) == (1 if batch_size is None else 2)
    x = np.vstack([X[:6], rng.uniform(size=(6, 2))])
    observed = np.full((12, 3), np.nan)
    observed[8:, 0], observed[10:, 2] = np.nanmean(Y[:, 0]), np.nanmean(Y[:, 2])
    centre, scale = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    beliefs = [
        reading_posterior(
            World(
                np.vstack([X, x]),
                (np.vstack([Y, observed]) - centre) / scale,
                tuple(model.kernels_),
                W,
                model.noise_,
            ),
            x,
            [*range(6), -1, -1, *range(32, 36)],
        )
        for W in model.weights_
    ]
    mean, cov = mixture(*(np.array(part) for part in zip(*beliefs, strict=True)))
    ours = model.predict(x, return_cov=True, observed=observed, statistic="mean")
    check_same(
        ((ours[0] - centre) / scale, ours[1] / np.outer(scale, scale)), (mean, cov), atol=1e-7
    )


def test_noise_is_learned_alike_in_any_order_of_the_outputs(rng):
    """To the end of the ascent: the way there may differ."""
    X, Y = smooth_table(rng, N=30, noise=0.3)
    Y = Y[:, :2] + 0.5 * Y.std(axis=0)[:2] * rng.normal(size=(30, 1))
    settings = {"noise": "correlated", "refine": "joint", "n_latents": 1, "rank": 2}
    one, other = (
        paper(Matern(nu=1.5), max_iter=1000, random_state=0, **settings).fit(X, table)
        for table in (Y, Y[:, ::-1])
    )
    assert_allclose(
        one.log_marginal_likelihood_value_, other.log_marginal_likelihood_value_, atol=1e-3
    )
    assert_allclose(one.noise_, other.noise_[::-1, ::-1], atol=0.01)


SITES, ASKED, DRAWS = 200, 150, 3


def shared_noise(seed, correlation):
    """Two outputs of a rough and a smooth latent, half signal and half noise."""
    rng = np.random.default_rng(seed)
    N = SITES + ASKED
    W = np.array([[1.0, 0.6], [0.5, -0.9]])[..., None]
    noise = 0.3 * np.array([[1.0, correlation], [correlation, 1.0]])
    kernels = (RBF(0.15), Matern(0.5, nu=1.5))
    made = World(rng.uniform(size=(N, 2)), np.zeros((N, 2)), kernels, W, noise)
    Y = (np.linalg.cholesky(gram(made)) @ rng.normal(size=2 * N)).reshape(2, N).T
    return made.X[:SITES], Y[:SITES], made.X[SITES:], Y[SITES:]


def learned(X, Y, noise):
    return paper(noise=noise, refine="joint", n_restarts=2, max_iter=60, random_state=0).fit(X, Y)


def correlation_of(model):
    noise = model.noise_
    return noise[0, 1] / np.sqrt(noise[0, 0] * noise[1, 1])


@pytest.fixture(scope="module")
def rivals():
    """Correlations that were learned, and squared errors of the first output, the second known."""
    correlations, joined, apart = [], [], []
    for seed in range(DRAWS):
        X, Y, x, y = shared_noise(seed, 0.8)
        observed = np.column_stack([np.full(ASKED, np.nan), y[:, 1]])
        for noise, errors in (("correlated", joined), ("independent", apart)):
            model = learned(X, Y, noise)
            errors.append((model.predict(x, observed=observed)[:, 0] - y[:, 0]) ** 2)
            if noise == "correlated":
                correlations.append(correlation_of(model))
    return np.array(correlations), np.ravel(joined), np.ravel(apart)


def test_the_correlation_of_the_noise_is_recovered(rivals):
    """Over 60 draws the estimates spread by 0.034 around 0.793; four of those, a draw."""
    assert np.all(np.abs(rivals[0] - 0.8) < 4 * 0.034)


def test_noise_that_is_not_joined_is_not_found_to_be():
    """The standard error at zero is 1/√200 = 0.07 if the signals are known; four of those."""
    X, Y, *_ = shared_noise(0, 0.0)
    assert abs(correlation_of(learned(X, Y, "correlated"))) < 4 * 0.07


def test_an_output_is_predicted_better_by_who_knows_that_noise_is_shared(rivals):
    """Paired, by more than four standard errors; in 15 runs of four draws it was 5.6 to 11."""
    _, joined, apart = rivals
    gain = apart - joined
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(len(gain))
