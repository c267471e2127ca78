"""Encoding and decoding of a pandas index as plain values and arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8

from emgpr.persistence.container import ModelFileError

Array = np.ndarray


def encode_index(index: pd.Index) -> dict[str, Any]:
    """Return a dict of plain values and arrays from which the index can be restored.

    Raises `ModelFileError` if the index cannot be restored exactly.

    >>> encode_index(pd.RangeIndex(3))
    {'kind': 'range', 'of': (0, 3, 1), 'names': [None]}
    """
    parts = {**_parts(index), "names": list(index.names)}
    try:
        decoded: Any = decode_index(parts, len(index))
    except (TypeError, ValueError, KeyError):  # for example, for a time zone without a name
        decoded = None
    if type(decoded) is not type(index) or not decoded.equals(_without_extension_types(index)):
        raise ModelFileError(
            f"An index of {index.dtype} values cannot be stored: {index[:3]!r}. Fit with "
            "X.reset_index(drop=True), or with an index of numbers, strings or dates."
        )
    return parts


def decode_index(parts: dict[str, Any], max_rows: int) -> pd.Index:
    """Restore an index from its parts; raise if it is a range of more than `max_rows` rows."""
    kind = parts["kind"]
    if kind not in _DECODERS:
        raise ModelFileError(f"the kind {kind!r} of an index is unknown")
    if kind == "range" and len(range(*_check_range(parts["of"]))) > max_rows:
        raise ModelFileError(f"an index with range {parts['of']} has more rows than the data")
    return _DECODERS[kind](parts).set_names(parts["names"])


def _parts(index: pd.Index) -> dict[str, Any]:
    index = _without_extension_types(index)
    if isinstance(index, pd.RangeIndex):
        return {"kind": "range", "of": (index.start, index.stop, index.step)}
    if isinstance(index, pd.MultiIndex):
        levels = [encode_index(_as_numbers(level)) for level in index.levels]
        return {"kind": "multi", "levels": levels, "codes": [np.asarray(c) for c in index.codes]}
    if isinstance(index, pd.CategoricalIndex):
        categories, codes = encode_index(_as_numbers(index.categories)), np.asarray(index.codes)
        ordered = bool(index.ordered)
        return {"kind": "categories", "of": categories, "codes": codes, "ordered": ordered}
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        zone = getattr(index, "tz", None)
        return {
            "kind": "dates" if isinstance(index, pd.DatetimeIndex) else "spans",
            "since": index.asi8,
            "unit": index.unit,
            "zone": None if zone is None else str(zone),
            "freq": index.freqstr,
        }
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "biuf":
        return {"kind": "numbers", "of": index.to_numpy()}
    if all(isinstance(label, str) for label in index if not pd.isna(label)):
        text, lengths = _join_texts([None if pd.isna(label) else label for label in index])
        plain = index.dtype == object
        return {"kind": "texts", "text": text, "lengths": lengths, "plain": plain}
    return {"kind": "others", "of": list(index)}


def _without_extension_types(index: pd.Index) -> pd.Index:
    """Convert nullable numbers and booleans to NumPy types, unless there are missing values.

    >>> _without_extension_types(pd.Index([1, 2], dtype="Int64")).dtype
    dtype('int64')
    """
    if isinstance(index, pd.MultiIndex):
        levels: list[Any] = [_without_extension_types(level) for level in index.levels]
        return index.set_levels(levels)
    is_numeric = pd.api.types.is_numeric_dtype(index.dtype)  # including booleans
    if isinstance(index.dtype, np.dtype | pd.CategoricalDtype) or not is_numeric or index.hasnans:
        return index
    nullable: Any = index.dtype
    return pd.Index(index.to_numpy(dtype=nullable.numpy_dtype), name=index.name)


def _as_numbers(labels: pd.Index) -> pd.Index:
    """Convert a range to an index that lists the numbers; return other indices unchanged."""
    return pd.Index(labels.to_numpy()) if isinstance(labels, pd.RangeIndex) else labels


def _join_texts(texts: Sequence[str | None]) -> tuple[UInt8[Array, " n"], Int[Array, " N"]]:
    """Return the concatenated strings, and the length of each (−1 for a missing string)."""
    encoded = [b"" if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = [-1 if text is None else len(part) for text, part in zip(texts, encoded, strict=True)]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array(lengths, np.int32)


def _split_texts(text: UInt8[Array, " n"], lengths: Int[Array, " N"]) -> list[str | None]:
    ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
    if len(text) != (ends[-1] if len(ends) else 0):
        raise ModelFileError("the strings of an index do not have their stated lengths")
    starts, joined = ends - np.maximum(lengths, 0), text.tobytes()
    return [
        None if length < 0 else joined[start:end].decode("utf-8", "surrogatepass")
        for start, end, length in zip(starts, ends, lengths, strict=True)
    ]


def _check_range(of: Any) -> tuple[int, int, int]:
    if type(of) is not tuple or [type(n) for n in of] != [int] * 3:
        raise ModelFileError("a range does not consist of three integers")
    return of


def _check_type(of: Any, kind: type = list) -> Any:
    """Return `of`; raise if it is not a `kind`, because other types could report a wrong length."""
    if not isinstance(of, kind):
        raise ModelFileError(f"the labels of an index are a {type(of).__name__}")
    return of


def _check_array(of: Any) -> Array:
    return _check_type(of, Array)


def _texts(parts: dict[str, Any]) -> pd.Index:
    labels = _split_texts(_check_array(parts["text"]), _check_array(parts["lengths"]))
    return pd.Index(labels, dtype=object) if parts["plain"] else pd.Index(labels, dtype="str")


def _dates(parts: dict[str, Any]) -> pd.DatetimeIndex:
    dates = pd.DatetimeIndex(_check_array(parts["since"]).view(f"M8[{parts['unit']}]"))
    if parts["zone"] is not None:
        dates = dates.tz_localize("UTC").tz_convert(parts["zone"])
    return pd.DatetimeIndex(dates, freq=parts["freq"])


def _time_spans(parts: dict[str, Any]) -> pd.TimedeltaIndex:
    spans = _check_array(parts["since"]).view(f"m8[{parts['unit']}]")
    return pd.TimedeltaIndex(spans, freq=parts["freq"])


def _levels(parts: dict[str, Any]) -> pd.MultiIndex:
    levels: list[Any] = [decode_index(level, 0) for level in _check_type(parts["levels"])]
    return pd.MultiIndex(levels, _check_type(parts["codes"]))


def _categories(parts: dict[str, Any]) -> pd.CategoricalIndex:
    categories, codes = decode_index(parts["of"], 0), _check_array(parts["codes"])
    values = pd.Categorical.from_codes(codes, categories=categories, ordered=parts["ordered"])
    return pd.CategoricalIndex(values)


_DECODERS = {
    "range": lambda parts: pd.RangeIndex(*parts["of"]),
    "multi": _levels,
    "categories": _categories,
    "dates": _dates,
    "spans": _time_spans,
    "numbers": lambda parts: pd.Index(_check_array(parts["of"])),
    "texts": _texts,
    "others": lambda parts: pd.Index(_check_type(parts["of"]), dtype=object),
}
