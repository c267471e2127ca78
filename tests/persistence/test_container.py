"""Arrays under a header: written whole or not at all, and believed only when checked."""

import errno
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from corruption import closed, opened, signed
from numpy.testing import assert_array_equal

from emgpr.persistence import ModelFileError, container, read, write

HEADER = {"format": "test", "version": 2, "note": 'Zürich, "µg/kg"', "n": 2**100, "small": 5e-324}
ARRAYS = {
    "reals": np.random.default_rng(0).normal(size=(3, 4)),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "big end": np.arange(3, dtype=">i4"),
    "truths": np.array([True, False, True]),
    "nothing": np.empty((0, 3)),
    "one": np.array(7, dtype=np.uint8),
    "odd": np.array([np.nan, np.inf, -0.0, 5e-324]),
}


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "a file", HEADER, ARRAYS)
    return tmp_path / "a file"


def test_header_and_arrays_come_back_bit_by_bit(path):
    header, arrays = read(path, "test", newest=2)
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype.newbyteorder("<")
        assert arrays[name].shape == array.shape
        assert arrays[name].flags.writeable
        assert arrays[name].flags.aligned
    assert np.signbit(arrays["odd"][2])


def test_reading_allocates_little_more_than_the_file(tmp_path):
    write(tmp_path / "a", {"format": "test", "version": 1}, {"x": np.zeros((1000, 100))})
    tracemalloc.start()
    read(tmp_path / "a", "test", newest=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * 800_000


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_arrays_of_other_things_are_not_written(tmp_path, array):
    with pytest.raises(ModelFileError, match="expected numbers or booleans"):
        write(tmp_path / "a", HEADER, {"x": array})
    assert list(tmp_path.iterdir()) == []


def test_a_header_that_could_not_be_read_is_not_written(tmp_path):
    with pytest.raises(ModelFileError, match="Put what is long into arrays"):
        write(tmp_path / "a", {"list": [0] * 20000}, {})
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path / "a", {"nan": np.nan}, {})
    assert list(tmp_path.iterdir()) == []


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("trouble", [full_disk, interrupt])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch, step, trouble):
    before = path.read_bytes()
    monkeypatch.setattr(container.os, step, trouble)
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


def test_a_folder_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*; create it first"):
        write(tmp_path / "no" / "a", HEADER, {})


def with_header(whole, **changes):
    header, data = opened(whole)
    return closed({**header, **changes}, data)


def with_text(whole, text):
    return closed(text, opened(whole)[1])


def table(*entries):
    return lambda whole: with_header(whole, arrays=list(entries))


SAYS = {
    "is truncated: it has 100 of": lambda whole: whole[:100],
    "is truncated: it has 9 of": lambda whole: whole[:9],
    "is damaged: it has": lambda whole: whole + b"\0",
    "is damaged: its checksum": lambda whole: whole[:200] + b"?" + whole[201:],
    "it is empty": lambda whole: b"",
    "changed on its way, as text": lambda whole: whole.replace(b"\r\n", b"\n"),
    "is newer than this emgpr.*version 3.*up to 2.*Upgrade": lambda w: with_header(w, version=3),
    "its version is 0": lambda whole: with_header(whole, version=0),
    "its version is True": lambda whole: with_header(whole, version=True),
    "holds 'other'; expected 'test'": lambda whole: with_header(whole, format="other"),
    "not JSON .*Expecting value": lambda whole: with_text(whole, b"not JSON"),
    "not JSON .*NaN": lambda whole: with_text(whole, b'{"a":NaN}'),
    "a name is given twice": lambda whole: with_text(whole, b'{"a":1,"a":2}'),
    "not a JSON object": lambda whole: with_text(whole, b"[]"),
    "not JSON .*utf-8": lambda whole: with_text(whole, b'{"\xff":1}'),
    "not JSON .*recursion": lambda whole: with_text(whole, b"[" * 9000 + b"]" * 9000),
    "has 100001 parts": lambda whole: with_text(whole, b"[" * 100000),
    "not JSON .*digits": lambda whole: with_text(whole, b'{"n":' + b"9" * 5000 + b"}"),
    "its header would have 9223372036854775807": lambda whole: signed(
        whole[:16] + (2**63 - 1).to_bytes(8, "little") + whole[24:-32]
    ),
    "its arrays need 8000000000 bytes": table(["x", "<f8", [10**9]]),
    "its arrays need 0 bytes": table(["x", "<f8", [0, 10**9]]),
    "its table of arrays is not one": table(["x", "O", [1]]),
    "table of arrays is not one": table(["x", "<f8", [-1]]),
    "table of arrays is not": table(["x", "<f8", [True]]),
    "table of arrays is": table(["x", "<f8", [2**62, 2**62]]),
    "table of arrays": table(["x", "<f8"]),
    "table of array": table("x<f8"),
    "table of arra": table(["x", "<f8", [1] * 40]),
    "table of arr": lambda whole: with_header(whole, arrays={"x": 1}),
    "arrays share a name": lambda whole: with_header(
        whole, arrays=[["x", "|u1", [8]], ["x", "|u1", [len(opened(whole)[1]) - 8]]]
    ),
}


@pytest.mark.parametrize("message", SAYS)
def test_a_file_that_is_not_as_it_was_written_is_refused(path, message):
    path.write_bytes(SAYS[message](path.read_bytes()))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=f"(?s){message}"):
        read(path, "test", newest=2)
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


def test_what_is_no_file_of_ours_is_called_what_it_is(tmp_path):
    others = {
        "a pickle, which runs code": pickle.dumps(ARRAYS),
        "begins with b'Xloc,Yloc": b"Xloc,Yloc,Cd\n1,2,3\n",
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="no regular file"):
        read(tmp_path / "pipe", "test", newest=1)


@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_is_no_name_of_a_file(inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        write(tmp_path if inside else "", {"format": "pair", "version": 1}, {})
    assert list(tmp_path.iterdir()) == []
