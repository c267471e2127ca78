"""Long fits that outlive their process: what is finished, in one file that is rewritten whole.

A piece of work (a task, some members, how far an ascent has come) is known by a digest of all
that it was worked out from. A fit that starts again asks for its pieces as it comes to them: what
the file holds is taken from there, bit for bit, and the rest is worked out. So nothing depends on
the order of the work, and no piece can be taken for another.
"""

import hashlib
import json
import logging
import os
import re
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from time import monotonic
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np
from jaxtyping import UInt8

from emgpr.persistence import ModelFileError, PathLike, decode, encode, read, write

Array = np.ndarray

FORMAT = "emgpr checkpoint"
VERSION = 1
EVERY = 1.0  # seconds between two writes at least,
SHARE = 0.05  # and no more than this share of the time goes into them
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
# What a file may raise that holds something else, or was made to mislead.
UNREADABLE = (ValueError, KeyError, AttributeError, TypeError, IndexError, RecursionError)

logger = logging.getLogger(__name__)


def digest(*values: Any) -> str:
    """A text that is the same for the same values in every process, and else another.

    Raises ValueError for an object that is known by nothing but its place in memory.

    >>> digest(1.0, np.zeros(2)) == digest(1.0, np.zeros(2)) != digest(1.0, np.zeros(3))
    True
    """
    sha = hashlib.sha256()
    for part in _parts(values):
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()


def _parts(value: Any) -> Iterator[bytes | memoryview]:
    """All that tells a value from others; of an object, its class and what it holds."""
    if isinstance(value, np.generic):  # 1 is 1, whoever's
        value = value.item()
    kind = type(value)
    yield kind.__qualname__.encode()
    if isinstance(value, Array) and value.dtype != object:
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    elif isinstance(value, list | tuple | Array):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from _parts(item)
    elif is_dataclass(value):
        # Not what it has worked out since and remembers beside its fields.
        yield from _parts({f.name: getattr(value, f.name) for f in fields(value)})
    elif isinstance(value, np.random.Generator):
        yield from _parts(value.bit_generator.state)
    elif isinstance(value, np.random.RandomState):
        yield from _parts(value.get_state(legacy=False))
    elif isinstance(value, FunctionType) and "<" in value.__qualname__:
        yield from _unnamed(value)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type) or _is_named(value):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
    elif isinstance(value, partial):
        yield from _parts((value.func, value.args, dict(sorted(value.keywords.items()))))
    elif hasattr(value, "get_params"):
        yield from _parts(dict(sorted(vars(value).items())))
    elif hasattr(value, "detach"):  # a tensor, of which repr shows some numbers
        yield from _parts(value.detach().cpu().numpy())
    elif not isinstance(value, str) and ADDRESS.search(repr(value)):
        raise ValueError(f"{value!r} is written with its place in memory, which changes.")
    else:
        yield repr(value).encode()
        # Which may not show all that it holds; of torch's modules, what was learned is there.
        learned = hasattr(value, "state_dict")
        held = value.state_dict() if learned else getattr(value, "__dict__", {})
        if held:
            yield from _parts(list(held.items()))


def _unnamed(function: FunctionType) -> Iterator[bytes | memoryview]:
    """A lambda, or a function made in another, by what it does and what it was made with."""
    yield from _instructions(function.__code__)
    yield from _parts((function.__defaults__, function.__kwdefaults__))
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _parts([own for own in held if own is not function])


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
    """Whether it is a function of another kind, such as NumPy's, and of no object."""
    return callable(value) and hasattr(value, "__name__") and not hasattr(value, "__self__")


