"""Samples and sums of a table do not depend on the blocks and processes they are computed in."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.fourier import accumulate
from emgpr.fourier.accumulate import Chunk, TableSample, enough_of_each
from tests.smooth_fields import quick, table


def test_the_same_rows_are_sampled_whatever_the_blocks(rng, monkeypatch):
    monkeypatch.setattr(accumulate, "SAMPLE_ROWS", 150)
    monkeypatch.setattr(accumulate, "MIN_SAMPLE_READINGS", 20)
    x, Y = rng.uniform(size=(1000, 2)), rng.normal(size=(1000, 2))
    Y[rng.permutation(1000)[:970], 1] = np.nan
    rows = np.arange(1000)
    whole = TableSample.draw(rows, x, x, Y)
    blocks = np.split(rows, [10, 400, 405, 900])
    a, b, c, d, e = (TableSample.draw(rows[i], x[i], x[i], Y[i]) for i in blocks)
    added = (a + b) + (c + (e + d))
    for name, value in vars(whole).items():
        assert_array_equal(getattr(added, name), value)
    assert 150 < len(whole.rows) <= 170
    assert (~np.isnan(whole.Y[:, 1])).sum() >= 20


def test_a_sample_has_enough_readings_of_each_output(rng):
    observed = np.ones((2, 5000), bool)
    observed[1] = rng.uniform(size=5000) < 0.1
    sites = enough_of_each(observed, np.arange(0, 5000, 10), rng)
    assert (observed[:, sites].sum(axis=1) >= accumulate.MIN_SAMPLE_READINGS).all()
    assert set(np.arange(0, 5000, 10)) <= set(sites)
    assert len(np.unique(sites)) == len(sites)


def test_processes_sum_to_the_same(monkeypatch):
    monkeypatch.setattr(accumulate, "PIECE_ROWS", 100)
    monkeypatch.setattr(accumulate, "PIECES_PER_JOB", 2)
    data = table(np.random.default_rng(7))
    model = quick().start(*data)
    alone, two = (model.set_params(n_jobs=n).summed(*data) for n in (None, 2))
    for outputs, sums in alone.patterns.items():
        assert_array_equal(two.patterns[outputs].sites, sums.sites)
        assert_array_equal(two.patterns[outputs].readings, sums.readings)


def test_a_later_chunk_must_have_the_columns_of_the_first():
    X, Y = table(np.random.default_rng(7), N=10)
    read = {"estimator": "OnePassGP", "crs": None}
    first = Chunk.read(X, Y, None, **read)
    assert first.columns.output_names == ("0", "1")
    again = Chunk.read(X, Y, first.columns, start=50, **read)
    assert_array_equal(again.sample().rows, 50 + first.rows)
    with pytest.raises(ValueError, match=r"y has the outputs \['0'\], but this model was started"):
        Chunk.read(X, Y[:, :1], first.columns, **read)
    with pytest.raises(ValueError, match="X has 1 features, but OnePassGP is expecting 2"):
        Chunk.read(X[:, :1], Y, first.columns, **read)
