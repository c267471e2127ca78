"""Tables that Dask or xarray hold: into memory for fit; out again lazily, block by block."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sameness import assert_same
from simulated import smooth_table
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr import load as load_model
from emgpr.estimators import gathered
from emgpr.prediction import neighbours

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
xarray = pytest.importorskip("xarray")

RNG = np.random.default_rng(5)
X, Y = smooth_table(RNG, N=40)
Y[3, 1] = np.nan
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(40)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)
PLACES = pd.DataFrame(
    RNG.uniform(size=(90, 2)), columns=["east", "north"], index=pd.RangeIndex(0, 180, 2, name="id")
)


def learner(**settings):
    given = {"kernel": RBF(0.4, "fixed"), "conditioning": 8, "random_state": 0, "batch_size": 20}
    return EMGPR.paper(**(given | settings))


@pytest.fixture(scope="module", autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def model():
    return learner().fit(SITES, METALS)


def as_frame(table):
    return dd.from_pandas(table, npartitions=3, sort=False)


def as_array(table):
    return da.from_array(table.to_numpy(), chunks=(25, 1))  # in columns too


def as_unknown(table):
    return as_frame(table).to_dask_array()  # nobody knows how long its chunks are


def as_data_array(table):
    labels = {"row": table.index.to_numpy(), "column": list(table.columns)}
    return xarray.DataArray(table.to_numpy(), labels, dims=("row", "column")).chunk(row=25)


def as_dataset(table):
    return xarray.Dataset({name: ("row", table[name]) for name in table}).chunk(row=25)


NAMED = [as_frame, as_data_array, as_dataset]
KINDS = [as_array, as_unknown, *NAMED]


def never(block):
    raise AssertionError("this was worked out")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_that_of_the_same_table_in_memory(kind, model):
    inputs, outputs = kind(SITES), kind(METALS)
    lazy = learner().fit(inputs, outputs)
    assert_array_equal(lazy.weights_, model.weights_)
    assert_array_equal(lazy._seen.x, X)
    if kind in NAMED:
        assert_array_equal(lazy.feature_names_in_, model.feature_names_in_)
        assert lazy.output_names_ == model.output_names_


def test_an_index_is_kept_and_so_is_the_name_of_a_series():
    lazy = learner().fit(as_frame(SITES), as_frame(METALS)["Zn"])
    assert list(lazy._index) == list(SITES.index)
    assert lazy.output_names_ == ["Zn"]
    assert lazy.predict(PLACES).shape == (90,)


def test_inputs_and_outputs_of_one_table_are_worked_out_together():
    asked = []

    def read(block):
        asked.append(len(block))
        return block

    whole = da.from_array(np.hstack([X, Y]), chunks=(20, 5)).map_blocks(read, dtype=float, meta=X)
    learner().fit(whole[:, :2], whole[:, 2:])
    assert asked == [20, 20]


@pytest.mark.parametrize("kind", [as_frame, as_array, as_unknown, as_dataset])
def test_what_would_not_fit_into_memory_is_refused_with_its_size(kind, monkeypatch):
    monkeypatch.setattr(gathered, "free_memory", lambda: 40 * (2 + 3) * 16 - 1.0)
    with pytest.raises(MemoryError, match=r"200 numbers.*8·N·\(P \+ D\) bytes"):
        learner().fit(kind(SITES), kind(METALS))
    monkeypatch.setattr(gathered, "free_memory", lambda: 40 * (2 + 3) * 16.0)
    learner().fit(kind(SITES), kind(METALS))


def test_too_large_an_array_is_refused_before_anything_is_worked_out(monkeypatch):
    monkeypatch.setattr(gathered, "free_memory", lambda: 1e9)
    huge = da.zeros((10**9, 2), chunks=(10**6, 2)).map_blocks(never, meta=np.empty((0, 0)))
    with pytest.raises(MemoryError, match=r"32\.0 GB"):
        learner().fit(huge, huge)


def test_a_dataset_must_be_a_table():
    grid = xarray.Dataset({"a": (("y", "x"), np.zeros((2, 3)))})
    with pytest.raises(ValueError, match=r"\['y', 'x'\].*data.stack"):
        learner().fit(grid, METALS)
    stray = as_dataset(SITES).set_coords("north")
    with pytest.raises(ValueError, match=r"\['north'\] as coordinates.*X.reset_coords"):
        learner().fit(stray, METALS)
    both = as_dataset(SITES).set_coords(["east", "north"])
    assert list(learner().fit(both, METALS).feature_names_in_) == ["east", "north"]


QUESTIONS = {
    "mean": lambda m, X: (m.predict(X),),
    "std": lambda m, X: m.predict(X, return_std=True, statistic="mean"),
    "cov": lambda m, X: m.predict(X, return_cov=True, include_noise=False),
    "a quantile": lambda m, X: (m.predict_quantiles(X, 0.3),),
    "quantiles": lambda m, X: (m.predict_quantiles(X, [0.1, 0.5, 0.9]),),
    "exceedance": lambda m, X: (m.predict_exceedance(X, [0.0, 500.0, -1.0]),),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", [as_frame, as_array])
def test_predictions_are_those_in_memory_and_lazy(kind, question, model):
    unnamed = learner().fit(X, Y)
    own = model if kind is as_frame else unnamed
    places = PLACES if kind is as_frame else PLACES.to_numpy()
    lazy = QUESTIONS[question](own, kind(PLACES))
    for told, expected in zip(lazy, QUESTIONS[question](own, places), strict=True):
        assert isinstance(told, da.Array)
        assert told.ndim == expected.ndim
        assert told.dtype == expected.dtype
        found = told.compute()
        assert found.shape == expected.shape
        assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [as_unknown, as_data_array, as_dataset])
def test_other_tables_are_predicted_at_too(kind, model):
    own = learner().fit(X, Y) if kind is as_unknown else model
    assert_allclose(own.predict(kind(PLACES)).compute(), model.predict(PLACES), rtol=1e-12)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_vector_comes_back_as_a_vector(question):
    one = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS["Zn"])
    ask = {"exceedance": lambda m, X: (m.predict_exceedance(X, 0.0),)}.get(
        question, QUESTIONS[question]
    )
    for told, expected in zip(ask(one, as_frame(PLACES)), ask(one, PLACES), strict=True):
        assert_allclose(told.compute(), expected, rtol=1e-9)


def test_a_frame_keeps_index_divisions_and_names(model):
    divided = dd.from_pandas(PLACES, npartitions=3)
    lazy = model.predict_frame(divided)
    assert lazy.divisions == divided.divisions
    assert list(lazy.columns) == ["Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    pd.testing.assert_frame_equal(lazy.compute(), model.predict_frame(PLACES))


def test_a_frame_of_an_array_is_numbered_through():
    own = learner().fit(X, Y)
    lazy = own.predict_frame(as_array(PLACES), include_noise=False)
    expected = own.predict_frame(PLACES.to_numpy(), include_noise=False)
    pd.testing.assert_frame_equal(lazy.compute(), expected)


def test_scores_are_those_in_memory(model):
    turned = METALS[["Zn", "Cd", "Ni"]]
    assert_allclose(model.score(as_frame(SITES), as_frame(turned)), model.score(SITES, METALS))


def test_nothing_is_worked_out_before_it_is_asked_for():
    places = as_array(PLACES).map_blocks(never, meta=np.empty((0, 0)))
    own = learner().fit(X, Y)
    for question in QUESTIONS.values():
        for told in question(own, places):
            with pytest.raises(AssertionError, match="worked out"):
                told.compute()
    frame = own.predict_frame(places)
    with pytest.raises(AssertionError, match="worked out"):
        frame.compute()


def test_parts_without_rows_stay_empty(model):
    ordered = PLACES.sort_values("east")
    some = as_frame(ordered)
    some = some[some["east"] > 0.7]  # of three partitions, one
    expected = model.predict_frame(ordered[ordered["east"] > 0.7])
    pd.testing.assert_frame_equal(model.predict_frame(some).compute(), expected)
    assert_allclose(model.predict(some).compute(), expected[["Cd", "Ni", "Zn"]], rtol=1e-12)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_missing_values_of_pandas_own_kind_are_found_in_a_block(kind, model):
    odd = PLACES.astype("Float64")
    odd.iloc[70, 1] = pd.NA
    lazy = dd.from_pandas(odd, npartitions=3)
    with pytest.raises(ValueError, match=r"NaN: input column 'north', row 10") as trouble:
        (model.predict if kind == "array" else model.predict_frame)(lazy).compute()
    assert trouble.value.__notes__ == ["Rows are counted from row 0 of block 2 of the places."]


def test_what_cannot_be_asked_is_refused_at_once(model):
    places = as_frame(PLACES)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(as_frame(PLACES.rename(columns={"east": "west"})))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_frame(as_frame(PLACES[["north"]]))
    with pytest.raises(ValueError, match="3 features"), pytest.warns(UserWarning, match="names"):
        model.predict(da.zeros((5, 3)))
    with pytest.raises(ValueError, match="2D array"), pytest.warns(UserWarning, match="names"):
        model.predict(da.zeros(5))
    with pytest.raises(ValueError, match="q holds 2"):
        model.predict_quantiles(places, [0.5, 2.0])
    with pytest.raises(ValueError, match="threshold has shape"):
        model.predict_exceedance(places, [1.0, 2.0])
    for predict in (model.predict, model.predict_frame):
        with pytest.raises(ValueError, match="would not be heard of in the next"):
            predict(places, observed=METALS[:1])


def test_what_is_not_installed_is_named_with_its_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(ImportError, match=r"pip install 'emgpr\[dask\]'"):
        model.predict_frame(as_data_array(PLACES))


def test_known_outputs_that_dask_holds_are_brought_to_places_in_memory(model):
    known = pd.DataFrame({"Zn": np.full(90, -1.0)}, index=PLACES.index)
    lazy = model.predict(PLACES, observed=as_frame(known))
    assert_array_equal(lazy, model.predict(PLACES, observed=known))


def test_what_was_asked_of_a_model_does_not_change_when_it_learns_anew():
    own = learner().fit(X, Y)
    expected, lazy = own.predict(PLACES.to_numpy()), own.predict(as_array(PLACES))
    own.fit(X, -Y)
    assert_allclose(lazy.compute(), expected, rtol=1e-12)


def test_the_model_is_one_piece_of_the_graph(model):
    (whole,) = dask.optimize(model.predict(as_frame(PLACES)))
    pieces = [key for key in whole.__dask_graph__() if str(key).startswith("model-")]
    assert len(pieces) == 1


@pytest.fixture
def planted(monkeypatch):
    """How many k-d trees were made."""
    made = []

    def plant(*points):
        made.append(points)
        return KDTree(*points)

    KDTree = neighbours.KDTree
    monkeypatch.setattr(neighbours, "KDTree", plant)
    return made


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_trees_are_grown_once_for_all_blocks(planted, scheduler):
    own = learner().fit(X, np.where(np.isnan(Y), 0.0, Y))
    places = da.from_array(PLACES.to_numpy(), chunks=(10, 2))
    with dask.config.set(scheduler=scheduler):
        own.predict(places).compute()
        own.predict(places).compute()
    assert len(planted) == 1


def test_trees_stay_at_home(tmp_path, planted):
    """What grew while predicting is in no pickle, file or clone, and is no part of the model."""
    own = learner().fit(SITES, METALS)
    before = pickle.dumps(own)
    expected = own.predict(PLACES)
    assert pickle.dumps(own) == before
    own.save(tmp_path / "model.emgpr")
    grown = len(planted)
    for other in (pickle.loads(before), load_model(tmp_path / "model.emgpr")):
        assert_same(other._seen, own._seen)
        assert_array_equal(other.predict(PLACES), expected)
    assert len(planted) == 3 * grown
    assert_array_equal(clone(own).fit(SITES, METALS).predict(PLACES), expected)
