r"""Arrays under a JSON header in one file: written whole or not at all, read without trust.

    8 bytes    \x89emgpr\r\n: a file of ours, and not mangled as text on its way
    8 bytes    length of the file; an unsigned little-endian number, as the next
    8 bytes    length of the header
    header     JSON: format, version, what the writer says, and [name, type, shape] of every array
    arrays     in that order, little-endian, rows first; header and arrays are padded to 8 bytes
    32 bytes   SHA-256 of all that is before

Every version keeps the first 16 bytes and the last 32, so that any reader can tell a file that
was damaged from one that is newer. Where an array lies follows from the shapes before it, so none
can overlap or lie outside; they are views of the bytes read, so none is allocated on a file's word.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from jaxtyping import Shaped, UInt8

Array = np.ndarray
PathLike: TypeAlias = str | os.PathLike[str]

MAGIC = b"\x89emgpr\r\n"
START = len(MAGIC) + 16
DIGEST = 32
ALIGNED = 8
TYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
PARTS = 2**14  # values of a JSON header, beyond one for every 64 bytes of the file
OTHERS = {
    b"\x80": "a pickle, which runs code when it is loaded; emgpr neither writes nor reads them",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    MAGIC[:6]: "a file of emgpr that was changed on its way, as text is; copy it as binary",
}


class ModelFileError(ValueError):
    """A file that cannot be read, or a model that cannot be put into one; says why."""


def write(path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Header and arrays into a file, in the place of one that may be there.

    The header is JSON without NaN; give it a "format" and a "version" to be asked for by `read`.
    Until all is on the disk the old file stays, whatever happens meanwhile.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/a", {"format": "pair", "version": 1}, {"x": np.arange(2.0)})
    ...     header, arrays = read(f"{folder}/a", "pair", newest=1)
    >>> header["version"], arrays["x"]
    (1, array([0., 1.]))
    """
    plain = {name: _little_endian(name, array) for name, array in arrays.items()}
    table = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    text = json.dumps({**header, "arrays": table}, allow_nan=False, separators=(",", ":")).encode()
    pieces = [memoryview(text), *(_bytes(array) for array in plain.values())]
    size = START + sum(_padded(piece.nbytes) for piece in pieces) + DIGEST
    if _parts(text) > PARTS + size // 64:
        raise ModelFileError(
            f"{path} is not written: its header would have {_parts(text)} parts, more than are "
            "read back. Put what is long into arrays."
        )
    digest = hashlib.sha256()
    with _replacing(path) as file:
        for piece in _laid_out(size, pieces):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def read(path: PathLike, format: str, newest: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a file in this format, of any version up to the newest.

    Raises `ModelFileError` for whatever else is there, and says what it is.
    """
    content = _undamaged(path)
    length = int.from_bytes(content[16:START], "little")
    if START + _padded(length) + DIGEST > len(content):
        raise _damaged(path, f"its header would have {length} bytes")
    header = _header(path, content[START : START + length].tobytes(), len(content))
    _refuse_others(path, header, format, newest)
    data = content[START + _padded(length) : -DIGEST]
    return header, _arrays(path, header.pop("arrays", None), data)


def _little_endian(name: str, array: Array) -> Array:
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if plain.dtype.str not in TYPES:
        raise ModelFileError(f"array {name!r} holds {array.dtype}; expected numbers or booleans.")
    return plain


def _padded(n: int) -> int:
    return n + -n % ALIGNED


def _parts(text: bytes) -> int:
    """How many values a JSON text has at most: each takes memory, however short it is."""
    return 1 + sum(text.count(mark) for mark in (b"[", b"{", b","))


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _laid_out(size: int, pieces: list[memoryview]) -> Iterator[bytes | memoryview]:
    """All of the file but the digest."""
    yield MAGIC + size.to_bytes(8, "little") + pieces[0].nbytes.to_bytes(8, "little")
    for piece in pieces:
        yield piece
        yield bytes(-piece.nbytes % ALIGNED)


@contextmanager
def _replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A file to write that takes its place when all is on the disk, and else leaves no trace."""
    target = Path(os.path.realpath(path))  # of a link, what it points to
    if target.is_dir():  # as '' is
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}; create it first.")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not all systems can make sure of a folder's entries
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _undamaged(path: PathLike) -> UInt8[Array, " n"]:
    """All bytes, once length and checksum are known to be those that were written."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        what = "a folder" if os.path.isdir(path) else "no regular file"
        raise ModelFileError(f"{path} is {what}; expected a file written by emgpr.")
    with open(path, "rb") as file:
        size, start = os.fstat(file.fileno()).st_size, file.read(START)
        if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
            raise ModelFileError(
                f"{path} is not a file written by emgpr: it is {_what_else(start)}."
            )
        whole = max(int.from_bytes(start[8:16], "little"), START + DIGEST)
        if size < whole:
            raise ModelFileError(
                f"{path} is truncated: it has {size} of the {whole} bytes it should have. Copy it "
                "again."
            )
        if size > whole:
            raise _damaged(path, f"it has {size} bytes and should have {whole}")
        content = np.empty(size, np.uint8)
        content[:START] = np.frombuffer(start, np.uint8)
        if file.readinto(content[START:].data) != size - START:
            raise ModelFileError(f"{path} is truncated: it ended while it was read.")
    if hashlib.sha256(content[:-DIGEST].data).digest() != content[-DIGEST:].tobytes():
        raise _damaged(path, "its checksum is another")
    return content


def _what_else(start: bytes) -> str:
    for known, name in OTHERS.items():
        if start.startswith(known):
            return name
    if not start:
        return "empty"
    return f"something else, which begins with {start[:12]!r}"


def _damaged(path: PathLike, how: str) -> ModelFileError:
    return ModelFileError(f"{path} is damaged: {how}. Copy it again, or save the model anew.")


def _header(path: PathLike, text: bytes, size: int) -> dict[str, Any]:
    if _parts(text) > PARTS + size // 64:
        raise _damaged(path, f"its header has {_parts(text)} parts, more than emgpr writes")
    try:
        header = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_only_once)
    except (ValueError, RecursionError) as trouble:
        raise _damaged(path, f"its header is not JSON as emgpr writes it ({trouble})") from trouble
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse_others(path: PathLike, header: dict[str, Any], format: str, newest: int) -> None:
    """Raise unless this is the format, of a version that can be read."""
    found, version = header.get("format"), header.get("version")
    if found != format:
        raise ModelFileError(f"{path} holds {found!r}; expected {format!r}.")
    if type(version) is not int or version < 1:
        raise _damaged(path, f"its version is {version!r}")
    if version > newest:
        raise ModelFileError(
            f"{path} is newer than this emgpr: it is of format version {version}, and versions up "
            f"to {newest} are read here. Upgrade emgpr: pip install --upgrade emgpr."
        )


def _arrays(
    path: PathLike, table: Any, data: UInt8[Array, " n"]
) -> dict[str, Shaped[Array, "..."]]:
    """Views of the data, after their sizes were found to fill it exactly."""
    if not isinstance(table, list) or not all(map(_is_entry, table)):
        raise _damaged(path, "its table of arrays is not one")
    sizes = [prod(shape) * np.dtype(kind).itemsize for _, kind, shape in table]
    if sum(map(_padded, sizes)) != len(data):
        raise _damaged(path, f"its arrays need {sum(sizes)} bytes and there are {len(data)}")
    arrays, at = {}, 0
    for (name, kind, shape), size in zip(table, sizes, strict=True):
        arrays[name] = data[at : at + size].view(kind).reshape(shape)
        at += _padded(size)
    if len(arrays) != len(table):
        raise _damaged(path, "two of its arrays share a name")
    return arrays


def _is_entry(entry: Any) -> bool:
    """[name, type, shape], of numbers that an array could have."""
    if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)):
        return False
    _, kind, shape = entry
    small = isinstance(shape, list) and len(shape) <= 8
    return kind in TYPES and small and all(type(n) is int and 0 <= n < 2**40 for n in shape)
