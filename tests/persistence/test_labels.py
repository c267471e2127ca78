"""Names and indexes of a user's tables come back with the model that was fitted to them."""

import numpy as np
import pandas as pd
import pytest
from sameness import assert_same
from simulated import smooth_table

import emgpr
from emgpr import IndependentGP, ModelFileError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:Nothing was read in 2 of 26 rows:UserWarning",
)
X, Y = smooth_table(np.random.default_rng(3), N=26)


def quick():
    return IndependentGP(max_iter=4, n_restarts=1, random_state=0)


def round_trip(model, folder):
    model.save(folder / "model.emgpr")
    return emgpr.load(folder / "model.emgpr")


INDICES = {
    "texts": pd.Index([f"Gehöft {i}" for i in range(26)], name="site"),
    "texts as objects": pd.Index([f"site {i}" for i in range(26)], dtype=object),
    "whole numbers": pd.Index(np.arange(26)[::-1] * 3),
    "reals": pd.Index(np.linspace(0, 1, 26)),
    "a range": pd.RangeIndex(100, 152, 2, name=("a", 1)),
    "dates": pd.date_range("2024-03-30", periods=26, freq="h", tz="Europe/Zurich"),
    "dates without order": pd.DatetimeIndex(["2024-01-05", "2024-01-01"] * 13),
    "spans": pd.timedelta_range("1h", periods=26),
    "pairs": pd.MultiIndex.from_product([["a", "b"], range(13)], names=["block", "site"]),
    "categories": pd.CategoricalIndex(list("ab") * 13, categories=list("cab"), ordered=True),
    "numbers as categories": pd.CategoricalIndex(list(range(26))),
    "anything": pd.Index([None, 1, "a", 2.5, pd.Timestamp("2024-01-01"), np.nan, *range(20)]),
}


@pytest.mark.parametrize("case", INDICES)
def test_names_and_index_of_a_frame_are_kept(case, tmp_path):
    sites = pd.DataFrame(X, columns=["east", "north"], index=INDICES[case])
    metals = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=INDICES[case])
    metals.iloc[[3, 25]] = np.nan  # rows of no site
    model = quick().fit(sites, metals)
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    pd.testing.assert_frame_equal(again.predict_frame(sites), model.predict_frame(sites))
    ours, theirs = again.cross_validate().prediction, model.cross_validate().prediction
    pd.testing.assert_frame_equal(ours, theirs)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(sites[["north", "east"]])


NULLABLE = {
    "whole numbers": (pd.Index(range(26), dtype="Int64", name="site"), "int64"),
    "reals": (pd.Index(np.linspace(0, 1, 26), dtype="Float64"), "float64"),
    "truths": (pd.Index([True, False] * 13, dtype="boolean"), "bool"),
}


@pytest.mark.parametrize("case", NULLABLE)
def test_nullable_numbers_of_an_index_come_back_as_plain_ones(case, tmp_path):
    index, dtype = NULLABLE[case]
    sites = pd.DataFrame(X, columns=["east", "north"], index=index)
    again = round_trip(quick().fit(sites, Y), tmp_path)
    found = again.cross_validate().prediction.index
    pd.testing.assert_index_equal(found, index.astype(dtype))


def test_nullable_numbers_among_pairs_are_stored(tmp_path):
    pairs = pd.MultiIndex.from_arrays([pd.array(range(26), dtype="Int64"), list("ab") * 13])
    again = round_trip(quick().fit(pd.DataFrame(X, pairs, ["e", "n"]), Y), tmp_path)
    assert again.cross_validate().prediction.index.tolist() == pairs.tolist()


def test_an_index_that_is_not_stored_is_named(tmp_path):
    sites = pd.DataFrame(X, index=pd.period_range("2024-01", periods=26, freq="M"))
    with pytest.raises(
        ModelFileError, match=r"index of period\[M\] values.*reset_index\(drop=True\)"
    ):
        quick().fit(sites.rename(columns=str), Y).save(tmp_path / "model")
