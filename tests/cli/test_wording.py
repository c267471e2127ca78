"""Messages of the library, in the words of the command line."""

import inspect

import pandas as pd
import pytest
from typer.main import get_command

from emgpr import EMGPR, IndependentGP, OnePassGP
from emgpr.cli import app
from emgpr.cli.options import EstimatorOptions
from emgpr.cli.wording import OPTIONS, command_line_words

from .commands import COLUMNS, refuse, succeed

FIT = ("--checkpoint", "--crs", "--device", "--jobs", "--transform", "--kernel", "--seed")
GRID = ("--spacing", "--bounds", "--units", "--quantiles", "--above", "--crs")


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (
            "checkpoint='a b.fit' belongs to another fit: X differs. Pass another file name.",
            FIT,
            "--checkpoint a b.fit belongs to another fit: X differs. Pass another file name.",
        ),
        (
            "No part of this fit was stored. Set checkpoint=path to keep finished work.",
            FIT,
            "No part of this fit was stored. Add --checkpoint path to keep finished work.",
        ),
        (
            "so the extent of a map is unknown; pass bounds=(west, south, east, north).",
            GRID,
            "so the extent of a map is unknown; add --bounds west,south,east,north.",
        ),
        ("or pass bounds.", GRID, "or add --bounds."),
        ("Try fewer processes (n_jobs) or larger batches (batch_size).", FIT,
         "Try fewer processes (--jobs) or larger batches."),
        ("bounds=[1, 2] contain no cell", GRID, "--bounds 1,2 contain no cell"),
        (
            'conditioning="auto": exact predictions take too long. Set conditioning=64.',
            GRID,
            "Exact predictions take too long. In Python, set conditioning=64.",
        ),
        (
            "Set n_members or batch_size to use more readings in the fit.",
            FIT,
            "In Python, set n_members to use more readings in the fit.",
        ),
        ("predict_grid needs two columns.", GRID, "emgpr grid needs two columns."),
        ("--above is 'spacing=1'; expected A=1,B=2.", ("--above",),
         "--above is 'spacing=1'; expected A=1,B=2."),
    ],
)  # fmt: skip
def test_messages(text, options, expected):
    assert command_line_words(text, options) == expected


def test_every_parameter_is_known():
    """A new parameter needs an entry, so that messages about it are translated."""
    for estimator in (EMGPR, IndependentGP, OnePassGP):
        assert set(inspect.signature(estimator).parameters) <= set(OPTIONS)


@pytest.mark.parametrize(
    ("code", "arguments", "text"),
    [
        (2, ("fit", "jura.csv", *COLUMNS, "--crs", "EPSG:1", "--check"), "--crs EPSG:1 is not"),
        (3, ("grid", "jura.emgpr", "--spacing", "1e-6", "-o", "m.nc"), "or add --bounds."),
        (
            3,
            ("grid", "jura.emgpr", "--spacing", "1", "--bounds", "5,5,1,1", "-o", "m.nc"),
            "--bounds 5.0,5.0,1.0,1.0 contain no cell",
        ),
    ],
)
def test_messages_of_commands(here, code, arguments, text):
    pytest.importorskip("xarray")
    pytest.importorskip("pyproj")
    assert text in refuse(code, *arguments)


def test_options_that_set_parameters_are_the_words_for_them():
    options = EstimatorOptions(
        inputs="x", outputs="a,b", kernel="rbf", latents=1, learner="exact", members=1,
        conditioning="all", output_bounds="a=none", composition="a,b",
    )  # fmt: skip
    command = get_command(app).commands["fit"]
    known = {name for parameter in command.params for name in parameter.opts}
    assert {OPTIONS[name] for name in options.model_settings()} <= known


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Set conditioning=64, too.", "Add --conditioning 64 in emgpr fit, too."),
        ("Use fewer processes (n_jobs).", "Use fewer processes (--jobs in emgpr fit)."),
        ("Change output_bounds.", "Change --output-bounds in emgpr fit."),
        ("It did not converge within max_iter=9; increase max_iter.",
         "It did not converge within 9 iterations; in Python, increase max_iter."),
        ("OnePassGP lacks something: box=1.", "In Python, OnePassGP lacks something: box=1."),
        ("Write NaN where an output was not measured.",
         "Leave cells empty where an output was not measured."),
    ],
)  # fmt: skip
def test_messages_about_a_fitted_model(text, expected):
    fit = ("--conditioning", "--output-bounds", "--jobs")
    assert command_line_words(text, ("--known", "--at"), fit) == expected


