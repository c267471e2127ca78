"""Conditioning on the nearest sites only."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.kernels import distance_scales
from emgpr.observations import Observations
from emgpr.prediction import condition_on_neighbours, neighbouring_sites
from emgpr.prediction.neighbours import unique_per_row
from tests.simulated import nearest, posterior, world


@pytest.mark.parametrize(("missing", "correlated"), [(0.0, False), (0.3, True)])
@pytest.mark.parametrize("n", [1, 4, 11])
def test_each_location_is_predicted_from_the_nearest_readings(rng, n, missing, correlated):
    made = world(rng, missing=missing, correlated=correlated)
    x_new = rng.uniform(size=(5, 2))
    predicted = condition_on_neighbours(made.observations, x_new, made.model, n)
    for i, location in enumerate(x_new):
        mean, cov = posterior(nearest(made, location, n), location[None])
        assert_allclose(predicted.mean[0, i], mean[0], atol=1e-9)
        assert_allclose(predicted.cov[0, i], cov[0], atol=1e-9)


def test_distances_are_measured_in_length_scales_if_columns_have_their_own(rng):
    """The first column in metres, the second in millimetres."""
    made = world(rng, Q=2, D=2, k=1)
    unit = np.array([1.0, 1e3])
    kernels = (RBF([0.3, 400.0]), Matern([0.6, 900.0], nu=1.5))
    made = replace(made, X=made.X * unit, kernels=kernels)
    scale = np.sqrt([0.3 * 0.6, 400.0 * 900.0])
    x_new = rng.uniform(size=(6, 2)) * unit
    predicted = condition_on_neighbours(made.observations, x_new, made.model, 4).mean[0]
    expected = [posterior(nearest(made, x, 4, scale), x[None])[0][0] for x in x_new]
    assert_allclose(predicted, expected, atol=1e-9)
    in_metres = [posterior(nearest(made, x, 4), x[None])[0][0] for x in x_new]
    assert not np.allclose(predicted, in_metres, atol=1e-3)


def test_distance_scales_are_geometric_means_over_kernels_with_a_scale_for_each_column():
    kernels = [2.0 * RBF([1.0, 4.0]), RBF(7.0), Matern([9.0, 1.0]) + RBF([3.0, 2.0])]
    assert_allclose(distance_scales(kernels, 2), [3.0, 2.0])
    assert_array_equal(distance_scales([RBF(7.0)], 2), [1.0, 1.0])
    assert_array_equal(distance_scales([RBF([7.0])], 2), [1.0, 1.0])
    assert_allclose(distance_scales([RBF([7.0])], 1), [7.0])


def test_an_empty_site_is_no_neighbour(rng):
    made = world(rng)
    location = np.array([[0.5, 0.5]])
    with_empty = replace(
        made,
        X=np.vstack([np.tile(location, (4, 1)), made.X]),
        Y=np.vstack([np.full((4, 3), np.nan), made.Y]),
    )
    ours, theirs = (
        condition_on_neighbours(table.observations, location, made.model, 4)
        for table in (with_empty, made)
    )
    assert_allclose(ours.mean, theirs.mean, rtol=1e-9)
    assert_allclose(ours.cov, theirs.cov, rtol=1e-9)


def test_an_output_measured_rarely_has_as_many_neighbours_as_the_others(rng):
    """Two unrelated outputs, one measured at every tenth site: each is predicted as if alone."""
    made = world(rng, N=60, D=2, Q=2, k=1)
    made = replace(made, W=np.eye(2)[..., None])
    made.Y[np.arange(60) % 10 > 0, 0] = np.nan
    alone = replace(
        made, Y=made.Y[:, :1], kernels=made.kernels[:1], W=np.ones((1, 1, 1)),
        noise=made.noise[:1, :1],
    )  # fmt: skip
    x_new = rng.uniform(size=(5, 2))
    both, one = (condition_on_neighbours(m.observations, x_new, m.model, 4) for m in (made, alone))
    assert_allclose(both.mean[..., 0], one.mean[..., 0])
    assert_allclose(both.cov[..., 0, 0], one.cov[..., 0, 0])


def test_neighbouring_sites_are_those_near_any_location_for_some_output():
    x = np.arange(6.0)[:, None]
    Y = np.column_stack([np.ones(6), [1.0, np.nan, np.nan, np.nan, np.nan, 1.0]])
    table = Observations.from_table(x, Y)
    near = neighbouring_sites(table, np.array([[0.9], [2.1]]), [RBF()], 1)
    assert_array_equal(near, [0, 1, 2])  # the second output was measured at 0 and 5 only
    assert_array_equal(neighbouring_sites(table, np.array([[4.0]]), [RBF()], 2), [0, 3, 4, 5])
    empty = Observations.from_table(x, np.full((6, 2), np.nan))
    assert len(neighbouring_sites(empty, x, [RBF()], 2)) == 0


def test_without_readings_the_prior_remains(rng):
    made = world(rng)
    empty = made.table(np.full_like(made.Y, np.nan)).observations
    predicted = condition_on_neighbours(empty, made.X[:3], made.model, 4)
    assert_array_equal(predicted.mean, 0.0)
    assert_allclose(predicted.cov, made.model.prior_covariance(made.X[:3]))


def test_no_locations_are_no_predictions(rng):
    made = world(rng)
    predicted = condition_on_neighbours(made.observations, np.empty((0, 2)), made.model, 4)
    assert predicted.mean.shape == (1, 0, 3)


def test_the_search_for_neighbours_is_prepared_once(rng, monkeypatch):
    """For a table, its coupled outputs and the scales; not for each number of neighbours."""
    import emgpr.observations as module

    made, built = world(rng), []
    table, real = made.observations, module.kd_tree

    def noted(x):
        built.append(len(x))
        return real(x)

    monkeypatch.setattr(module, "kd_tree", noted)
    for n in (4, 4, 5):
        condition_on_neighbours(table, made.X[:2], made.model, n)
        assert len(built) == 1  # of a complete table, one for all outputs


def test_sites_that_several_outputs_share_count_once():
    assert_array_equal(
        unique_per_row(np.array([[4, 4, 2], [7, -1, 7], [1, 0, -1]])), [[4, 2], [7, -1], [1, 0]]
    )
    assert unique_per_row(np.array([[-1, -1]])).shape == (1, 0)
