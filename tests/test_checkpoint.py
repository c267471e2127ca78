"""The ledger of a long fit: what is found again, what is refused, what happens to its file."""

import json
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import checkpoint
from emgpr.checkpoint import Ledger, digest
from emgpr.persistence import ModelFileError, write

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
def test_a_piece_comes_back_bit_for_bit(piece, tmp_path):
    ledger = Ledger.opened(tmp_path / "fit", FIT, [Pair])
    ledger.keep("a piece", piece)
    ledger.write()
    again = Ledger.opened(tmp_path / "fit", FIT, [Pair])
    assert again.resumed
    assert digest(again.find("a piece")) == digest(piece)
    assert again.find("another") is None


def test_without_a_path_nothing_is_kept():
    ledger = Ledger()
    ledger.keep("a piece", 1)
    ledger.settle()
    ledger.close()
    assert ledger.find("a piece") is None
    assert not ledger.due


def test_a_digest_tells_values_apart_and_not_what_they_remember():
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


class Curt:
    """Does not show what it holds; nor do torch's modules."""

    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return "Curt()"


class Module(Curt):
    def state_dict(self):
        return {"weight": Tensor(self.held)}


class Tensor(Curt):
    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return np.array(self.held)


def made(held):
    return lambda x: held * x


def recursive(held):
    def function(n):
        return held if n == 0 else function(n - 1)

    return function


@pytest.mark.parametrize("make", [Curt, Module, Tensor, made, recursive])
def test_what_is_not_shown_is_told_apart(make):
    assert digest(make(0.5)) == digest(make(0.5)) != digest(make(0.25))


def test_functions_without_a_name_are_told_apart():
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


def test_the_same_is_the_same_in_other_words():
    assert digest(np.int64(1)) == digest(1)
    assert digest(np.float32(0.5), np.bool_(True), np.str_("a")) == digest(0.5, True, "a")
    assert digest(partial(np.mean, axis=0, out=None)) == digest(partial(np.mean, out=None, axis=0))


def test_what_is_known_by_its_place_in_memory_has_no_digest():
    with pytest.raises(ValueError, match="place in memory"):
        digest([object()])


def test_another_fit_is_refused_and_what_differs_is_named(tmp_path):
    path = tmp_path / "fit"
    Ledger.opened(path, FIT)
    with pytest.raises(ValueError, match=r"holds another fit: X is another; max_iter was 120 and"):
        Ledger.opened(path, {"X": ("00", ""), "max_iter": ("2b", "60")})
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n"])
def test_a_file_of_something_else_is_refused_and_stays(content, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="Name another file, or delete this one"):
        Ledger.opened(path, FIT)
    assert path.read_bytes() == content


def test_a_saved_model_is_no_checkpoint(tmp_path):
    write(tmp_path / "model", {"format": "emgpr model", "version": 1}, {})
    with pytest.raises(ModelFileError, match=r"'emgpr model'; expected 'emgpr checkpoint'"):
        Ledger.opened(tmp_path / "model", FIT)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "fit"
    Ledger.opened(path, FIT)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="truncated"):
        Ledger.opened(path, FIT)


def test_a_folder_that_is_not_there_is_told_of_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        Ledger.opened(tmp_path / "none" / "fit", FIT)


def test_a_full_disk_does_not_end_the_fit(tmp_path, monkeypatch):
    ledger = Ledger.opened(tmp_path / "fit", FIT)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", full)
    ledger.keep("a piece", 1)
    with pytest.warns(UserWarning, match=r"No space left.*Make room there"):
        ledger.settle()
    monkeypatch.undo()
    ledger.settle()
    assert Ledger.opened(tmp_path / "fit", FIT).find("a piece") == 1


def test_writes_are_a_second_apart_but_for_the_last(tmp_path, monkeypatch):
    written = []
    ledger = Ledger.opened(tmp_path / "fit", FIT)
    monkeypatch.setattr(checkpoint, "write", lambda *given: written.append(given))
    for i in range(50):
        ledger.keep(f"{i}", i)
    ledger.settle()
    ledger.settle()
    assert len(written) == 1
    assert len(written[0][2]) == 51  # and the start


class Own(RBF):
    """A kernel of a user's, which no file can bring back."""


def test_a_piece_with_a_users_own_class_is_not_kept(tmp_path):
    ledger = Ledger.opened(tmp_path / "fit", FIT)
    ledger.keep("theirs", RBF(2.0))
    ledger.keep("own", Own(2.0))
    ledger.write()
    again = Ledger.opened(tmp_path / "fit", FIT)
    assert again.find("theirs") == RBF(2.0)
    assert again.find("own") is None


def test_many_small_pieces_fit_into_a_file(tmp_path):
    ledger = Ledger.opened(tmp_path / "fit", FIT)
    for i in range(3000):
        ledger.keep(f"Step 2: members {digest(i)}", (np.zeros(1), i))
    ledger.write()
    assert Ledger.opened(tmp_path / "fit", FIT).find(f"Step 2: members {digest(7)}")[1] == 7


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
    pieces = {"start": checkpoint._packed(None, []), "x": np.frombuffer(piece, np.uint8)}
    write(tmp_path / "fit", {"format": checkpoint.FORMAT, "version": 1, "fit": FIT}, pieces)
    with pytest.raises(ModelFileError, match="Name another file, or delete this one"):
        Ledger.opened(tmp_path / "fit", FIT).find("x")


def test_nothing_in_it_is_run(tmp_path):
    """A forged piece may say what it likes: names are looked up in a table."""
    forged = json.dumps([{"piece": {"function": "system", "own": True}}, {}]).encode()
    pieces = {"start": checkpoint._packed(None, []), "x": np.frombuffer(forged, np.uint8)}
    write(tmp_path / "fit", {"format": checkpoint.FORMAT, "version": 1, "fit": FIT}, pieces)
    with pytest.raises(ModelFileError, match="system"):
        Ledger.opened(tmp_path / "fit", FIT).find("x")
