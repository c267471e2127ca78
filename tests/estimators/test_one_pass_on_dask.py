"""One pass over tables that Dask holds: block by block, and what is learned is the same."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import OnePassGP
from emgpr.estimators import passes
from emgpr.estimators.passes import Look
from tests.smooth_fields import quick, table

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
xarray = pytest.importorskip("xarray")

PIECE = 64
X, Y = table(np.random.default_rng(7))
Y[130:200] = np.nan  # more than a piece in which nothing was read
SITES = pd.DataFrame(X, columns=["east", "north"])
METALS = pd.DataFrame(Y, columns=["Cd", "Zn"])
PLACES = np.random.default_rng(8).uniform(size=(50, 2))


@pytest.fixture(scope="module", autouse=True)
def small_pieces_in_this_thread():
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(passes, "PIECE", PIECE)
        patch.setattr("emgpr.estimators.blocks.PIECE", PIECE)
        patch.setattr(passes, "AT_A_TIME", 2)
        patch.setattr(passes, "SAMPLE", 150)
        yield


@pytest.fixture(scope="module")
def model():
    return quick().fit(SITES, METALS)


def as_array(frame, rows=100):
    return da.from_array(frame.to_numpy(), chunks=(rows, 1))  # in columns too


def as_frame(frame, n=5):
    return dd.from_pandas(frame, npartitions=n)


def as_unknown(frame):
    return as_frame(frame).to_dask_array()


def as_data_array(frame):
    labels = {"row": frame.index.to_numpy(), "column": list(frame.columns)}
    return xarray.DataArray(frame.to_numpy(), labels, dims=("row", "column")).chunk(row=90)


def as_dataset(frame):
    return xarray.Dataset({name: ("row", frame[name]) for name in frame}).chunk(row=90)


def in_memory(frame):
    return frame


KINDS = [as_array, as_frame, as_unknown, as_data_array, as_dataset, in_memory]
NAMED = [as_frame, as_data_array, as_dataset, in_memory]


def assert_same_model(one, other):
    assert_allclose(one.weights_, other.weights_, rtol=1e-8)
    assert_allclose(one.box_, other.box_)
    assert one.n_sites_ == other.n_sites_
    for mine, theirs in zip(told_by(one), told_by(other), strict=True):
        assert_allclose(mine, theirs, rtol=1e-8)


def told_by(model):
    names = getattr(model, "feature_names_in_", None)
    x = PLACES if names is None else pd.DataFrame(PLACES, columns=names)
    return model.predict(x, return_std=True)


@pytest.mark.parametrize("inputs", KINDS)
@pytest.mark.parametrize("outputs", [as_array, as_frame])
def test_a_fit_is_that_of_the_same_table_in_memory(inputs, outputs, model):
    lazy = quick().fit(inputs(SITES), outputs(METALS))
    assert_same_model(lazy, model)
    assert hasattr(lazy, "feature_names_in_") == (inputs in NAMED)
    assert lazy.output_names_ == (["Cd", "Zn"] if outputs is as_frame else ["0", "1"])


@pytest.mark.parametrize("rows", [1, 30, 64, 128, 333, 400])
def test_the_blocks_do_not_matter(rows, model):
    some = da.from_array(X, chunks=(rows, 2)), da.from_array(Y, chunks=(77, 2))
    assert_same_model(quick().fit(*some), model)


def test_a_stream_of_lazy_chunks_is_taken_in(model):
    whole, lazy = quick(), quick()
    for part in (slice(0, 250), slice(250, 400)):
        whole.partial_fit(SITES[part], METALS[part], learn=False)
        turned = METALS[["Zn", "Cd"]][part]
        lazy.partial_fit(as_frame(SITES[part]), as_frame(turned)[["Cd", "Zn"]], learn=False)
    assert_same_model(lazy, whole)
    more = lazy.summed(as_frame(SITES[:100]), as_frame(METALS[["Zn", "Cd"]][:100]))
    assert_array_equal(
        more.terms[0, 1].outputs, whole.summed(SITES[:100], METALS[:100]).terms[0, 1].outputs
    )


def test_one_output_and_a_transform(rng):
    y = pd.Series(np.exp(Y[:, 0]), name="Cd")
    settings = {"transform": "normal-score", "normalize_y": True}
    lazy = quick(**settings).fit(as_frame(SITES), dd.from_pandas(y, npartitions=2))
    alone = quick(**settings).fit(SITES, y)
    assert_same_model(lazy, alone)
    assert lazy.predict(SITES[:3]).shape == (3,)
    assert lazy.output_names_ == ["Cd"]


def test_a_table_is_read_twice_and_no_block_is_longer_than_it_must_be():
    """Once to look at it, once to sum; a block is as it was given, or up to a piece longer."""
    read, held = [], []

    def seen(block):
        read.append(len(block))
        return block

    entered = passes.Table.entered.__func__

    def watched(cls, model, X, y, **settings):
        held.append(len(X))
        return entered(cls, model, X, y, **settings)

    whole = da.from_array(np.hstack([X, Y]), chunks=(50, 4)).map_blocks(seen, dtype=float, meta=X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes.Table, "entered", classmethod(watched))
        quick().fit(whole[:, :2], whole[:, 2:])
    assert read == [50] * 16
    assert sum(held) == 800
    assert max(held) <= 50 + PIECE


def test_what_meets_in_one_place_are_four_sums_or_looks_and_never_rows(monkeypatch):
    met = []

    def meet(function, parts):
        met.append(len(parts))
        told = np.empty(1, object)
        told[0] = function(*(part[0] for part in parts))
        return told

    monkeypatch.setattr("emgpr.estimators.blocks._of_some", meet)
    quick().fit(da.from_array(X, chunks=(64, 2)), da.from_array(Y, chunks=(64, 2)))
    assert met == [4, 3, 2] * 2


def test_sampled_rows_are_the_same_whatever_the_blocks(rng, monkeypatch):
    monkeypatch.setattr(passes, "LEAST", 20)
    x, rare = rng.uniform(size=(1000, 2)), rng.normal(size=(1000, 2))
    rare[rng.permutation(1000)[:970], 1] = np.nan
    rows = np.arange(1000)
    whole = Look.at(rows, x, x, rare)
    cut = np.split(rows, [10, 400, 405, 900])
    looks = [Look.at(part, x[part], x[part], rare[part]) for part in cut]
    parts = (looks[0] + looks[1]) + (looks[2] + (looks[3] + looks[4]))
    for name, value in vars(whole).items():
        assert_array_equal(vars(parts)[name], value)
    assert 150 < len(whole.rows) <= 170
    assert (~np.isnan(whole.Y[:, 1])).sum() >= 20


def test_blocks_without_rows_or_readings_say_nothing(model):
    frame = as_frame(SITES.assign(Cd=METALS["Cd"], Zn=METALS["Zn"]), n=8)
    some = frame[~(frame["Cd"].isna() & frame["Zn"].isna())]
    kept = METALS.notna().any(axis=1)
    lazy = quick().fit(some[["east", "north"]], some[["Cd", "Zn"]])
    assert_same_model(lazy, quick().fit(SITES[kept], METALS[kept]))


def test_what_is_wrong_in_a_block_is_told_with_the_row(model):
    bad = SITES.copy()
    bad.iloc[300, 1] = np.nan
    with pytest.raises(ValueError, match="NaN: input column 'north', row 108") as trouble:
        quick().fit(dd.from_pandas(bad, npartitions=4), as_frame(METALS))
    assert trouble.value.__notes__[0] == "Rows are counted from row 192 of the table."
    far = OnePassGP(box=([0, 0], [0.3, 0.3]))
    with pytest.raises(ValueError, match="too far outside"):
        far.fit(as_array(SITES), as_array(METALS))
    assert not hasattr(far, "output_names_")  # all or nothing


REFUSED = {
    "X has 400 rows and Y has 300": (as_array(SITES), as_array(METALS[:300])),
    "X has 300 rows and Y has 400": (as_frame(SITES[:300]), METALS),
    "Output '1' was never measured: all 400": (as_array(SITES), as_array(METALS * [1, np.nan])),
    "2D array": (as_array(SITES)[:, 0], as_array(METALS)),
    r"0 sample\(s\)": (as_array(SITES)[:0], as_array(METALS)[:0]),
    "waves are for at most 3": (da.zeros((40, 4), chunks=(20, 4)) + X[0, 0], as_array(METALS)[:40]),
    "requires y": (as_array(SITES), None),
}


@pytest.mark.parametrize("message", REFUSED)
@pytest.mark.filterwarnings("ignore:Input column:UserWarning")
def test_what_cannot_be_learned_from_is_refused_as_in_memory(message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*REFUSED[message])


def test_other_columns_than_at_the_start_are_refused(model):
    with pytest.raises(ValueError, match="feature names"):
        model.summed(as_frame(SITES[["north", "east"]]), as_frame(METALS))
    with pytest.raises(ValueError, match=r"outputs \['Cd'\], and this model was begun with"):
        model.summed(as_frame(SITES), as_frame(METALS[["Cd"]]))


def test_doubts_are_told_as_in_memory():
    metals = METALS.assign(Zn=5.0)
    told = []
    for kind in (in_memory, as_frame):
        with pytest.warns(UserWarning, match="'Zn' has one value only") as found:
            quick().fit(kind(SITES), kind(metals))
        told.append([str(one.message) for one in found])
    assert told[0] == told[1]


def test_predictions_are_lazy_and_those_in_memory(model):
    places = pd.DataFrame(PLACES, columns=["east", "north"])
    lazy = model.predict(as_frame(places), return_std=True)
    assert all(isinstance(told, da.Array) for told in lazy)
    for told, expected in zip(lazy, model.predict(places, return_std=True), strict=True):
        assert_allclose(told.compute(), expected, rtol=1e-12)
    frame = model.predict_frame(as_frame(places), quantiles=[0.1])
    pd.testing.assert_frame_equal(frame.compute(), model.predict_frame(places, quantiles=[0.1]))
    grid = xarray.Dataset(
        {"cells": (("north", "east"), da.zeros((6, 5), chunks=(3, 5)))},
        coords={"north": np.linspace(0, 1, 6), "east": np.linspace(0, 1, 5)},
    )
    lazily = model.predict_dataset(grid)
    assert isinstance(lazily["Cd"].data, da.Array)
    assert_allclose(lazily["Cd_std"], model.predict_dataset(grid.compute())["Cd_std"], rtol=1e-12)


def test_a_prediction_takes_no_sums_along_and_the_answer_is_worked_out_once(monkeypatch):
    stream = quick().partial_fit(X, Y, learn=False)
    lazy = stream.predict(da.from_array(PLACES, chunks=(20, 2)))
    (sent,) = [v for key, v in lazy.dask.items() if str(key).startswith("model-")]
    held = getattr(sent, "value", sent)
    assert not hasattr(held, "_sums")
    assert stream.n_sites_ == held.n_sites_
    expected = stream.predict(PLACES)
    monkeypatch.setattr(OnePassGP, "_posterior", None)
    assert_allclose(lazy.compute(), expected, rtol=1e-12)
