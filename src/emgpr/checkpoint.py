"""Checkpoints of long fits: a file that stores finished work and is replaced atomically.

A piece of work (step 1 for an output, the fit of a few members, the state of an optimisation) is
identified by a digest of everything it depends on. A fit that is started again restores the pieces
in the file exactly, and computes the others. The order in which pieces were finished does not
matter, and no piece can be mistaken for another.
"""

import hashlib
import json
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from time import monotonic
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import UInt8

from emgpr.persistence import ModelFileError, PathLike, constructors, decode, encode, read, write
from emgpr.user_warnings import warn

Array = np.ndarray
Identity: TypeAlias = Mapping[str, tuple[str, str]]  # name → digest and text for messages

FORMAT = "emgpr checkpoint"
VERSION = 1
MIN_INTERVAL = 1.0  # seconds between two writes
MAX_TIME_SHARE = 0.05  # fraction of the total time that writing may take
RETRY_INTERVAL = 60.0  # seconds from a failed write to the next attempt
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
# Errors that decoding can raise if the file is damaged, forged, or not a checkpoint.
DECODING_ERRORS = (ValueError, KeyError, AttributeError, TypeError, IndexError, RecursionError)

logger = logging.getLogger(__name__)


def digest(*values: Any) -> str:
    """Return a digest of values. Equal values have the same digest in every process.

    Raises ValueError if a value can be identified only by its address in memory.

    >>> digest(1.0, np.zeros(2)) == digest(1.0, np.zeros(2)) != digest(1.0, np.zeros(3))
    True
    """
    sha = hashlib.sha256()
    for part in _content(values):
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()


def _content(value: Any) -> Iterator[bytes | memoryview]:
    """Yield everything that identifies a value, such as the class and state of an object."""
    if isinstance(value, np.generic):  # so that NumPy and Python numbers have the same digest
        value = value.item()
    yield type(value).__qualname__.encode()
    if isinstance(value, Array) and value.dtype != object:
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    elif isinstance(value, list | tuple | Array):
        for item in value:
            yield from _content(item)
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from _content(item)
    elif is_dataclass(value):
        # Only the fields are used, because __dict__ also contains cached properties.
        yield from _content({f.name: getattr(value, f.name) for f in fields(value)})
    elif isinstance(value, np.random.Generator):
        yield from _content(value.bit_generator.state)
    elif isinstance(value, np.random.RandomState):
        yield from _content(value.get_state(legacy=False))
    elif isinstance(value, FunctionType) and "<" in value.__qualname__:
        yield from _content_of_unnamed(value)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type) or _is_named(value):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
    elif isinstance(value, partial):
        yield from _content((value.func, value.args, dict(sorted(value.keywords.items()))))
    elif hasattr(value, "get_params"):
        yield from _content(dict(sorted(vars(value).items())))
    elif hasattr(value, "detach"):  # a tensor, whose repr shows only some of its elements
        yield from _content(value.detach().cpu().numpy())
    elif not isinstance(value, str) and ADDRESS.search(repr(value)):
        raise ValueError(f"{value!r} can be identified only by its address in memory.")
    else:
        yield repr(value).encode()
        # The repr can be incomplete; the parameters of torch modules are in their state_dict.
        is_module = hasattr(value, "state_dict")
        attributes = value.state_dict() if is_module else getattr(value, "__dict__", {})
        if attributes:
            yield from _content(list(attributes.items()))


def _content_of_unnamed(function: FunctionType) -> Iterator[bytes | memoryview]:
    """Yield the code, default arguments and closure variables of a lambda or nested function."""
    yield from _instructions(function.__code__)
    yield from _content((function.__defaults__, function.__kwdefaults__))
    variables = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _content([value for value in variables if value is not function])


def _instructions(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant))).encode()
        else:
            yield repr(constant).encode()


def _is_named(value: Any) -> bool:
    """Tell whether a value is a callable with a name, such as a ufunc, but not a bound method."""
    return callable(value) and hasattr(value, "__name__") and not hasattr(value, "__self__")


