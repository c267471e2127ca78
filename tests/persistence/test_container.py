"""Arrays under a header: written completely or not at all, and used only when verified."""

import errno
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.persistence import ModelFileError, container, read, write
from tests.model_files.corruption import join, split, with_checksum

HEADER = {"format": "test", "version": 2, "note": 'Zürich, "µg/kg"', "n": 2**100, "small": 5e-324}
ARRAYS = {
    "reals": np.random.default_rng(0).normal(size=(3, 4)),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "big end": np.arange(3, dtype=">i4"),
    "booleans": np.array([True, False, True]),
    "empty": np.empty((0, 3)),
    "one": np.array(7, dtype=np.uint8),
    "special": np.array([np.nan, np.inf, -0.0, 5e-324]),
}


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "a file", HEADER, ARRAYS)
    return tmp_path / "a file"


def test_header_and_arrays_are_read_back_bit_by_bit(path):
    header, arrays = read(path, "test", newest=2)
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype.newbyteorder("<")
        assert arrays[name].shape == array.shape
        assert arrays[name].flags.writeable
        assert arrays[name].flags.aligned
    assert np.signbit(arrays["special"][2])


def test_reading_allocates_little_more_than_the_file(tmp_path):
    write(tmp_path / "a", {"format": "test", "version": 1}, {"x": np.zeros((1000, 100))})
    tracemalloc.start()
    read(tmp_path / "a", "test", newest=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * 800_000


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_arrays_that_do_not_hold_real_numbers_are_not_written(tmp_path, array):
    with pytest.raises(ModelFileError, match="expected numbers or booleans"):
        write(tmp_path / "a", HEADER, {"x": array})
    assert list(tmp_path.iterdir()) == []


def test_a_header_that_could_not_be_read_is_not_written(tmp_path):
    with pytest.raises(ModelFileError, match="Store long lists as arrays"):
        write(tmp_path / "a", {"list": [0] * 20000}, {})
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path / "a", {"nan": np.nan}, {})
    assert list(tmp_path.iterdir()) == []


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("failure", [full_disk, interrupt])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch, step, failure):
    before = path.read_bytes()
    monkeypatch.setattr(container.os, step, failure)
    with pytest.raises((OSError, KeyboardInterrupt)):
        write(path, HEADER, {"x": np.arange(9.0)})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_write_through_a_link_keeps_the_link_and_the_permissions(path, tmp_path):
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    write(link, HEADER, {"x": np.arange(9.0)})
    assert link.is_symlink()
    assert list(read(path, "test", newest=2)[1]) == ["x"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*; create it first"):
        write(tmp_path / "no" / "a", HEADER, {})


def with_header(content, **changes):
    header, data = split(content)
    return join({**header, **changes}, data)


def with_text(content, text):
    return join(text, split(content)[1])


def with_table(*entries):
    return lambda content: with_header(content, arrays=list(entries))


INVALID_TABLE = "its table of arrays is not valid"
CORRUPTED = [
    ("is truncated: it has 100 of", lambda content: content[:100]),
    ("is truncated: it has 9 of", lambda content: content[:9]),
    ("is damaged: it has", lambda content: content + b"\0"),
    ("is damaged: its checksum", lambda content: content[:200] + b"?" + content[201:]),
    ("it is empty", lambda content: b""),
    ("converted as text", lambda content: content.replace(b"\r\n", b"\n")),
    (
        "is newer than this version of emgpr.*version is 3.*up to 2.*--upgrade",
        lambda content: with_header(content, version=3),
    ),
    ("its version is 0", lambda content: with_header(content, version=0)),
    ("its version is True", lambda content: with_header(content, version=True)),
    (
        "format 'other'; expected 'test'",
        lambda content: with_header(content, format="other"),
    ),
    ("not valid JSON .*Expecting value", lambda content: with_text(content, b"not JSON")),
    ("not valid JSON .*NaN", lambda content: with_text(content, b'{"a":NaN}')),
    ("a key occurs twice", lambda content: with_text(content, b'{"a":1,"a":2}')),
    ("not a JSON object", lambda content: with_text(content, b"[]")),
    ("not valid JSON .*utf-8", lambda content: with_text(content, b'{"\xff":1}')),
    ("not valid JSON .*recursion", lambda content: with_text(content, b"[" * 9000 + b"]" * 9000)),
    ("too many values \\(100001\\)", lambda content: with_text(content, b"[" * 100000)),
    ("not valid JSON .*digits", lambda content: with_text(content, b'{"n":' + b"9" * 5000 + b"}")),
    (
        "its header would have 9223372036854775807",
        lambda content: with_checksum(
            content[:16] + (2**63 - 1).to_bytes(8, "little") + content[24:-32]
        ),
    ),
    ("bytes instead of 8000000000", with_table(["x", "<f8", [10**9]])),
    ("bytes instead of 0", with_table(["x", "<f8", [0, 10**9]])),
    (INVALID_TABLE, with_table(["x", "O", [1]])),
    (INVALID_TABLE, with_table(["x", "<f8", [-1]])),
    (INVALID_TABLE, with_table(["x", "<f8", [True]])),
    (INVALID_TABLE, with_table(["x", "<f8", [2**62, 2**62]])),
    (INVALID_TABLE, with_table(["x", "<f8"])),
    (INVALID_TABLE, with_table("x<f8")),
    (INVALID_TABLE, with_table(["x", "<f8", [1] * 40])),
    (INVALID_TABLE, lambda content: with_header(content, arrays={"x": 1})),
    (
        "arrays have the same name",
        lambda content: with_header(
            content, arrays=[["x", "|u1", [8]], ["x", "|u1", [len(split(content)[1]) - 8]]]
        ),
    ),
]


@pytest.mark.parametrize(("message", "corrupt"), CORRUPTED)
def test_a_file_that_differs_from_what_was_written_is_refused(path, message, corrupt):
    path.write_bytes(corrupt(path.read_bytes()))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=f"(?s){message}"):
        read(path, "test", newest=2)
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


def test_files_of_other_formats_are_recognised(tmp_path):
    others = {
        "a pickle, which emgpr does not read": pickle.dumps(ARRAYS),
        "beginning with b'Xloc,Yloc": b"Xloc,Yloc,Cd\n1,2,3\n",
        "a gzip archive": b"\x1f\x8b\x08",
    }
    for what, content in others.items():
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ModelFileError, match=f"not a file written by emgpr: it is .*{what}"):
            read(tmp_path / "other", "test", newest=1)
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ModelFileError, match="a zip archive"):
        read(tmp_path / "other", "test", newest=1)
    with pytest.raises(ModelFileError, match="is a folder; expected a file written by emgpr"):
        read(tmp_path, "test", newest=1)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere", "test", newest=1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        read(tmp_path / "pipe", "test", newest=1)


@pytest.mark.parametrize("inside", [False, True])
def test_the_name_of_a_folder_is_refused(inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        write(tmp_path if inside else "", {"format": "pair", "version": 1}, {})
    assert list(tmp_path.iterdir()) == []
