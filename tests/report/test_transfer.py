"""Two statements on which readings predict each output."""

from types import SimpleNamespace

import pytest

from emgpr.report.transfer import transfer_statements, transfer_table

NOTHING = "At a location where nothing has been measured,"
OTHERS = "At a location where other outputs have been measured,"


def model_with(names, alone):
    summary = SimpleNamespace(without_gain=alone)  # empty if the fit made no test
    return SimpleNamespace(
        output_names_=names, n_outputs_=len(names), alone_=alone, fit_summary_=summary
    )


@pytest.mark.parametrize(
    ("names", "alone", "site", "output"),
    [
        (
            ["Cd", "Ni", "Zn"],
            {"site": ["Ni"], "output": []},
            "Ni is predicted from its own readings only; the readings of all outputs are used to "
            "predict Cd and Zn.",
            "these measurements help to predict Cd, Ni and Zn.",
        ),
        (
            ["Cd", "Ni"],
            {"site": ["Cd", "Ni"], "output": ["Cd"]},
            "Cd and Ni are predicted from their own readings only.",
            "Cd is predicted from its own readings only; these measurements help to predict Ni.",
        ),
        (
            ["Cd", "Ni"],
            {},
            "the readings of all outputs are used to predict Cd and Ni.",
            "these measurements are used to predict Cd and Ni.",
        ),
        (
            list("abcdefgh"),
            {"site": list("abcde"), "output": []},
            "5 of the 8 outputs are predicted from their own readings only; the readings of all "
            "outputs are used to predict f, g and h.",
            "these measurements help to predict all 8 outputs.",
        ),
    ],
)
def test_both_situations_are_stated(names, alone, site, output):
    statements = transfer_statements(model_with(names, alone))
    assert statements == [f"{NOTHING} {site}", f"{OTHERS} {output}"]


def test_the_table_names_every_output():
    table = transfer_table(model_with(["Cd", "Ni"], {"site": ["Ni"], "output": []}))
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts == [
        ["Cd", "readings of all outputs", "readings of all outputs"],
        ["Ni", "its own readings", "readings of all outputs"],
    ]


def test_a_single_output_and_independent_models_have_no_statements(cadmium, soil):
    assert transfer_statements(cadmium) == transfer_statements(soil) == []
    assert transfer_table(soil) is None
