"""`emgpr example`: the files that the examples need."""

from emgpr.io import read_table

from .commands import refuse, succeed

FILES = ["jura.csv", "new.csv", "region.geojson", "amsua.csv"]


def test_files_are_written_once_and_replaced_only_with_force(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second time they are the same
        assert succeed("example").stdout.split() == FILES
    assert list(read_table("new.csv")) == ["Xloc", "Yloc", "Ni", "Zn"]
    (tmp_path / "new.csv").write_text("mine\n")
    assert "new.csv exists already" in refuse(2, "example")
    succeed("example", "--force")
    assert len(read_table("new.csv")) == 100


def test_a_new_folder(tmp_path):
    assert succeed("example", "--out", tmp_path / "a" / "b").exit_code == 0
    assert sorted(file.name for file in (tmp_path / "a" / "b").iterdir()) == sorted(FILES)
