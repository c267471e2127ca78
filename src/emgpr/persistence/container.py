r"""File format for arrays with a JSON header, written atomically and verified when read.

    8 bytes    \x89emgpr\r\n, which reveals a conversion of line endings
    8 bytes    length of the file, an unsigned little-endian integer
    8 bytes    length of the header, in the same form
    header     JSON: format, version, other entries, and [name, type, shape] of every array
    arrays     in that order, little-endian, in C order; header and arrays are padded to 8 bytes
    32 bytes   SHA-256 of all preceding bytes

The first 16 and the last 32 bytes have the same meaning in all versions, so that any reader can
distinguish a damaged file from a file of a newer version. The position of an array follows from the
shapes of the arrays before it, so arrays can neither overlap nor lie outside the file. Arrays are
views of the bytes read from the file, so a forged size cannot make the reader allocate memory.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8

from emgpr.persistence.replace import PathLike, replacing

Array = np.ndarray

MAGIC = b"\x89emgpr\r\n"
START_BYTES = len(MAGIC) + 16
DIGEST_BYTES = 32
ALIGNMENT = 8  # bytes
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
MAX_DIMENSIONS, MAX_LENGTH = 8, 2**40  # limits for each array
# Largest number of values in a JSON header: a fixed number, plus one for every 64 bytes of file.
# The number is limited because even short values take much memory in Python.
MAX_JSON_VALUES, BYTES_PER_JSON_VALUE = 2**14, 64
OTHER_FORMATS = {
    b"\x80": "a pickle, which emgpr does not read, because loading a pickle can run any code",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    MAGIC[:6]: "an emgpr file that was converted as text; copy it again in binary mode",
}


class ModelFileError(ValueError):
    """Error raised for a file that cannot be read, or for a model that cannot be stored."""


def write(path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a header and arrays to a file, replacing the file if it exists.

    The header must be valid JSON, without NaN. It must contain a "format" and a "version", which
    `read` checks. An existing file is kept until the new one has been written completely.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/a", {"format": "pair", "version": 1}, {"x": np.arange(2.0)})
    ...     header, arrays = read(f"{folder}/a", "pair", newest=1)
    >>> header["version"], arrays["x"]
    (1, array([0., 1.]))
    """
    stored = {name: _little_endian(name, array) for name, array in arrays.items()}
    table = [[name, array.dtype.str, list(array.shape)] for name, array in stored.items()]
    text = json.dumps({**header, "arrays": table}, allow_nan=False, separators=(",", ":")).encode()
    parts = [
        memoryview(text),
        *(array.reshape(-1).view(np.uint8).data for array in stored.values()),
    ]
    size = START_BYTES + sum(_padded(part.nbytes) for part in parts) + DIGEST_BYTES
    if _has_too_many_values(text, size):
        raise ModelFileError(
            f"{path} is not written, because its header would have {_count_values(text)} values, "
            "more than `read` accepts. Store long lists as arrays."
        )
    digest = hashlib.sha256()
    with replacing(path) as draft, open(draft, "xb") as file:
        for part in _layout(size, parts):
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def read(path: PathLike, format: str, newest: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file.

    Raises `ModelFileError`, with a description of the content, unless the file has the given format
    and a version up to `newest`.
    """
    content = _read_verified(path)
    length = int.from_bytes(content[16:START_BYTES], "little")
    if START_BYTES + _padded(length) + DIGEST_BYTES > len(content):
        raise _damaged(path, f"its header would have {length} bytes")
    text = content[START_BYTES : START_BYTES + length].tobytes()
    header = _parse_header(path, text, len(content))
    _check_format(path, header, format, newest)
    data = content[START_BYTES + _padded(length) : -DIGEST_BYTES]
    return header, _read_arrays(path, header.pop("arrays", None), data)


def _little_endian(name: str, array: Array) -> Array:
    stored = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if stored.dtype.str not in DTYPES:
        raise ModelFileError(
            f"Array {name!r} has type {array.dtype}; expected numbers or booleans."
        )
    return stored


def _padded(n: int) -> int:
    return n + -n % ALIGNMENT


def _count_values(text: bytes) -> int:
    """Return an upper bound on the number of values in a JSON string."""
    return 1 + sum(text.count(mark) for mark in (b"[", b"{", b","))


def _has_too_many_values(text: bytes, size: int) -> bool:
    return _count_values(text) > MAX_JSON_VALUES + size // BYTES_PER_JSON_VALUE


def _layout(size: int, parts: list[memoryview]) -> Iterator[bytes | memoryview]:
    """Yield all parts of a file in order, except the checksum at its end."""
    yield MAGIC + size.to_bytes(8, "little") + parts[0].nbytes.to_bytes(8, "little")
    for part in parts:
        yield part
        yield bytes(-part.nbytes % ALIGNMENT)


def _read_verified(path: PathLike) -> UInt8[Array, " n"]:
    """Return the bytes of a file after verifying its length and checksum."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        what = "a folder" if os.path.isdir(path) else "not a regular file"
        raise ModelFileError(f"{path} is {what}; expected a file written by emgpr.")
    with open(path, "rb") as file:
        size, start = os.fstat(file.fileno()).st_size, file.read(START_BYTES)
        if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
            raise ModelFileError(
                f"{path} is not a file written by emgpr: it is {_describe_other(start)}."
            )
        expected = max(int.from_bytes(start[8:16], "little"), START_BYTES + DIGEST_BYTES)
        if size < expected:
            raise ModelFileError(
                f"{path} is truncated: it has {size} of its {expected} bytes. Copy it again."
            )
        if size > expected:
            raise _damaged(path, f"it has {size} bytes instead of {expected}")
        content = np.empty(size, np.uint8)
        content[:START_BYTES] = np.frombuffer(start, np.uint8)
        if file.readinto(content[START_BYTES:].data) != size - START_BYTES:
            raise ModelFileError(f"{path} was truncated while it was read. Read it again.")
    digest = hashlib.sha256(content[:-DIGEST_BYTES].data).digest()
    if digest != content[-DIGEST_BYTES:].tobytes():
        raise _damaged(path, "its checksum does not match its content")
    return content


def _describe_other(start: bytes) -> str:
    for known, name in OTHER_FORMATS.items():
        if start.startswith(known):
            return name
    return f"of an unknown format, beginning with {start[:12]!r}" if start else "empty"


def _damaged(path: PathLike, how: str) -> ModelFileError:
    return ModelFileError(f"{path} is damaged: {how}. Copy it again, or save the model again.")


def _parse_header(path: PathLike, text: bytes, size: int) -> dict[str, Any]:
    if _has_too_many_values(text, size):
        raise _damaged(path, f"its header has too many values ({_count_values(text)})")
    try:
        header = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is not valid JSON ({error})") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a key occurs twice")
    return unique


