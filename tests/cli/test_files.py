"""Files are checked before anything long starts, and never replaced without --force."""

import os

import pandas as pd
import pytest

from emgpr import CoKriging
from emgpr.kernels import Spherical

from .commands import COLUMNS, refuse, succeed

FIT, PREDICT = ("fit", "jura.csv", *COLUMNS), ("predict", "jura.emgpr", "--at", "new.csv")


@pytest.mark.parametrize(
    ("code", "arguments", "text"),
    [
        (2, (*FIT, "-o", "jura.csv", "--force"), "has the ending of a table"),
        (2, (*FIT, "--checkpoint", "jura.csv", "-o", "m.emgpr"), "has the ending of a table"),
        (2, (*FIT, "-o", "nowhere/m.emgpr"), "There is no folder nowhere."),
        (2, (*FIT, "--checkpoint", "no/c", "-o", "m.emgpr"), "There is no folder no."),
        (2, (*FIT, "-o", "."), "is a folder"),
        (2, (*FIT, "-o", "jura.emgpr"), "jura.emgpr exists already. Use another name, or add"),
        (2, (*PREDICT, "-o", "jura.csv"), "exists already"),
        (2, (*PREDICT, "-o", "p.doc"), "expected one of .csv"),
        (2, ("plot", "jura.emgpr", "maps", "-o", "g.gif"), "expected one of .png, .pdf, .svg."),
        (2, ("demo", "--out", "jura.csv"), "Use another folder for --out."),
        (3, ("predict", "jura.csv", "--at", "new.csv", "-o", "p.csv"), "Fit a model to it"),
        (3, ("predict", "jur.emgpr", "--at", "new.csv", "-o", "p.csv"), "jura.emgpr"),
    ],
)
def test_files_that_cannot_be_used(here, code, arguments, text):
    assert text in refuse(code, *arguments)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write")
def test_a_folder_that_is_not_writable(here):
    (here / "locked").mkdir(mode=0o500)
    assert "is not writable" in refuse(2, *PREDICT, "-o", "locked/p.csv")


@pytest.mark.parametrize(
    "arguments", [["validate"], ["plot", "shares", "-o", "s.png"], ["report", "-o", "r.html"]]
)
def test_commands_that_need_training_data_refuse_a_model_without(here, arguments):
    command, *others = arguments
    line = refuse(3, command, "sums.emgpr", *others)
    assert "model of class OnePassGP, which does not keep its training data" in line


@pytest.mark.parametrize("arguments", [FIT, PREDICT, ("grid", "jura.emgpr", "--spacing", "1")])
def test_names_that_are_too_long_are_refused_before_the_work(here, arguments, monkeypatch):
    ending = {"fit": ".emgpr", "predict": ".csv", "grid": ".nc"}[arguments[0]]
    monkeypatch.setattr("emgpr.EMGPR.fit", lambda *_: pytest.fail("fitted"))
    monkeypatch.setattr("emgpr.cli.files.read_model", lambda *_: pytest.fail("read"))
    line = refuse(2, *arguments, "-o", "n" * 260 + ending)
    assert "cannot be written (File name too long). Use another name or folder." in line


def test_the_longest_possible_name_is_written(here):
    name = "n" * 251 + ".csv"  # 255 bytes
    succeed(*PREDICT, "-o", name)
    assert "Cd_std" in (here / name).read_text()


def test_only_tables_are_written_to_stdout(here):
    for arguments in (FIT, ("grid", "jura.emgpr", "--spacing", "1")):
        assert "Only tables can be written to stdout (-)." in refuse(2, *arguments, "-o", "-")


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX only")
def test_a_device_is_not_replaced(here):
    (here / "null.csv").symlink_to("/dev/null")
    assert "is a device or a pipe" in refuse(2, *PREDICT, "-o", "null.csv", "--force")
    assert not os.path.isfile("/dev/null")


def test_force_replaces(here):
    succeed(*PREDICT, "-o", "new.csv", "--force")
    assert "Cd_std" in (here / "new.csv").read_text()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links_to_nothing(here):
    (here / "gone.csv").symlink_to("nowhere/gone.csv")
    line = refuse(3, "predict", "jura.emgpr", "--at", "gone.csv", "-o", "p.csv")
    assert line.endswith(
        "gone.csv is a symbolic link to a file that does not exist. Correct the link."
    )
    line = refuse(2, *PREDICT, "-o", "gone.csv")
    assert line.endswith("nowhere; create it first. Use another name or folder.")


def test_a_model_that_is_no_linear_model_has_figures_and_a_report(here):
    jura = pd.read_csv("jura.csv")
    kriged = CoKriging([Spherical(0.5, "fixed")], output_transform="log")
    kriged.fit(jura[["Xloc", "Yloc"]], jura[["Cd", "Ni"]]).save("kriged.emgpr")
    succeed("predict", "kriged.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert list(pd.read_csv("p.csv"))[-4:] == ["Cd", "Cd_std", "Ni", "Ni_std"]
    assert "mae" in succeed("validate", "kriged.emgpr").output
    succeed("plot", "kriged.emgpr", "variograms", "-o", "v.png")
    succeed("report", "kriged.emgpr", "--resolution", "12", "-o", "r.html")
    assert "cannot be compared with an exact model" in refuse(
        2, "validate", "kriged.emgpr", "--exact"
    )
    assert "CoKriging has none" in refuse(3, "plot", "kriged.emgpr", "latents", "-o", "l.png")
