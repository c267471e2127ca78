"""Checkpoints: what is found again, what is refused, and what happens to the file."""

import json
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import checkpoint as checkpoint_module
from emgpr.checkpoint import Checkpoint, digest
from emgpr.persistence import ModelFileError, encode, write

FIT = {"X": ("1f", ""), "max_iter": ("2a", "120")}


@dataclass(frozen=True)
class Pair:
    one: np.ndarray
    other: float

    @cached_property
    def both(self):
        return self.one + self.other


@pytest.mark.parametrize(
    "piece",
    [
        np.array([[np.nan, -0.0], [np.inf, 5e-324]]),
        (np.arange(3), [1.5, float("-inf")], "text"),
        Pair(np.zeros((0, 2)), 0.1),
        {None: np.array([True, False]), "log": np.zeros(1)},
    ],
)
def test_a_piece_is_restored_bit_for_bit(piece, tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "fit", FIT, [Pair])
    checkpoint.keep("a piece", piece)
    checkpoint.write()
    again = Checkpoint.open(tmp_path / "fit", FIT, [Pair])
    assert again.resumed
    assert digest(again.find("a piece")) == digest(piece)
    assert again.find("another") is None


def test_without_a_path_nothing_is_kept():
    checkpoint = Checkpoint()
    checkpoint.keep("a piece", 1)
    checkpoint.flush()
    checkpoint.close()
    assert checkpoint.find("a piece") is None
    assert not checkpoint.due


def test_digests_of_different_values_differ_and_ignore_cached_properties():
    pair = Pair(np.ones(2), 0.5)
    before = digest(pair)
    assert pair.both.sum() == 3
    assert digest(pair) == before
    others = [
        Pair(np.ones(2), 0.25), Pair(np.ones((1, 2)), 0.5), RBF(1.0), RBF(2.0), Matern(1.0),
        partial(np.mean, axis=0), partial(np.mean, axis=1), partial(np.sum, axis=0),
        1, 1.0, "1", "a tree at 0x1f", True, None, [1, 2], [[1], 2], (1, 2), np.mean, digest,
        np.random.default_rng(0), np.random.default_rng(1), np.random.RandomState(0),
    ]  # fmt: skip
    assert len({before, *map(digest, others)}) == 1 + len(others)


class Opaque:
    """Does not show its attributes; nor do the modules and tensors of torch."""

    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return "Opaque()"


class Module(Opaque):
    def state_dict(self):
        return {"weight": Tensor(self.held)}


class Tensor(Opaque):
    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return np.array(self.held)


def closure(held):
    return lambda x: held * x


def recursive(held):
    def function(n):
        return held if n == 0 else function(n - 1)

    return function


@pytest.mark.parametrize("make", [Opaque, Module, Tensor, closure, recursive])
def test_the_digest_covers_what_the_repr_does_not_show(make):
    assert digest(make(0.5)) == digest(make(0.5)) != digest(make(0.25))


def test_digests_of_different_lambdas_differ():
    functions = [
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x: np.exp(x),
        lambda x: np.log(x),
        lambda x, by=1: x + by,
        lambda x, by=2: x + by,
        lambda x: [i + 1 for i in x],
        lambda x: [i + 2 for i in x],
        lambda x: x in {"a", "b"},
        lambda x: x in {"a", "c"},
    ]
    assert len(set(map(digest, functions))) == len(functions)


def test_equal_values_of_python_and_numpy_have_the_same_digest():
    assert digest(np.int64(1)) == digest(1)
    assert digest(np.float32(0.5), np.bool_(True), np.str_("a")) == digest(0.5, True, "a")
    assert digest(partial(np.mean, axis=0, out=None)) == digest(partial(np.mean, out=None, axis=0))


def test_an_object_known_only_by_its_address_has_no_digest():
    with pytest.raises(ValueError, match="address in memory"):
        digest([object()])


