"""The benchmark on Dask predicts and writes at every location."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import dask_scale
from emgpr import IndependentGP
from emgpr.covariance import vecchia_table

pytestmark = pytest.mark.slow

pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")


def test_every_location_is_in_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_scale, "BLOCK", 40)
    X, Y = dask_scale.readings(30, 2)
    model = IndependentGP(conditioning=5, random_state=0).fit(X, Y)
    dask_scale.to_zarr(model, 100, str(tmp_path))
    mean, std = (zarr.open_array(str(tmp_path / name))[:] for name in ("mean", "std"))
    assert mean.shape == std.shape == (100, 2)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_signals_are_the_same_for_all_seeds():
    """Another seed gives other sites of the same processes."""
    one, other = (dask_scale.readings(4000, 1, seed) for seed in (0, 1))
    mean = [y[(abs(x - 0.5) < 0.02).all(axis=1)].mean() for x, y in (one, other)]
    assert abs(mean[0] - mean[1]) < 0.5 * one[1].std()


def test_a_lazy_table_is_the_same_each_time_it_is_computed(monkeypatch):
    monkeypatch.setattr(dask_scale, "BLOCK", 40)
    X, Y = dask_scale.lazy_table(100)
    assert (X.chunks[0], Y.shape) == ((40, 40, 20), (100, 3))
    np.testing.assert_array_equal(Y.compute(), Y.compute())
    assert 0 < np.isnan(Y.compute()).mean() < 0.5


def test_the_joint_likelihood_is_the_same_in_threads_and_on_workers(monkeypatch):
    monkeypatch.setattr(dask_scale, "N_EVALUATIONS", 1)
    monkeypatch.setattr(vecchia_table, "CHUNKS_PER_PART", 1)
    rows = dask_scale.joint(SimpleNamespace(sites=300, outputs=3))
    assert [row["where"] for row in rows] == ["one thread", "two threads", "two workers"]
    np.testing.assert_allclose([row["value"] for row in rows], rows[0]["value"], rtol=1e-12)
