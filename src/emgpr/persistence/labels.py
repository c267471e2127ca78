"""The index of a pandas table as plain values and arrays, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8

from emgpr.persistence.container import ModelFileError

Array = np.ndarray


def taken_apart(index: pd.Index) -> dict[str, Any]:
    """What the index is made of; raises if it would not be the same again.

    >>> taken_apart(pd.RangeIndex(3))
    {'kind': 'range', 'of': (0, 3, 1), 'names': [None]}
    """
    parts = {**_content(index), "names": list(index.names)}
    try:
        again: Any = put_together(parts, len(index))
    except (TypeError, ValueError, KeyError):  # such as a time zone without a name
        again = None
    if type(again) is not type(index) or not again.equals(_plain(index)):
        raise ModelFileError(
            f"An index of {index.dtype} values is not stored: {index[:3]!r}. Fit with "
            "X.reset_index(drop=True), or with an index of numbers, texts or dates."
        )
    return parts


def put_together(parts: dict[str, Any], most: int) -> pd.Index:
    """The index that was taken apart, of so many rows at most."""
    kind = parts["kind"]
    if kind not in _MADE:
        raise ModelFileError(f"there is no kind {kind!r} of index")
    if kind == "range" and len(range(*_numbers(parts["of"]))) > most:
        raise ModelFileError(f"an index of {parts['of']} has more rows than there is data")
    return _MADE[kind](parts).set_names(parts["names"])


def _plain(index: pd.Index) -> pd.Index:
    """Nullable numbers and truths of which none is missing, as NumPy's.

    >>> _plain(pd.Index([1, 2], dtype="Int64")).dtype
    dtype('int64')
    """
    if isinstance(index, pd.MultiIndex):
        levels: Any = [_plain(level) for level in index.levels]
        return index.set_levels(levels)
    dtype: Any = index.dtype
    numeric = pd.api.types.is_numeric_dtype(dtype)  # truths among them
    if isinstance(dtype, np.dtype | pd.CategoricalDtype) or not numeric or index.hasnans:
        return index
    return pd.Index(index.to_numpy(dtype=dtype.numpy_dtype), name=index.name)


def _content(index: pd.Index) -> dict[str, Any]:
    index = _plain(index)
    if isinstance(index, pd.RangeIndex):
        return {"kind": "range", "of": (index.start, index.stop, index.step)}
    if isinstance(index, pd.MultiIndex):
        levels = [taken_apart(_written_out(level)) for level in index.levels]
        return {"kind": "multi", "levels": levels, "codes": [np.asarray(c) for c in index.codes]}
    if isinstance(index, pd.CategoricalIndex):
        categories, codes = taken_apart(_written_out(index.categories)), np.asarray(index.codes)
        ordered = bool(index.ordered)
        return {"kind": "categories", "of": categories, "codes": codes, "ordered": ordered}
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        dates = isinstance(index, pd.DatetimeIndex)
        zone = getattr(index, "tz", None)
        kind = "dates" if dates else "spans"
        named = None if zone is None else str(zone)
        given = {"unit": index.unit, "zone": named, "freq": index.freqstr}
        return {"kind": kind, "since": index.asi8, **given}
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "biuf":
        return {"kind": "numbers", "of": index.to_numpy()}
    if all(isinstance(label, str) for label in index if not pd.isna(label)):
        text, lengths = _packed([None if pd.isna(label) else label for label in index])
        plain = index.dtype == object
        return {"kind": "texts", "text": text, "lengths": lengths, "plain": plain}
    return {"kind": "others", "of": list(index)}


def _written_out(labels: pd.Index) -> pd.Index:
    return pd.Index(labels.to_numpy()) if isinstance(labels, pd.RangeIndex) else labels


def _numbers(of: Any) -> tuple[int, int, int]:
    if type(of) is not tuple or [type(n) for n in of] != [int] * 3:
        raise ModelFileError("a range is not from, to and by whole numbers")
    return of


def _list(of: Any, kind: type = list) -> Any:
    """What it should be, and no other object that may claim to have any number of items."""
    if not isinstance(of, kind):
        raise ModelFileError(f"the labels of an index are a {type(of).__name__}")
    return of


def _array(of: Any) -> Array:
    return _list(of, Array)


def _packed(texts: Sequence[str | None]) -> tuple[UInt8[Array, " n"], Int[Array, " N"]]:
    """All in one, and the length of each; −1 where there is none."""
    each = [b"" if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = [-1 if text is None else len(own) for text, own in zip(texts, each, strict=True)]
    return np.frombuffer(b"".join(each), np.uint8), np.array(lengths, np.int32)


def _unpacked(text: UInt8[Array, " n"], lengths: Int[Array, " N"]) -> list[str | None]:
    ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
    if len(text) != (ends[-1] if len(ends) else 0):
        raise ModelFileError("the texts of an index are not of the lengths that they should have")
    starts, whole = ends - np.maximum(lengths, 0), text.tobytes()
    return [
        None if length < 0 else whole[start:end].decode("utf-8", "surrogatepass")
        for start, end, length in zip(starts, ends, lengths, strict=True)
    ]


def _texts(parts: dict[str, Any]) -> pd.Index:
    labels = _unpacked(_array(parts["text"]), _array(parts["lengths"]))
    return pd.Index(labels, dtype=object) if parts["plain"] else pd.Index(labels, dtype="str")


def _dates(parts: dict[str, Any]) -> pd.DatetimeIndex:
    when = pd.DatetimeIndex(_array(parts["since"]).view(f"M8[{parts['unit']}]"))
    if parts["zone"] is not None:
        when = when.tz_localize("UTC").tz_convert(parts["zone"])
    return pd.DatetimeIndex(when, freq=parts["freq"])


def _spans(parts: dict[str, Any]) -> pd.TimedeltaIndex:
    return pd.TimedeltaIndex(
        _array(parts["since"]).view(f"m8[{parts['unit']}]"), freq=parts["freq"]
    )


def _pairs(parts: dict[str, Any]) -> pd.MultiIndex:
    levels: list[Any] = [put_together(level, 0) for level in _list(parts["levels"])]
    return pd.MultiIndex(levels, _list(parts["codes"]))


def _categories(parts: dict[str, Any]) -> pd.CategoricalIndex:
    of = put_together(parts["of"], 0)
    return pd.CategoricalIndex(
        pd.Categorical.from_codes(_array(parts["codes"]), categories=of, ordered=parts["ordered"])
    )


_MADE = {
    "range": lambda parts: pd.RangeIndex(*parts["of"]),
    "multi": _pairs,
    "categories": _categories,
    "dates": _dates,
    "spans": _spans,
    "numbers": lambda parts: pd.Index(_array(parts["of"])),
    "texts": _texts,
    "others": lambda parts: pd.Index(_list(parts["of"]), dtype=object),
}