def test_readings_in_known_that_have_no_log(here):
    table = pd.read_csv("new.csv").assign(Ni=0.0)
    table.to_csv("zeros.csv", index=False)
    line = refuse(3, "predict", "jura.emgpr", "--at", "zeros.csv", "--known", "Ni", "-o", "p.csv")
    assert "The log transform needs positive values, but output 'Ni' has" in line
    assert "the first of them in lines 2, 3, 4, 5, 6." in line
    assert "Python" not in line
    assert "NaN" not in line


def test_readings_in_known_that_are_outside_the_bounds(here):
    table = pd.read_csv("new.csv").assign(Ni=-1.0)
    table.to_csv("negative.csv", index=False)
    succeed("fit", "jura.csv", *COLUMNS, "--paper", "--transform", "softplus", "-o", "m.emgpr")
    known = ("predict", "m.emgpr", "--at", "negative.csv", "--known", "Ni", "-o", "p.csv")
    line = refuse(3, *known)
    assert "change --output-bounds in emgpr fit and fit again." in line
    assert "leave their cells empty" in line


def test_the_encoding_is_an_option(here):
    table = pd.read_csv("jura.csv").rename(columns={"Rock": "Gestein é"})
    (here / "w.csv").write_bytes(table.to_csv(index=False).encode("cp1252"))
    stderr = succeed("fit", "w.csv", *COLUMNS, "--check").stderr
    assert "If this is wrong, pass the encoding, such as --encoding cp1250." in stderr


def test_a_number_that_is_not_finite(here):
    pd.read_csv("jura.csv").assign(Cd=float("inf")).to_csv("inf.csv", index=False)
    line = refuse(3, "fit", "inf.csv", *COLUMNS, "--check")
    assert "The table contains infinity or a number that is too large: output 'Cd', line 2" in line
    assert "Leave cells empty where an output was not measured." in line


def test_a_composition_of_one_part(here):
    line = refuse(2, "fit", "jura.csv", *COLUMNS, "--composition", "Cd", "--check")
    assert line.startswith("emgpr: --composition is 'Cd'; expected two or more outputs")


@pytest.mark.parametrize(
    ("inputs", "outputs", "remedy"),
    [
        ("Xloc,Yloc", "Cd,Rock", "or leave the column out of -y."),
        ("Xloc,Rock", "Cd", "or leave the column out of -x."),
    ],
)
def test_a_column_of_text(here, inputs, outputs, remedy):
    line = refuse(3, "fit", "jura.csv", "-x", inputs, "-y", outputs, "--check")
    assert line.startswith("emgpr: Column 'Rock' of jura.csv contains text, such as 'Sequanian' in")
    assert line.endswith(remedy)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("--output-bounds", "0:5"),
            "expected distinct names with values, such as A=0:100,B=none.",
        ),
        (("--transform", "Cd=log,=log"), "such as A=log,B=none."),
        (("--units", "Cd=mg,=kg"), "such as A=mg/kg,B=km."),
    ],
)
def test_pairs_are_explained_by_an_example_of_the_option(here, options, text):
    assert refuse(2, "fit", "jura.csv", *COLUMNS, "-o", "m.emgpr", *options).endswith(text)


def test_codes_in_known(here):
    table = pd.read_csv("new.csv")
    table.loc[3, "Ni"] = -9999
    table.to_csv("codes.csv", index=False)
    line = refuse(3, "predict", "jura.emgpr", "--at", "codes.csv", "--known", "Ni", "-o", "p.csv")
    assert line.startswith("emgpr: Column 'Ni' contains -9999 (1 of")
