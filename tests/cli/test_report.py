"""`emgpr report`: a page about a model file."""

import re
import sys

import pytest

from .commands import refuse, succeed

REPORT = ("report", "nameless.emgpr", "-o", "r.html")


def test_the_page_has_the_title_the_units_and_the_name_of_the_file(here):
    pytest.importorskip("jinja2")
    result = succeed(*REPORT, "--units", "0=mg/kg,x0=km", "--title", "Cd & Co")
    size = (here / "r.html").stat().st_size / 1e6
    assert result.stdout == f"{size:.1f} MB: r.html\n"
    assert result.stderr == ""  # no progress, since stderr is not a terminal
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "<h1>Cd &amp; Co</h1>" in page
    assert "mg/kg" in page
    assert "nameless.emgpr" in page


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("--resolution", "5"), "'--resolution': Input should be greater than or equal to 12"),
        (2, ("-o", "r.pdf"), "expected one of .html"),
        (2, ("--units", "Cd=mg/kg"), "expected one of 0, x0, x1."),
        (2, ("--units", "0=mg,x0"), "expected distinct names with values, such as A=mg"),
    ],
)
def test_options_that_cannot_be_used(here, code, options, text):
    assert text in refuse(code, *REPORT, *options)


def test_a_file_that_is_not_a_model(here):
    (here / "junk.emgpr").write_bytes(b"no model")
    assert "junk.emgpr" in refuse(3, "report", "junk.emgpr", "-o", "r.html")


def test_without_jinja2_the_extra_is_named(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    line = refuse(2, *REPORT)
    assert line.endswith("needs jinja2, which is not installed. Run pip install 'emgpr[report]'.")


def test_only_the_outputs_to_keep_are_reported(here):
    pytest.importorskip("jinja2")
    succeed("report", "jura.emgpr", "--outputs", "Zn,Cd", "--resolution", "12", "-o", "r.html")
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "<title>Zn and Cd at 87 sites" in page
    shown = re.sub(r"data:image/[^\"]*", "", page)
    results = shown[: shown.index('id="provenance"')]  # The columns of the file are named after it.
    assert not re.search(r"\bNi\b", results)
    line = refuse(2, "report", "jura.emgpr", "--outputs", "Pb", "-o", "other.html")
    assert "--outputs contains 'Pb'; expected one of Cd, Ni, Zn." in line
