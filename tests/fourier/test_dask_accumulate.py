"""OnePassGP on tables that Dask holds: block by block, with the same result as in memory."""

import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import OnePassGP
from emgpr.fourier import accumulate, dask_accumulate
from tests.smooth_fields import quick, table

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
xarray = pytest.importorskip("xarray")

PIECE = 64
X, Y = table(np.random.default_rng(7))
Y[130:200] = np.nan  # more than a piece without readings
SITES = pd.DataFrame(X, columns=["east", "north"])
METALS = pd.DataFrame(Y, columns=["Cd", "Zn"])
LOCATIONS = np.random.default_rng(8).uniform(size=(50, 2))


@pytest.fixture(scope="module", autouse=True)
def small_pieces_in_this_thread():
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(accumulate, "PIECE_ROWS", PIECE)
        patch.setattr(dask_accumulate, "PIECE_ROWS", PIECE)
        patch.setattr(accumulate, "PIECES_PER_JOB", 2)
        patch.setattr(accumulate, "SAMPLE_ROWS", 150)
        yield


@pytest.fixture(scope="module")
def model():
    return quick().fit(SITES, METALS)


def quick_start(X, Y, **settings):
    """Return a model that has made the first pass only."""
    return quick(n_start=30, n_restarts=1, max_iter=5, **settings).start(X, Y)


@pytest.fixture(scope="module")
def started():
    return quick_start(SITES, METALS)


def as_array(frame, rows=100):
    return da.from_array(frame.to_numpy(), chunks=(rows, 1))  # in columns too


def as_frame(frame, n=5):
    return dd.from_pandas(frame, npartitions=n)


def as_array_of_unknown_length(frame):
    return as_frame(frame).to_dask_array()


def as_data_array(frame):
    labels = {"row": frame.index.to_numpy(), "column": list(frame.columns)}
    return xarray.DataArray(frame.to_numpy(), labels, dims=("row", "column")).chunk(row=90)


def as_dataset(frame):
    return xarray.Dataset({name: ("row", frame[name]) for name in frame}).chunk(row=90)


def in_memory(frame):
    return frame


NAMED = [as_frame, as_data_array, as_dataset, in_memory]


def assert_same_fit(one, other):
    """Compare what a fit has at its end, or at its start."""
    for fit in (one, other):
        assert fit.fourier_fit_.sums.grid == one.fourier_fit_.sums.grid
    mine, theirs = one.fourier_fit_, other.fourier_fit_
    assert_allclose(mine.parameters.W, theirs.parameters.W, rtol=1e-8)
    assert_allclose(mine.parameters.noise, theirs.parameters.noise, rtol=1e-8)
    assert_allclose(mine.box, theirs.box)
    assert_allclose(mine.scaler.shift, theirs.scaler.shift)
    assert mine.sums.patterns.keys() == theirs.sums.patterns.keys()


def assert_same_sums(one, other):
    assert one.grid == other.grid
    assert one.patterns.keys() == other.patterns.keys()
    for outputs, sums in one.patterns.items():
        for name, value in vars(sums).items():
            assert_array_equal(getattr(other.patterns[outputs], name), value)


def test_a_fit_is_that_of_the_same_table_in_memory(model):
    lazy = quick().fit(as_frame(SITES), as_frame(METALS))
    assert_same_fit(lazy, model)
    assert lazy.output_names_ == ["Cd", "Zn"]
    x = pd.DataFrame(LOCATIONS, columns=["east", "north"])
    for mine, theirs in zip(
        lazy.predict(x, return_std=True), model.predict(x, return_std=True), strict=True
    ):
        assert_allclose(mine, theirs, rtol=1e-8)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (as_array, as_frame),
        (as_array_of_unknown_length, as_array),
        (as_frame, as_array_of_unknown_length),
        (as_data_array, as_dataset),
        (as_dataset, as_data_array),
        (in_memory, as_array),
        (as_array, in_memory),
    ],
)
def test_tables_of_any_kind_are_sampled_and_summed_as_in_memory(inputs, outputs, started):
    lazy = quick_start(inputs(SITES), outputs(METALS))
    assert_same_fit(lazy, started)
    assert hasattr(lazy, "feature_names_in_") == (inputs in NAMED)
    named = outputs in NAMED
    assert lazy.output_names_ == (["Cd", "Zn"] if named else ["0", "1"])
    sums = lazy.summed(inputs(SITES), outputs(METALS))
    assert_same_sums(sums, started.summed(SITES, METALS))