def _check_format(path: PathLike, header: dict[str, Any], format: str, newest: int) -> None:
    """Raise `ModelFileError` unless the file has the given format and a supported version."""
    found, version = header.get("format"), header.get("version")
    if found != format:
        raise ModelFileError(f"{path} has the format {found!r}; expected {format!r}.")
    if type(version) is not int or version < 1:
        raise _damaged(path, f"its version is {version!r}")
    if version > newest:
        raise ModelFileError(
            f"{path} is newer than this version of emgpr: its format version is {version}, but "
            f"only versions up to {newest} can be read. Run pip install --upgrade emgpr."
        )


def _read_arrays(
    path: PathLike, table: Any, data: UInt8[Array, " n"]
) -> dict[str, Shaped[Array, "..."]]:
    """Return the arrays as views of `data`, after checking that they fill `data` exactly."""
    if not isinstance(table, list) or not all(map(_is_entry, table)):
        raise _damaged(path, "its table of arrays is not valid")
    sizes = [prod(shape) * np.dtype(kind).itemsize for _, kind, shape in table]
    if sum(map(_padded, sizes)) != len(data):
        raise _damaged(path, f"its arrays have {len(data)} bytes instead of {sum(sizes)}")
    arrays, at = {}, 0
    for (name, kind, shape), size in zip(table, sizes, strict=True):
        arrays[name] = data[at : at + size].view(kind).reshape(shape)
        at += _padded(size)
    if len(arrays) != len(table):
        raise _damaged(path, "two of its arrays have the same name")
    return arrays


def _is_entry(entry: Any) -> bool:
    """Tell whether an entry has the form [name, type, shape] and describes a valid array."""
    if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)):
        return False
    _, kind, shape = entry
    if kind not in DTYPES or not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        return False
    return all(type(n) is int and 0 <= n < MAX_LENGTH for n in shape)