def test_the_file_of_another_fit_is_refused_and_the_differences_are_named(tmp_path):
    path = tmp_path / "fit"
    Checkpoint.open(path, FIT)
    with pytest.raises(ValueError, match=r"another fit: X differs; max_iter was 120 and is 60"):
        Checkpoint.open(path, {"X": ("00", ""), "max_iter": ("2b", "60")})
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n"])
def test_another_file_is_refused_and_left_as_it_is(content, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="Pass another file name, or delete this file"):
        Checkpoint.open(path, FIT)
    assert path.read_bytes() == content


def test_a_saved_model_is_not_a_checkpoint(tmp_path):
    write(tmp_path / "model", {"format": "emgpr model", "version": 1}, {})
    with pytest.raises(ModelFileError, match=r"'emgpr model'; expected 'emgpr checkpoint'"):
        Checkpoint.open(tmp_path / "model", FIT)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "fit"
    Checkpoint.open(path, FIT)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="truncated"):
        Checkpoint.open(path, FIT)


def test_a_missing_folder_is_reported_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        Checkpoint.open(tmp_path / "none" / "fit", FIT)


def test_a_full_disk_does_not_end_the_fit(tmp_path, monkeypatch):
    checkpoint = Checkpoint.open(tmp_path / "fit", FIT)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_module, "write", full)
    checkpoint.keep("a piece", 1)
    with pytest.warns(UserWarning, match=r"No space left.*Free some disk space"):
        checkpoint.flush()
    monkeypatch.undo()
    checkpoint.flush()
    assert Checkpoint.open(tmp_path / "fit", FIT).find("a piece") == 1


def test_writes_are_a_second_apart_except_the_last(tmp_path, monkeypatch):
    written = []
    checkpoint = Checkpoint.open(tmp_path / "fit", FIT)
    monkeypatch.setattr(checkpoint_module, "write", lambda *given: written.append(given))
    for i in range(50):
        checkpoint.keep(f"{i}", i)
    checkpoint.flush()
    checkpoint.flush()
    assert len(written) == 1
    assert len(written[0][2]) == 51  # and the start


class Own(RBF):
    """A kernel of the user's, which a file cannot restore."""


def test_a_piece_with_a_users_own_class_is_not_kept(tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "fit", FIT)
    checkpoint.keep("theirs", RBF(2.0))
    checkpoint.keep("own", Own(2.0))
    checkpoint.write()
    again = Checkpoint.open(tmp_path / "fit", FIT)
    assert again.find("theirs") == RBF(2.0)
    assert again.find("own") is None


def test_many_small_pieces_fit_into_a_file(tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "fit", FIT)
    for i in range(3000):
        checkpoint.keep(f"Step 2: members {digest(i)}", (np.zeros(1), i))
    checkpoint.write()
    assert Checkpoint.open(tmp_path / "fit", FIT).find(f"Step 2: members {digest(7)}")[1] == 7


def piece_of(value):
    return checkpoint_module._as_bytes(*encode({"piece": value})[:2])


FORGED = [
    b"",
    b"[]",
    b"7",
    b"[{}, {}]",
    b'[{"piece": 1}, {"a": ["<f8", [9], "AAAA"]}]',
    b"[" * 9**6,
]


@pytest.mark.parametrize("piece", FORGED)
def test_a_forged_piece_is_refused_with_the_remedy(piece, tmp_path):
    pieces = {"start": piece_of(None), "x": np.frombuffer(piece, np.uint8)}
    write(tmp_path / "fit", {"format": checkpoint_module.FORMAT, "version": 1, "fit": FIT}, pieces)
    with pytest.raises(ModelFileError, match="Pass another file name, or delete this file"):
        Checkpoint.open(tmp_path / "fit", FIT).find("x")


def test_no_code_in_a_file_is_run(tmp_path):
    """Names in a forged piece are only looked up in a table."""
    forged = json.dumps([{"piece": {"function": "system", "own": True}}, {}]).encode()
    pieces = {"start": piece_of(None), "x": np.frombuffer(forged, np.uint8)}
    write(tmp_path / "fit", {"format": checkpoint_module.FORMAT, "version": 1, "fit": FIT}, pieces)
    with pytest.raises(ModelFileError, match="system"):
        Checkpoint.open(tmp_path / "fit", FIT).find("x")
