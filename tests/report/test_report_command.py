"""`emgpr report`: a page from a model file, and errors of one line with their exit code."""

import sys

import pytest
from typer.testing import CliRunner

from emgpr.cli import app


def emgpr_says(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def model_file(cadmium, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "cadmium.emgpr"
    cadmium.save(path)
    return path


def test_the_page_is_written_and_said_where(model_file, tmp_path):
    page = tmp_path / "report.html"
    result = emgpr_says(
        "report", model_file, "-o", page, "--units", "0=mg/kg,x0=km", "--title", "Cd & Co"
    )
    assert result.exit_code == 0, result.output
    size = page.stat().st_size / 1e6
    assert result.stdout == f"{size:.1f} MB: {page}\n"
    assert result.stderr == ""  # no terminal is watching, so no progress
    text = page.read_text(encoding="utf-8")
    assert "<h1>Cd &amp; Co</h1>" in text
    assert "mg/kg" in text
    assert "cadmium.emgpr" in text


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["no.emgpr", "-o", "report.html"], 3, "There is no file"),
        (["{model}", "-o", "{folder}/report.pdf"], 2, "expected .html"),
        (["{model}", "-o", "{folder}/no/report.html"], 2, "there is no folder"),
        (["{junk}", "-o", "{folder}/report.html"], 3, "junk.emgpr"),
        (["{model}", "-o", "{folder}/report.html", "--units", "Cd=mg/kg"], 2, "the model has 0, x"),
        (["{model}", "-o", "{folder}/report.html", "--units", "0=mg,x0"], 2, "expected A=1,B=2"),
    ],
)
def test_what_goes_wrong_is_one_line(model_file, tmp_path, options, code, says):
    (tmp_path / "junk.emgpr").write_bytes(b"no model")
    here = {"model": model_file, "folder": tmp_path, "junk": tmp_path / "junk.emgpr"}
    result = emgpr_says("report", *(option.format(**here) for option in options))
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert says in line
    assert not list(tmp_path.glob("*.html"))


def test_a_page_that_is_there_is_replaced_only_if_asked_to(model_file, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("mine")
    result = emgpr_says("report", model_file, "-o", page)
    assert result.exit_code == 2
    assert result.stderr == f"emgpr: {page} is there already. Name another file, or add --force.\n"
    assert page.read_text() == "mine"
    assert emgpr_says("report", model_file, "-o", page, "--force").exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_jinja2_the_extra_is_named(model_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = emgpr_says("report", model_file, "-o", tmp_path / "report.html")
    assert result.exit_code == 2
    assert result.stderr == "emgpr: A report needs jinja2: pip install 'emgpr[report]'\n"


def test_help_has_examples():
    result = emgpr_says("report", "--help")
    assert result.exit_code == 0
    assert "\n    emgpr report jura.emgpr -o report.html" in result.stdout