@pytest.fixture(scope="module")
def started_without_names():
    return quick_start(X, Y)


@pytest.mark.parametrize("rows", [1, 30, 64, 333, 400])
def test_the_blocks_do_not_matter(rows, started_without_names):
    lazy = da.from_array(X, chunks=(rows, 2)), da.from_array(Y, chunks=(77, 2))
    assert_same_sums(started_without_names.summed(*lazy), started_without_names.summed(X, Y))


def test_columns_of_a_later_chunk_are_ordered_as_in_the_first(started):
    expected = started.summed(SITES[:100], METALS[:100])
    swapped = as_frame(METALS[["Zn", "Cd"]][:100])
    assert_same_sums(started.summed(as_frame(SITES[:100]), swapped), expected)


def test_one_output_and_a_transform():
    y = pd.Series(np.exp(Y[:, 0]), name="Cd")
    lazy, memory = (
        quick_start(sites, outputs, output_transform="normal-score")
        for sites, outputs in (
            (as_frame(SITES), dd.from_pandas(y, npartitions=2)),
            (SITES, y),
        )
    )
    assert_same_fit(lazy, memory)
    assert lazy.output_names_ == ["Cd"]
    assert lazy.output_scaler_.one_dimensional


def test_a_table_is_read_twice_and_no_block_is_longer_than_necessary(monkeypatch):
    """Once to sample it, once to sum; a block is as it was given, or up to a piece longer."""
    read, held = [], []

    def seen(block):
        read.append(len(block))
        return block

    read_chunk = accumulate.Chunk.read.__func__

    def watched(cls, X, y, columns, **options):
        held.append(len(X))
        return read_chunk(cls, X, y, columns, **options)

    whole = da.from_array(np.hstack([X, Y]), chunks=(50, 4)).map_blocks(seen, dtype=float, meta=X)
    monkeypatch.setattr(accumulate.Chunk, "read", classmethod(watched))
    quick(n_start=30, max_iter=5).partial_fit(whole[:, :2], whole[:, 2:], learn=False)
    assert read == [50] * 16
    assert held.pop(0) == 1  # a row of zeros, for the columns
    assert sum(held) == 800
    assert max(held) <= 50 + PIECE


def test_four_samples_or_sums_at_most_are_merged_at_once_and_never_rows(monkeypatch):
    merged = []
    merge_group = dask_accumulate._merge_group

    def watched(merge, parts):
        merged.append(len(parts))
        assert all(type(part[0]) in (accumulate.TableSample, dict) for part in parts)
        return merge_group(merge, parts)

    monkeypatch.setattr(dask_accumulate, "_merge_group", watched)
    chunks = da.from_array(X, chunks=(64, 2)), da.from_array(Y, chunks=(64, 2))
    quick(n_start=30, max_iter=5).partial_fit(*chunks, learn=False)
    assert merged == [4, 3, 2] * 2


def test_blocks_without_rows_or_readings_change_nothing(started):
    frame = as_frame(SITES.assign(Cd=METALS["Cd"], Zn=METALS["Zn"]), n=8)
    frame = frame[~(frame["Cd"].isna() & frame["Zn"].isna())]
    kept = METALS.notna().any(axis=1)
    lazy = started.summed(frame[["east", "north"]], frame[["Cd", "Zn"]])
    assert_same_sums(lazy, started.summed(SITES[kept], METALS[kept]))


