"""Correlated noise: what it says about other outputs of a sample, and that it is found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.ensemble import mixture
from tests.simulated import World, gram, known_model, paper, reading_posterior, smooth_table, world

pytestmark = pytest.mark.slow


def check_same(ours, theirs, atol=1e-8):
    assert_allclose(ours[0], theirs[0], atol=atol)
    assert_allclose(ours[1], theirs[1], atol=atol)


def test_predictions_without_their_uncertainty_are_the_same(rng):
    made = world(rng, k=1, missing=0.4, correlated=True)
    model = known_model(made)
    observed = np.where(rng.uniform(size=made.Y.shape) < 0.3, 1.0, np.nan)
    for known in (None, observed):
        with_std, _ = model.predict(made.X, return_std=True, observed=known)
        assert_allclose(model.predict(made.X, observed=known), with_std, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Batches of .* sites are too small")
@pytest.mark.filterwarnings("ignore:Nothing was measured in")
@pytest.mark.parametrize("batch_size", [None, 9])
def test_an_ensemble_predicts_the_mixture_of_its_members(rng, batch_size):
    """In original units, at sites of the table, at new locations and with outputs observed."""
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
    predictions = [
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
    mean, cov = mixture(*(np.array(part) for part in zip(*predictions, strict=True)))
    ours = model.predict(x, return_cov=True, observed=observed, statistic="mean")
    check_same(
        ((ours[0] - centre) / scale, ours[1] / np.outer(scale, scale)), (mean, cov), atol=1e-7
    )


def test_the_fitted_noise_does_not_depend_on_the_order_of_the_outputs(rng):
    """At the end of the optimisation: the way there may differ."""
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


SITES, NEW, TABLES = 200, 150, 3


def a_table(seed, correlation):
    """Two outputs of a rough and a smooth latent process, half signal and half noise."""
    rng = np.random.default_rng(seed)
    N = SITES + NEW
    W = np.array([[1.0, 0.6], [0.5, -0.9]])[..., None]
    noise = 0.3 * np.array([[1.0, correlation], [correlation, 1.0]])
    kernels = (RBF(0.15), Matern(0.5, nu=1.5))
    made = World(rng.uniform(size=(N, 2)), np.zeros((N, 2)), kernels, W, noise)
    Y = (np.linalg.cholesky(gram(made)) @ rng.normal(size=2 * N)).reshape(2, N).T
    return made.X[:SITES], Y[:SITES], made.X[SITES:], Y[SITES:]


def fitted(X, Y, noise):
    return paper(noise=noise, refine="joint", n_restarts=2, max_iter=60, random_state=0).fit(X, Y)


def correlation_of(model):
    noise = model.noise_
    return noise[0, 1] / np.sqrt(noise[0, 0] * noise[1, 1])


@pytest.fixture(scope="module")
def compared():
    """Fitted correlations, and squared errors of the first output where the second is known."""
    correlations, correlated, independent = [], [], []
    for seed in range(TABLES):
        X, Y, x, y = a_table(seed, 0.8)
        observed = np.column_stack([np.full(NEW, np.nan), y[:, 1]])
        for noise, errors in (("correlated", correlated), ("independent", independent)):
            model = fitted(X, Y, noise)
            errors.append((model.predict(x, observed=observed)[:, 0] - y[:, 0]) ** 2)
            if noise == "correlated":
                correlations.append(correlation_of(model))
    return np.array(correlations), np.ravel(correlated), np.ravel(independent)


def test_the_correlation_of_the_noise_is_recovered(compared):
    """Over 60 tables the estimates have a standard deviation of 0.034 around 0.793; four of it."""
    assert np.all(np.abs(compared[0] - 0.8) < 4 * 0.034)


def test_independent_noise_is_found_to_be_uncorrelated():
    """The standard error at zero is 1/√200 = 0.07 if the signals are known; four of those."""
    X, Y, *_ = a_table(0, 0.0)
    assert abs(correlation_of(fitted(X, Y, "correlated"))) < 4 * 0.07


def test_correlated_noise_improves_predictions_given_another_output(compared):
    """Paired, by more than four standard errors; in 15 runs of four tables it was 5.6 to 11."""
    _, correlated, independent = compared
    gain = independent - correlated
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(len(gain))
