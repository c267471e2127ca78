"""Conditioning on the nearest sites only."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import nearest, posterior, world
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.observations import Observations
from emgpr.prediction import condition_on_neighbours


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 4, 11])
def test_each_site_is_predicted_from_its_nearest(rng, n, missing, correlated):
    made = world(rng, missing=missing, correlated=correlated)
    x_new = rng.uniform(size=(5, 2))
    belief = condition_on_neighbours(made.seen, x_new, made.kernels, made.W[None], made.noise, n)
    for i, site in enumerate(x_new):
        mean, cov = posterior(nearest(made, site, n), site[None])
        assert_allclose(belief.mean[0, i], mean[0], atol=1e-9)
        assert_allclose(belief.cov[0, i], cov[0], atol=1e-9)


def test_near_is_measured_in_length_scales_where_the_columns_have_their_own(rng):
    """The first column in metres, the second in millimetres."""
    made = world(rng, Q=2, D=2, k=1)
    unit = np.array([1.0, 1e3])
    kernels = (RBF([0.3, 400.0]), Matern([0.6, 900.0], nu=1.5))
    made = replace(made, X=made.X * unit, kernels=kernels)
    scale = np.sqrt([0.3 * 0.6, 400.0 * 900.0])
    x_new = rng.uniform(size=(6, 2)) * unit
    belief = condition_on_neighbours(made.seen, x_new, kernels, made.W[None], made.noise, 4)
    expected = [posterior(nearest(made, site, 4, scale), site[None])[0][0] for site in x_new]
    assert_allclose(belief.mean[0], expected, atol=1e-9)
    in_metres = [posterior(nearest(made, site, 4), site[None])[0][0] for site in x_new]
    assert not np.allclose(belief.mean[0], in_metres, atol=1e-3)


def test_a_site_where_nothing_was_measured_takes_no_neighbours_place(rng):
    """A NaN reading equals its absence, here too."""
    made = world(rng)
    site = np.array([[0.5, 0.5]])
    empty = replace(
        made,
        X=np.vstack([np.tile(site, (4, 1)), made.X]),
        Y=np.vstack([np.full((4, 3), np.nan), made.Y]),
    )
    given = site, made.kernels, made.W[None], made.noise, 4
    with_empty = condition_on_neighbours(empty.seen, *given)
    without = condition_on_neighbours(made.seen, *given)
    assert_allclose(with_empty.mean, without.mean, rtol=1e-9)
    assert_allclose(with_empty.cov, without.cov, rtol=1e-9)


def test_an_output_measured_rarely_is_not_crowded_out_by_the_others(rng):
    """Two unrelated outputs, one measured at every tenth site: each is predicted as if alone."""
    made = world(rng, N=60, D=2, Q=2, k=1)
    W = np.eye(2)[..., None]
    made.Y[np.arange(60) % 10 > 0, 0] = np.nan
    known = Observations.from_table(made.X, made.Y)
    alone = Observations.from_table(made.X, made.Y[:, :1])
    x_new = rng.uniform(size=(5, 2))
    both = condition_on_neighbours(known, x_new, made.kernels, W[None], made.noise, 4)
    one = condition_on_neighbours(
        alone, x_new, made.kernels[:1], np.ones((1, 1, 1, 1)), made.noise[:1, :1], 4
    )
    assert_allclose(both.mean[..., 0], one.mean[..., 0])
    assert_allclose(both.cov[..., 0, 0], one.cov[..., 0, 0])