@dataclass(eq=False)
class Checkpoint:
    """The finished pieces of a fit and the file that stores them, if a path is given.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint.open(f"{folder}/fit", {"X": ("1f", "")})
    ...     checkpoint.keep("output 0", np.arange(2.0))
    ...     checkpoint.write()
    ...     Checkpoint.open(f"{folder}/fit", {"X": ("1f", "")}).find("output 0")
    array([0., 1.])
    """

    path: PathLike | None = None
    identity: Identity = field(default_factory=dict)
    records: Sequence[type] = ()  # dataclasses that pieces may contain
    pieces: dict[str, UInt8[Array, " _"]] = field(default_factory=dict)
    start: Any = None  # initial state of the random generator, used again by a resumed fit
    resumed: bool = False
    _written: bool = True
    _next_write: float = 0.0

    @classmethod
    def open(
        cls, path: PathLike, identity: Identity, records: Sequence[type] = (), start: Any = None
    ) -> "Checkpoint":
        """Create the checkpoint of a fit, or resume from the file if it exists.

        `identity` describes everything that the fit depends on: it maps each name to a digest and
        to a text for error messages, which can be empty. An error is raised if the file belongs to
        a fit with another identity.
        """
        if not os.path.lexists(path):
            checkpoint = cls(path, identity, records, {}, start)
            checkpoint.write()  # so that a missing folder or a full disk is reported immediately
            return checkpoint
        try:
            header, arrays = read(path, FORMAT, VERSION)
            found = {name: (str(sha), str(shown)) for name, (sha, shown) in header["fit"].items()}
            start = _decode_piece(arrays.pop("start"), records)
        except DECODING_ERRORS as error:
            raise _cannot_resume(path, error) from error
        _check_identity(path, found, identity)
        logger.info("%s: using %d finished pieces of this fit", path, len(arrays))
        return cls(path, identity, records, arrays, start, resumed=True)

    def find(self, key: str) -> Any:
        """Return a finished piece, or None if it is not in the file."""
        found = self.pieces.get(key)
        if found is None:
            return None
        try:
            return _decode_piece(found, self.records)
        except DECODING_ERRORS as error:
            raise _cannot_resume(self.path, error) from error

    def keep(self, key: str, piece: Any) -> None:
        """Keep a finished piece under this key, and write the file if the next write is due.

        A piece that contains an object of a user-defined class is not kept, because it cannot be
        restored from the file.
        """
        if self.path is None:
            return
        tree, arrays, user_classes = encode({"piece": piece}, self.records)
        if not user_classes:
            self.pieces[key] = _as_bytes(tree, arrays)
            self._written = False
            if self.due:
                self._write_or_warn()

    @property
    def due(self) -> bool:
        """Whether enough time has passed since the file was last written."""
        return self.path is not None and monotonic() >= self._next_write

    def write(self) -> None:
        """Write the file now."""
        if self.path is None:
            return
        began = monotonic()
        header = {"format": FORMAT, "version": VERSION, "fit": dict(self.identity)}
        start = _as_bytes(*encode({"piece": self.start}, self.records)[:2])
        write(self.path, header, {"start": start, **self.pieces})
        self._written = True
        ended = monotonic()
        self._next_write = ended + max(MIN_INTERVAL, (ended - began) / MAX_TIME_SHARE)

    def flush(self) -> None:
        """Write the file if it lacks finished pieces. A fit does so at the end of each stage."""
        if not self._written:
            self._write_or_warn()

    def close(self) -> None:
        """Remove the file, if possible, because the fit has ended."""
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)

    def _write_or_warn(self) -> None:
        """Write the file. If this fails, only warn: a full disk should not end a long fit."""
        try:
            self.write()
        except OSError as error:
            self._next_write = monotonic() + RETRY_INTERVAL
            warn(
                f"checkpoint={str(self.path)!r} cannot be written ({error}). The fit continues, "
                "but finished work is not stored until writing succeeds. Free some disk space."
            )


NO_CHECKPOINT = Checkpoint()
MISSING = ("", "not a parameter")


def _cannot_resume(path: PathLike | None, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"checkpoint={str(path)!r} cannot be resumed. {error} Pass another file name, or delete "
        "this file to start again."
    )


def _check_identity(path: PathLike, found: Identity, expected: Identity) -> None:
    """If the file belongs to another fit, raise an error that says what differs."""
    differences = []
    for name in dict.fromkeys([*found, *expected]):
        (old, before), (new, now) = found.get(name, MISSING), expected.get(name, MISSING)
        if old != new:
            shown = before != now
            differences.append(f"{name} was {before} and is {now}" if shown else f"{name} differs")
    if differences:
        raise ValueError(
            f"checkpoint={str(path)!r} belongs to another fit: {'; '.join(differences)}. Pass "
            "another file name, or delete this file to start again."
        )


def _as_bytes(tree: Any, arrays: Mapping[str, Array]) -> UInt8[Array, " n"]:
    """Return a piece, with all its arrays, as one array of bytes."""
    encoded = {
        name: [a.dtype.str, a.shape, b64encode(a.tobytes()).decode()] for name, a in arrays.items()
    }
    return np.frombuffer(json.dumps([tree, encoded], allow_nan=False).encode(), np.uint8)


def _decode_piece(piece: UInt8[Array, " n"], records: Sequence[type]) -> Any:
    tree, encoded = json.loads(piece.tobytes())
    arrays = {
        name: np.frombuffer(b64decode(text), kind).reshape(shape).copy()
        for name, (kind, shape, text) in encoded.items()
    }
    return decode(tree, arrays, constructors(records))["piece"]