def test_errors_in_a_block_tell_where_it_begins():
    bad = SITES.copy()
    bad.iloc[300, 1] = np.nan
    with pytest.raises(ValueError, match="NaN: input column 'north', row 108") as error:
        quick().fit(dd.from_pandas(bad, npartitions=4), as_frame(METALS))
    assert error.value.__notes__[0] == "Row 0 is row 192 of the table."
    far = OnePassGP(box=([0, 0], [0.3, 0.3]))
    with pytest.raises(ValueError, match="too far outside"):
        far.fit(as_array(SITES), as_array(METALS))
    assert not hasattr(far, "output_names_")


REFUSED = {
    "X has 400 rows and Y has 300": (as_array(SITES), as_array(METALS[:300])),
    "X has 300 rows and Y has 400": (as_frame(SITES[:300]), METALS),
    "Output '1' was never measured: all 400": (as_array(SITES), as_array(METALS * [1, np.nan])),
    "2D array": (as_array(SITES)[:, 0], as_array(METALS)),
    r"0 sample\(s\)": (as_array(SITES)[:0], as_array(METALS)[:0]),
    "input columns; expected at most 3": (
        da.zeros((40, 4), chunks=(20, 4)) + X[0, 0],
        as_array(METALS)[:40],
    ),
    "requires y": (as_array(SITES), None),
}


@pytest.mark.parametrize("message", REFUSED)
@pytest.mark.filterwarnings("ignore:Input column:UserWarning")
def test_invalid_tables_are_refused_as_in_memory(message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*REFUSED[message])


def test_columns_that_differ_from_those_at_the_start_are_refused(started):
    with pytest.raises(ValueError, match="feature names"):
        started.summed(as_frame(SITES[["north", "east"]]), as_frame(METALS))
    with pytest.raises(ValueError, match=r"outputs \['Cd'\], but this model was started with"):
        started.summed(as_frame(SITES), as_frame(METALS[["Cd"]]))


def test_suspicious_values_give_the_same_warnings_as_in_memory():
    metals = METALS.assign(Zn=5.0)
    messages = []
    for kind in (in_memory, as_frame):
        with pytest.warns(UserWarning, match="'Zn'") as found:
            quick_start(kind(SITES), kind(metals))
        messages.append([str(one.message) for one in found])
    assert messages[0] == messages[1]


def test_lazy_predictions_are_those_in_memory(model):
    locations = pd.DataFrame(LOCATIONS, columns=["east", "north"])
    lazy = model.predict(as_frame(locations), return_std=True)
    assert all(isinstance(part, da.Array) for part in lazy)
    for part, expected in zip(lazy, model.predict(locations, return_std=True), strict=True):
        assert_allclose(part.compute(), expected, rtol=1e-12)
    frame = model.predict_frame(as_frame(locations), quantiles=[0.1])
    expected = model.predict_frame(locations, quantiles=[0.1])
    pd.testing.assert_frame_equal(frame.compute(), expected)
    grid = xarray.Dataset(
        {"cells": (("north", "east"), da.zeros((6, 5), chunks=(3, 5)))},
        coords={"north": np.linspace(0, 1, 6), "east": np.linspace(0, 1, 5)},
    )
    lazy_map = model.predict_dataset(grid)
    assert isinstance(lazy_map["Cd"].data, da.Array)
    assert_allclose(lazy_map["Cd_std"], model.predict_dataset(grid.compute())["Cd_std"], rtol=1e-12)


def test_a_lazy_prediction_sends_the_solution_and_not_the_sums(started_without_names):
    model = copy.deepcopy(started_without_names).partial_fit(X, Y, learn=False)
    lazy = model.predict(da.from_array(LOCATIONS, chunks=(20, 2)))
    (sent,) = [v for key, v in lazy.dask.items() if str(key).startswith("model-")]
    predictor = getattr(sent, "value", sent)
    assert predictor.posterior.sums is None
    assert predictor.posterior.solved is not None
    assert_allclose(lazy.compute(), model.predict(LOCATIONS), rtol=1e-12)
