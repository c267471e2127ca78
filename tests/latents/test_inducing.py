"""Inducing points are spread over the sites; blocks consist of neighbours."""

import numpy as np

from emgpr.latents.inducing import inducing_points, neighbour_blocks


def test_points_are_distinct_sites_spread_over_all(rng):
    x = np.repeat(rng.uniform(size=(200, 2)) * [1.0, 1e6], 3, axis=0)
    points = inducing_points(x, 20)
    assert points.shape == (20, 2)
    assert {tuple(point) for point in points} <= {tuple(site) for site in x}
    unit = points / [1.0, 1e6]
    quarters = (unit > 0.5) @ [1, 2]
    assert set(quarters.tolist()) == {0, 1, 2, 3}
    gaps = np.linalg.norm(unit[:, None] - unit, axis=-1) + np.eye(20)
    assert gaps.min() > 0.05  # of random points, the nearest two are 0.02 apart


def test_points_are_chosen_among_some_of_very_many_sites(rng):
    x = rng.uniform(size=(5000, 1))
    points = inducing_points(x, 5)
    assert len(points) == 5
    assert np.isin(points, x).all()
    assert np.ptp(points) > 0.5


def test_blocks_hold_every_site_once_and_only_neighbours(rng):
    x = rng.uniform(size=(500, 2))
    blocks = neighbour_blocks(x, 30)
    assert sorted(np.concatenate(blocks)) == list(range(500))
    assert max(map(len, blocks)) <= 30
    assert np.mean([np.ptp(x[block], axis=0).max() for block in blocks]) < 0.5
