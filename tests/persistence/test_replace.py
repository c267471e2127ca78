"""Files are replaced as a whole, or not at all."""

import os

import pytest

from emgpr.persistence import check_replaceable, replacing


def write(path, text, **how):
    with replacing(path, **how) as draft:
        if how.get("is_folder"):
            draft.mkdir()
            draft = draft / "part"
        draft.write_text(text)


def fail(path, error, **how):
    with replacing(path, **how) as draft:
        (draft.mkdir if how.get("is_folder") else draft.touch)()
        raise error


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fail(file, KeyboardInterrupt())
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_folder_is_replaced_or_kept(tmp_path):
    folder = tmp_path / "m.zarr"
    for text in ("old", "new"):
        write(folder, text, is_folder=True)
        assert (folder / "part").read_text() == text
    with pytest.raises(OSError, match="full"):
        fail(folder, OSError("full"), is_folder=True)
    assert (folder / "part").read_text() == "new"
    assert os.listdir(tmp_path) == ["m.zarr"]


def test_symbolic_links_are_followed(tmp_path):
    (tmp_path / "data").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "data" / "a.csv")
    for text in ("created", "replaced"):
        write(link, text)
        assert link.is_symlink()
        assert (tmp_path / "data" / "a.csv").read_text() == text


def test_names_of_any_length(tmp_path):
    longest = tmp_path / ("é" * 125 + ".csvx")  # 255 bytes
    check_replaceable(longest)
    write(longest, "text")
    assert longest.read_text() == "text"
    for check in (check_replaceable, lambda path: write(path, "")):
        with pytest.raises(OSError, match="too long"):
            check(tmp_path / ("n" * 256))
    assert os.listdir(tmp_path) == [longest.name]


def test_the_draft_has_the_ending_of_the_file(tmp_path):
    with replacing(tmp_path / "sites.csv.gz") as draft:
        assert draft.name.endswith(".csv.gz")
        draft.touch()


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("folder", {}, "is a folder"),
        ("file", {"is_folder": True}, "is not a folder"),
        ("pipe", {}, "is a device or a pipe"),
        ("none/a.csv", {}, "There is no folder"),
    ],
)
def test_what_cannot_be_replaced(tmp_path, name, how, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=message):
        check_replaceable(tmp_path / name, **how)
