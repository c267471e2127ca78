"""Conditioning on readings in all directions, as many as are worthwhile."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

import emgpr.prediction.neighbours as module
from emgpr.observations import Observations
from emgpr.prediction import (
    LMCModel,
    condition,
    condition_on_neighbours,
    condition_on_surrounding,
    neighbouring_sites,
)
from tests.simulated import world


def one_output(x, kernel, noise, rng):
    """Readings of one output, drawn from the model."""
    K = kernel(x) + noise * np.eye(len(x))
    y = np.linalg.cholesky(K) @ rng.normal(size=len(x))
    model = LMCModel((kernel,), np.ones((1, 1, 1, 1)), np.array([[noise]]))
    return Observations.of_one_output(x, y), model


@pytest.fixture
def gap(rng):
    """Sites around a gap, and locations in it that are nearer to one side."""
    x = rng.uniform(-1, 1, size=(1500, 2))
    x = x[(x**2).sum(axis=1) > 0.5**2]
    observations, model = one_output(x, Matern(0.8, nu=0.5), 1e-4, rng)
    angle, radius = rng.uniform(0, 2 * np.pi, 100), rng.uniform(0.2, 0.4, 100)
    return observations, model, radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize(("missing", "correlated"), [(0.0, False), (0.3, True)])
@pytest.mark.parametrize("n", [1, 50])
def test_conditioning_on_as_many_readings_as_there_are_is_exact(
    rng, missing, correlated, n, monkeypatch
):
    """Also if the number is found by doubling, and if several sites share a location."""
    monkeypatch.setattr(module, "WORTHWHILE_GAIN", -1.0)
    made = world(rng, missing=missing, correlated=correlated)
    made = replace(made, X=np.vstack([made.X[:1], made.X[:-1]]))
    x = np.vstack([rng.uniform(size=(5, 2)), made.X[:2]])
    n = max(n, 2)
    near = condition_on_surrounding(made.observations, x, made.model, n)
    exact = condition(made.observations, x, made.model)
    assert_allclose(near.mean, exact.mean, atol=1e-9)
    assert_allclose(near.cov, exact.cov, atol=1e-9)


def test_predictions_in_a_gap_are_closer_to_those_from_all_readings(gap):
    """Errors against conditioning on all readings, with the same number of neighbours."""
    observations, model, x = gap
    exact = condition(observations, x, model)
    nearest = condition_on_neighbours(observations, x, model, 16)
    around = condition_on_surrounding(observations, x, model, 16)
    error = {
        name: np.sqrt(np.mean((found.mean - exact.mean) ** 2))
        for name, found in (("nearest", nearest), ("around", around))
    }
    assert error["around"] < 0.5 * error["nearest"]
    assert around.cov.mean() < nearest.cov.mean()


def test_the_number_of_readings_is_doubled_until_the_variance_hardly_falls(rng, monkeypatch):
    """Noisy readings of a smooth signal: 16 of them do not suffice, but all are not needed."""
    observations, model = one_output(rng.uniform(size=(1200, 2)), RBF(0.1), 0.001, rng)
    x = rng.uniform(size=(30, 2))
    used, real = [], module._Conditional.given

    def noted(self, sites, x):
        used.append((sites[0].shape[1], len(x)))
        return real(self, sites, x)

    monkeypatch.setattr(module._Conditional, "given", noted)
    few = condition_on_neighbours(observations, x, model, 16)
    used.clear()
    enough = condition_on_surrounding(observations, x, model, 16)
    assert used[:2] == [(16, 30), (8, 30)]
    assert [n for n, _ in used[2:]] == [32, 64, 128][: len(used) - 2]
    assert 3 <= len(used) <= 5
    exact = condition(observations, x, model)
    errors = [np.sqrt(np.mean((p.mean - exact.mean) ** 2)) for p in (few, enough)]
    assert errors[1] < 0.7 * errors[0]


def test_where_readings_are_precise_no_more_than_sixteen_are_used(rng, monkeypatch):
    observations, model = one_output(rng.uniform(size=(1200, 2)), Matern(0.5, nu=0.5), 1e-6, rng)
    x = 0.2 + 0.6 * rng.uniform(size=(30, 2))
    monkeypatch.setattr(module, "WORTHWHILE_GAIN", 0.25)
    enough = condition_on_surrounding(observations, x, model, 16)
    monkeypatch.setattr(module, "MAX_READINGS_AROUND", 16)
    assert_allclose(enough.cov, condition_on_surrounding(observations, x, model, 16).cov)


def test_the_size_of_a_system_is_limited(rng, monkeypatch):
    """Two outputs: 16 readings of each are 32, and twice as many would be 64."""
    made = world(rng, N=200, D=2, Q=2)
    widths, real = [], module.factor_readings

    def noted(table, *args):
        widths.append(table.n_sites)
        return real(table, *args)

    monkeypatch.setattr(module, "factor_readings", noted)
    monkeypatch.setattr(module, "WORTHWHILE_GAIN", -1.0)
    for limit, largest in ((63, 16), (64, 32), (200, 64)):
        monkeypatch.setattr(module, "MAX_READINGS_AROUND", limit)
        widths.clear()
        condition_on_surrounding(made.observations, made.X[:3], made.model, 16)
        assert max(widths) == largest


def test_predictions_do_not_depend_on_the_order_of_sites_and_outputs(rng):
    made = world(rng, N=150, missing=0.3, correlated=True)
    x = rng.uniform(-0.2, 1.2, size=(12, 2))
    expected = condition_on_surrounding(made.observations, x, made.model, 4)
    rows, d = rng.permutation(150), np.array([2, 0, 1])
    changed = replace(
        made, X=made.X[rows], Y=made.Y[rows][:, d], W=made.W[:, d], noise=made.noise[np.ix_(d, d)]
    )
    found = condition_on_surrounding(changed.observations, x, changed.model, 4)
    assert_allclose(found.mean, expected.mean[..., d], atol=1e-9)
    assert_allclose(found.cov, expected.cov[:, :, d[:, None], d], atol=1e-9)


def test_groups_of_locations_do_not_change_the_predictions(gap, monkeypatch):
    """Memory is bounded by processing few locations at a time."""
    observations, model, x = gap
    expected = condition_on_surrounding(observations, x, model, 16)
    sizes, real = [], module.factor_readings

    def noted(table, *args):
        sizes.append(len(table.x) * table.n_sites**2)
        return real(table, *args)

    monkeypatch.setattr(module, "factor_readings", noted)
    memory = 8 * 6 * 7 * 16**2  # of seven locations, for six numbers of each pair of sites
    monkeypatch.setattr(module, "chunk_bytes", lambda _: memory)
    found = condition_on_surrounding(observations, x, model, 16)
    assert max(sizes) <= 7 * 16**2 or max(sizes) <= 32**2
    assert len(sizes) > len(x) / 7
    assert_allclose(found.mean, expected.mean, atol=1e-9)
    assert_allclose(found.cov, expected.cov, atol=1e-9)


def test_torch_and_numpy_agree(rng):
    pytest.importorskip("torch")
    made = world(rng, N=150, missing=0.3)
    x = rng.uniform(-0.2, 1.2, size=(12, 2))
    ours, theirs = (
        condition_on_surrounding(made.observations, x, made.model, 4, device=device)
        for device in ("cpu", "torch")
    )
    assert_allclose(theirs.mean, ours.mean, atol=1e-9)
    assert_allclose(theirs.cov, ours.cov, atol=1e-9)


def test_a_single_site_and_a_table_without_readings(rng):
    made = world(rng)
    x = rng.uniform(size=(3, 2))
    for Y in (np.where(np.arange(len(made.Y))[:, None] == 1, made.Y, np.nan), made.Y * np.nan):
        table = made.table(Y).observations
        near = condition_on_surrounding(table, x, made.model, 16)
        exact = condition(table, x, made.model)
        assert_allclose(near.mean, exact.mean, atol=1e-9)
        assert_allclose(near.cov, exact.cov, atol=1e-9)
    assert condition_on_surrounding(made.observations, x[:0], made.model, 4).mean.shape[1] == 0


def test_the_sites_of_joint_samples_surround_each_location(gap):
    observations, model, x = gap
    for row in x[:5, None]:
        near, around = (
            neighbouring_sites(observations, row, model.kernels, 16, surrounding=way)
            for way in (False, True)
        )
        side = np.sign(observations.x @ row[0])  # of the centre of the gap
        assert set(side[around]) == {-1.0, 1.0}
        assert len(near) == len(around) == 16
