"""Statements about the models that predict each output, and the table of their weights."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR
from emgpr.report.data import MAX_OUTPUTS_NAMED
from emgpr.report.stacking import is_joint, transfer_statements, transfer_table
from emgpr.stacking import CANDIDATES
from tests.simulated import smooth_table

NOTHING = "At a location where nothing has been measured, the model predicts"
NEAR = (
    "Where other outputs have been measured, near readings of the output itself, the model predicts"
)
FAR = (
    "Where other outputs have been measured, in a gap between readings of the output itself, the "
    "model predicts"
)


def model_with(weights):
    """A model with these weights: a dict with the rows (output, known, distance)."""
    levels = ["output", "known", "distance"]
    index = pd.MultiIndex.from_tuples(list(weights) or [("", "", "")], names=levels)
    values = list(weights.values()) or [np.full(3, np.nan)]
    frame = pd.DataFrame(values, index=index, columns=list(CANDIDATES))
    frame = frame if weights else frame.iloc[:0]
    names = list(dict.fromkeys(output for output, _, _ in weights)) or ["Cd", "Ni"]
    return SimpleNamespace(output_names_=names, n_outputs_=len(names), stacking_weights_=frame)


OWN, JOINT, REGRESSION = (0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.1, 0.3, 0.6)
METALS = {
    ("Cd", "", "any"): OWN,
    ("Ni", "", "any"): OWN,
    ("Zn", "", "any"): JOINT,
    ("Zn", "Cd, Ni", "near"): JOINT,
    ("Zn", "Cd, Ni", "far"): REGRESSION,
    ("Cd", "Ni, Zn", "near"): REGRESSION,
    ("Cd", "Ni, Zn", "far"): REGRESSION,
    ("Ni", "Cd, Zn", "near"): OWN,
    ("Ni", "Cd, Zn", "far"): REGRESSION,
    ("Ni", "Cd", "near"): JOINT,  # needed later: the first pattern of an output counts
    ("Ni", "Cd", "far"): JOINT,
}


def test_the_largest_weights_are_stated_for_each_situation():
    assert transfer_statements(model_with(METALS)) == [
        f"{NOTHING} Cd and Ni mainly by their own processes and Zn mainly by the joint model.",
        f"{NEAR} Ni mainly by its own process, Zn mainly by the joint model and Cd mainly by "
        "regression on these outputs.",
        f"{FAR} Cd, Ni and Zn mainly by regression on these outputs.",
    ]


def test_some_outputs_can_be_selected():
    assert transfer_statements(model_with(METALS), ["Zn"])[:2] == [
        f"{NOTHING} Zn mainly by the joint model.",
        f"{NEAR} Zn mainly by the joint model.",
    ]
    table = transfer_table(model_with(METALS), ["Zn", "Cd"])
    assert [row[0].text for row in table.rows] == ["Zn", "Cd"]


def test_many_outputs_are_counted():
    names = [f"band {i}" for i in range(MAX_OUTPUTS_NAMED + 3)]
    all_own = {(name, "", "any"): OWN for name in names}
    [statement] = transfer_statements(model_with(all_own))
    assert statement == f"{NOTHING} all {len(names)} outputs mainly by their own processes."
    mixed = all_own | {(names[0], "", "any"): JOINT}
    [statement] = transfer_statements(model_with(mixed))
    assert statement == (
        f"{NOTHING} {len(names) - 1} of the {len(names)} outputs mainly by their own processes and "
        f"{names[0]} mainly by the joint model."
    )


def test_situations_without_weights_are_not_stated():
    """Outputs with fixed weights have no patterns."""
    model = model_with({key: value for key, value in METALS.items() if not key[1]})
    assert len(transfer_statements(model)) == 1
    assert [cell.text for cell in transfer_table(model).rows[0]][2:] == 2 * [
        transfer_table(model).rows[1][2].text
    ]


def test_without_weights_all_outputs_are_predicted_jointly():
    model = model_with({})
    assert transfer_statements(model) == [
        "All outputs are predicted from the readings of all outputs by one joint model."
    ]
    assert transfer_table(model) is None
    other = SimpleNamespace(output_names_=["Cd", "Ni"], n_outputs_=2)  # no such attribute
    assert len(transfer_statements(other)) == 1


def test_the_table_has_the_weights_of_every_output():
    table = transfer_table(model_with(METALS))
    texts = [[cell.text for cell in row] for row in table.rows]
    own, regression = "own 70%, joint 20%, regression 10%", "regression 60%, joint 30%, own 10%"
    texts = [[text.replace(" %", "%").replace("\u202f", "") for text in row] for row in texts]
    assert texts == [
        ["Cd", own, regression, regression],
        ["Ni", own, own, regression],
        ["Zn", "joint 100%", "joint 100%", regression],
    ]
    assert table.heads[0] == "output"
    assert len(table.heads) == 4
    assert "mixture of its own process (own)" in table.note


def test_a_single_output_and_independent_models_have_no_statements(cadmium, soil):
    assert not is_joint(cadmium)
    assert not is_joint(soil)
    assert transfer_statements(cadmium) == transfer_statements(soil) == []
    assert transfer_table(soil) is None


@pytest.mark.slow
def test_a_fitted_model_is_described(joint):
    statements = transfer_statements(joint)
    assert [s.split(", the model")[0] for s in statements] == [
        s.split(", the model")[0] for s in (NOTHING, NEAR, FAR)
    ]
    assert all("Ni" in s and "Zn" in s for s in statements)
    shares = [row[1].text for row in transfer_table(joint).rows]
    assert all("own" in share or "joint" in share for share in shares)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("transfer", "n_statements"), [("none", 0), ("full", 1)])
def test_a_model_without_transfer_is_not_joint(transfer, n_statements):
    X, Y = smooth_table(np.random.default_rng(0), N=20)
    settings = {"kernel": RBF(0.4, "fixed"), "max_iter": 2, "n_restarts": 1, "random_state": 0}
    model = EMGPR(**settings, transfer=transfer).fit(X, Y)
    assert len(transfer_statements(model)) == n_statements
    assert transfer_table(model) is None