@dataclass
class Ledger:
    """The pieces that are finished, and the file they are in; without a path, none are kept.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.opened(f"{folder}/fit", {"X": ("1f", "")})
    ...     ledger.keep("task 0", np.arange(2.0))
    ...     ledger.write()
    ...     Ledger.opened(f"{folder}/fit", {"X": ("1f", "")}).find("task 0")
    array([0., 1.])
    """

    path: PathLike | None = None
    fit: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    records: Sequence[type] = ()  # dataclasses that pieces may hold
    pieces: dict[str, UInt8[Array, " _"]] = field(default_factory=dict)
    start: Any = None  # what the first process drew, and the next must have too
    resumed: bool = False
    _saved: bool = True
    _next: float = 0.0

    @classmethod
    def opened(
        cls,
        path: PathLike,
        fit: Mapping[str, tuple[str, str]],
        records: Sequence[type] = (),
        start: Any = None,
    ) -> "Ledger":
        """The ledger of this fit, begun or gone on with; raises if the file is of another.

        `fit` says what is fitted: of each thing a digest, and what it is in words (or nothing).
        """
        if not os.path.lexists(path):
            ledger = cls(path, fit, records, {}, start)
            ledger.write()  # a folder that is not there, or full, is told of now
            return ledger
        try:
            header, arrays = read(path, FORMAT, VERSION)
            was = {name: (str(of), str(shown)) for name, (of, shown) in header["fit"].items()}
            begun = _unpacked(arrays.pop("start"), records)
        except UNREADABLE as trouble:
            raise _no_checkpoint(path, trouble) from trouble
        _refuse_another(path, was, fit)
        logger.info("%s: %d finished pieces of this fit are taken from there", path, len(arrays))
        return cls(path, fit, records, arrays, begun, resumed=True)

    def find(self, key: str) -> Any:
        """The piece that is finished; None if it is not."""
        found = self.pieces.get(key)
        if found is None:
            return None
        try:
            return _unpacked(found, self.records)
        except UNREADABLE as trouble:
            raise _no_checkpoint(self.path, trouble) from trouble

    def keep(self, key: str, piece: Any) -> None:
        """Hold on to a piece, in the place of one of that name; the file follows in a second.

        One that holds a class of the user's, which no file can bring back, is worked out again.
        """
        if self.path is not None:
            tree, arrays, own = encode({"piece": piece}, self.records)
            if own:
                return
            self.pieces[key] = _as_bytes(tree, arrays)
            self._saved = False
            if self.due:
                self._write_or_warn()

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return self.path is not None and monotonic() >= self._next

    def write(self) -> None:
        """Bring the file up to date, now."""
        if self.path is None:
            return
        began = monotonic()
        header = {"format": FORMAT, "version": VERSION, "fit": dict(self.fit)}
        start = {"start": _packed(self.start, self.records)}
        write(self.path, header, {**start, **self.pieces})
        self._saved = True
        ended = monotonic()
        self._next = ended + max(EVERY, (ended - began) / SHARE)

    def settle(self) -> None:
        """At the end of a stage: what is not in the file yet is brought there."""
        if not self._saved:
            self._write_or_warn()

    def close(self) -> None:
        """Take the file away, if that can be: the fit has ended, and nobody needs it."""
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)

    def _write_or_warn(self) -> None:
        """A fit of hours does not end because a disk is full."""
        try:
            self.write()
        except OSError as trouble:
            self._next = monotonic() + 60 * EVERY
            warnings.warn(
                f"checkpoint={str(self.path)!r} cannot be written ({trouble}); the fit goes on, "
                "and what it finishes is not kept until that works again. Make room there.",
                UserWarning,
                stacklevel=2,
            )


NOTHING_KEPT = Ledger()


def _no_checkpoint(path: PathLike | None, trouble: Exception) -> ModelFileError:
    return ModelFileError(
        f"checkpoint={str(path)!r} cannot be gone on from. {trouble} Name another file, or "
        "delete this one to start afresh."
    )


def _refuse_another(
    path: PathLike,
    was: Mapping[str, tuple[str, str]],
    fit: Mapping[str, tuple[str, str]],
) -> None:
    """Raise if the file is of another fit, and say what differs."""
    words = []
    for name in dict.fromkeys([*was, *fit]):
        (old, before), (new, now) = was.get(name, ("", "")), fit.get(name, ("", ""))
        if old != new:
            told = before != now
            words.append(f"{name} was {before} and is {now}" if told else f"{name} is another")
    if words:
        raise ValueError(
            f"checkpoint={str(path)!r} holds another fit: {'; '.join(words)}. Name another file, "
            "or delete this one to start afresh."
        )


def _packed(piece: Any, records: Sequence[type]) -> UInt8[Array, " n"]:
    """A piece as bytes."""
    tree, arrays, _ = encode({"piece": piece}, records)
    return _as_bytes(tree, arrays)


def _as_bytes(tree: Any, arrays: Mapping[str, Array]) -> UInt8[Array, " n"]:
    """One array of the file, however many a piece has of its own."""
    plain = {
        name: [a.dtype.str, a.shape, b64encode(a.tobytes()).decode()] for name, a in arrays.items()
    }
    return np.frombuffer(json.dumps([tree, plain], allow_nan=False).encode(), np.uint8)


def _unpacked(packed: UInt8[Array, " n"], records: Sequence[type]) -> Any:
    tree, plain = json.loads(packed.tobytes())
    arrays = {
        name: np.frombuffer(b64decode(text), kind).reshape(shape).copy()
        for name, (kind, shape, text) in plain.items()
    }
    return decode(tree, arrays, records)["piece"]
