"""Messages of the library, in the words of the command line."""

import inspect

import pytest

from emgpr import EMGPR, IndependentGP, OnePassGP
from emgpr.cli.wording import OPTIONS, command_line_words

from .commands import COLUMNS, refuse

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
            "In Python, set n_members or batch_size to use more readings in the fit.",
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
