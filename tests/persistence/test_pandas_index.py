"""Indexes of pandas tables are stored as they are, or refused with a remedy."""

import json

import numpy as np
import pandas as pd
import pytest

from emgpr.persistence import ModelFileError, decode, encode
from emgpr.persistence.pandas_index import decode_index, encode_index

INDEXES = {
    "texts": pd.Index([f"Gehöft {i}" for i in range(26)], name="site"),
    "texts, some missing": pd.Index(["a", None, "", "b"], dtype="str"),
    "texts as objects": pd.Index([f"site {i}" for i in range(26)], dtype=object),
    "whole numbers": pd.Index(np.arange(26)[::-1] * 3),
    "reals": pd.Index(np.linspace(0, 1, 26)),
    "a range": pd.RangeIndex(100, 152, 2, name=("a", 1)),
    "dates": pd.date_range("2024-03-30", periods=26, freq="h", tz="Europe/Zurich"),
    "dates out of order": pd.DatetimeIndex(["2024-01-05", "2024-01-01"] * 13),
    "time spans": pd.timedelta_range("1h", periods=26),
    "pairs": pd.MultiIndex.from_product([["a", "b"], range(13)], names=["block", "site"]),
    "categories": pd.CategoricalIndex(list("ab") * 13, categories=list("cab"), ordered=True),
    "numbers as categories": pd.CategoricalIndex(list(range(26))),
    "mixed": pd.Index([None, 1, "a", 2.5, pd.Timestamp("2024-01-01"), np.nan, *range(20)]),
}


def round_trip(index):
    tree, arrays, _ = encode({"index": index})
    return decode(json.loads(json.dumps(tree)), arrays)["index"]


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_is_restored(case):
    again = round_trip(INDEXES[case])
    pd.testing.assert_index_equal(again, INDEXES[case], exact="equiv")
    assert getattr(again, "freq", None) == getattr(INDEXES[case], "freq", None)


NULLABLE = {
    "whole numbers": (pd.Index(range(26), dtype="Int64", name="site"), "int64"),
    "reals": (pd.Index(np.linspace(0, 1, 26), dtype="Float64"), "float64"),
    "booleans": (pd.Index([True, False] * 13, dtype="boolean"), "bool"),
}


@pytest.mark.parametrize("case", NULLABLE)
def test_nullable_numbers_are_restored_as_those_of_numpy(case):
    index, dtype = NULLABLE[case]
    pd.testing.assert_index_equal(round_trip(index), index.astype(dtype))
    pairs = pd.MultiIndex.from_arrays([index, list("ab") * 13])
    assert round_trip(pairs).tolist() == pairs.tolist()


def test_an_index_that_cannot_be_stored_is_refused_with_a_remedy():
    months = pd.period_range("2024-01", periods=26, freq="M")
    with pytest.raises(
        ModelFileError, match=r"index of period\[M\] values.*reset_index\(drop=True\)"
    ):
        encode_index(months)


FORGED = {
    "kind 'os' of an index is unknown": {"kind": "os"},
    "three integers": {"kind": "range", "of": (0, 2.5, 1)},
    "more rows than the data": {"kind": "range", "of": (0, 10**12, 1)},
    "labels of an index are a range": {"kind": "others", "of": range(10**12)},
    "labels of an index are a list": {"kind": "numbers", "of": [1, 2]},
    "their stated lengths": {
        "kind": "texts", "text": np.zeros(3, np.uint8), "lengths": np.array([9]), "plain": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("message", FORGED)
def test_forged_parts_are_refused(message):
    with pytest.raises(ModelFileError, match=message):
        decode_index({"names": [None], **FORGED[message]}, 100)
