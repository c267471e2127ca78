"""On which sites step 2 starts, from which weights, and what its history calls the start."""

import sys

import numpy as np
import pytest
from simulated import start_of, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.weights import arrange, fit_weights, refine, thinned

module = sys.modules[fit_weights.__module__]


@pytest.fixture
def made(rng, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 60)
    monkeypatch.setattr(module, "EACH", 2)
    return world(rng, N=40, D=3, Q=3, k=1)


@pytest.mark.parametrize(
    ("n_sites", "n_parameters", "left"),
    [(40, 9, 20), (30, 9, 20), (28, 9, 28), (20, 9, 20), (5, 9, 5), (40, 36, 24), (40, 45, 40)],
)
def test_as_many_sites_as_hold_enough_readings_or_all_if_that_is_most(
    made, n_sites, n_parameters, left
):
    """Sixty readings, or two for each parameter: of three outputs at 40 sites half, or more."""
    (some,) = thinned(made.seen, [np.arange(n_sites)], n_parameters)
    assert len(some) == left
    assert np.all(np.diff(some) > 0)


def test_step_2_starts_on_those_and_ends_on_all(made, monkeypatch):
    sizes, real = [], module._loss

    def noted(tables, *rest, **how):
        sizes.append(tables.n_sites)
        return real(tables, *rest, **how)

    monkeypatch.setattr(module, "_loss", noted)
    start, parts = start_of(made), [np.arange(40)]
    fitted = fit_weights(made.seen, parts, start, max_iter=5)
    assert sorted(sizes) == [20, 40]
    sizes.clear()
    fit_weights(made.seen, parts, start, W=fitted.W, max_iter=5)
    assert sizes == [40]  # weights that are given are near the end


def test_a_latent_is_heard_positively_by_most_that_share_it(rng):
    """Whichever sign the eigenvectors of their correlation come with, in every column."""
    for _ in range(10):
        Y = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(30, 4))
        seen = Observations.from_table(rng.uniform(size=(30, 2)), Y / Y.std(axis=0))
        (W,) = arrange([Latent(RBF(0.3), 0.1, 0.0)] * 4, seen, 1, 3).W
        assert np.all(W.sum(axis=0) > 0)


def test_the_history_begins_with_the_start(made):
    start, parts = start_of(made), [np.arange(40)]
    fitted = fit_weights(made.seen, parts, start, max_iter=5)
    history = refine(made.seen, parts, start, fitted, sweeps="joint", max_iter=2).history
    assert [stage.learned for stage in history] == ["start", "everything", "everything"]
