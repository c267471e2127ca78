"""Statements about the models that predict each output, and a table of their weights."""

from collections.abc import Sequence

import pandas as pd

from emgpr.estimators import IndependentGP, MultiOutputGP, ReadingsGP
from emgpr.plots.panels import select_outputs
from emgpr.prediction import LMCPosterior
from emgpr.report.cells import MISSING, Cell, Table, join_names, name, percent, words
from emgpr.report.data import MAX_OUTPUTS_NAMED

MODELS = {
    "own": "their own processes",
    "joint": "the joint model",
    "regression": "regression on these outputs",
}
OF_ONE_OUTPUT = {"own": "its own process"}
NOTHING_IN_GAP = "nothing, in a gap"
SITUATIONS = {
    "any": "At a location where nothing has been measured",
    NOTHING_IN_GAP: "In a gap between readings of the output where nothing has been measured",
    "near": "Where other outputs have been measured, near readings of the output itself",
    "far": "Where other outputs have been measured, in a gap between readings of the output itself",
}
HEADS = {
    "any": "nothing measured",
    NOTHING_IN_GAP: "nothing measured, in a gap",
    "near": "others measured, near own readings",
    "far": "others measured, in a gap",
}


def is_joint(model: MultiOutputGP | ReadingsGP) -> bool:
    """Tell whether a model can use the readings of an output to predict another."""
    if model.n_outputs_ == 1 or isinstance(model, IndependentGP):
        return False
    posterior = getattr(model, "posterior_", None)
    if type(posterior) is not LMCPosterior:
        return True
    # With transfer="none", no outputs are coupled.
    return any(len(group.outputs) > 1 for group in posterior.model.coupled_outputs())


def transfer_statements(
    model: MultiOutputGP | ReadingsGP, outputs: Sequence[str] | None = None
) -> list[str]:
    """Say which model has the largest weight for each output, in each situation.

    The list is empty if the model is not joint.
    """
    if not is_joint(model):
        return []
    weights = _weights(model)
    if weights is None:
        return ["All outputs are predicted from the readings of all outputs by one joint model."]
    outputs = select_outputs(model.output_names_, outputs)
    statements = []
    for situation, where in SITUATIONS.items():
        table = _in_situation(weights, situation, outputs)
        largest = table.idxmax(axis=1)
        parts = []
        for candidate, text in MODELS.items():
            names = list(table.index[largest == candidate])
            by = OF_ONE_OUTPUT.get(candidate, text) if len(names) == 1 else text
            if names:
                parts.append(f"{_listed(names, outputs)} mainly by {by}")
        if parts:
            statements.append(f"{where}, the model predicts {join_names(parts)}.")
    return statements


def transfer_table(
    model: MultiOutputGP | ReadingsGP, outputs: Sequence[str] | None = None
) -> Table | None:
    """Return a table of the weights of the models, or None if there are no weights."""
    weights = _weights(model) if is_joint(model) else None
    if weights is None:
        return None
    outputs = select_outputs(model.output_names_, outputs)
    tables = {situation: _in_situation(weights, situation, outputs) for situation in SITUATIONS}
    if tables[NOTHING_IN_GAP].empty:  # as in most tables, there are no gaps
        del tables[NOTHING_IN_GAP]
    rows = [
        (name(output), *(_cell(table, output) for table in tables.values())) for output in outputs
    ]
    note = (
        "The predictive distribution of an output is a mixture of its own process (own), the joint "
        "model of all outputs (joint) and a regression on the outputs known at the location "
        "(regression). The weights maximise the log density of left-out readings. Between readings "
        "and gaps, they change gradually with the distance from the output's own readings."
    )
    return Table(
        "Weights of the models that predict each output",
        ("output", *(HEADS[situation] for situation in tables)),
        rows,
        note,
    )


def _weights(model: MultiOutputGP | ReadingsGP) -> pd.DataFrame | None:
    """Return the weights of the candidates, or None if the model has none."""
    weights = getattr(model, "stacking_weights_", None)
    return None if weights is None or weights.empty else weights


def _in_situation(weights: pd.DataFrame, situation: str, outputs: Sequence[str]) -> pd.DataFrame:
    """Return the weights in a situation, for the first set of known outputs of each output."""
    distances = weights.index.get_level_values("distance")
    nothing_known = weights.index.get_level_values("known") == ""
    if situation == NOTHING_IN_GAP:
        rows = nothing_known & (distances == "far")
    elif situation == "any":
        rows = nothing_known & (distances != "far")
    else:
        rows = ~nothing_known & (distances == situation)
    table = weights[rows].groupby(level="output").first()
    return table.loc[[output for output in outputs if output in table.index]]


def _cell(table: pd.DataFrame, output: str) -> Cell:
    if output not in table.index:
        return words(MISSING)
    shares = {model: float(table[model].loc[output]) for model in MODELS}
    largest_first = sorted(MODELS, key=lambda model: -shares[model])
    used = [f"{model} {percent(shares[model]).text}" for model in largest_first if shares[model]]
    return words(", ".join(used))


def _listed(names: Sequence[str], outputs: Sequence[str]) -> str:
    """Return the names, or their number if there are many."""
    if len(names) <= MAX_OUTPUTS_NAMED:
        return join_names(names)
    if len(names) == len(outputs):
        return f"all {len(outputs)} outputs"
    return f"{len(names)} of the {len(outputs)} outputs"
