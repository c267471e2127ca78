"""Statements about the readings from which each output is predicted."""

from collections.abc import Sequence

from emgpr.estimators import IndependentGP, MultiOutputGP
from emgpr.plots.panels import select_outputs
from emgpr.report.cells import Cell, Table, join_names, name, words
from emgpr.report.data import MAX_OUTPUTS_NAMED

OWN, ALL = "its own readings", "readings of all outputs"


def is_joint(model: MultiOutputGP) -> bool:
    """Tell whether a model can use the readings of an output to predict another."""
    return model.n_outputs_ > 1 and not isinstance(model, IndependentGP)


def transfer_statements(model: MultiOutputGP, outputs: Sequence[str] | None = None) -> list[str]:
    """Say which outputs are predicted from their own readings only, in each of two situations.

    The first statement is about locations where nothing is measured, the second about locations
    where other outputs are measured. The list is empty if the model is not joint.
    """
    if not is_joint(model):
        return []
    outputs = select_outputs(model.output_names_, outputs)
    alone = {
        by: [name for name in model.alone_.get(by, []) if name in outputs]
        for by in ("site", "output")
    }
    verb = "help" if _is_tested(model) else "are used"
    return [
        _statement(
            "At a location where nothing has been measured,",
            alone["site"], outputs, "the readings of all outputs are used to predict",
        ),
        _statement(
            "At a location where other outputs have been measured,",
            alone["output"], outputs, f"these measurements {verb} to predict",
        ),
    ]  # fmt: skip


def transfer_table(model: MultiOutputGP, outputs: Sequence[str] | None = None) -> Table | None:
    """Return a table of the readings used for each output, or None if the model is not joint."""
    if not is_joint(model):
        return None
    heads = ("output", "where nothing is measured", "where other outputs are measured")
    rows = [
        (name(output), *(_used(output in model.alone_.get(by, [])) for by in ("site", "output")))
        for output in select_outputs(model.output_names_, outputs)
    ]
    note = (
        "If the other outputs did not reduce the cross-validated error of an output, it is "
        "predicted from its own readings."
    )
    note = note if _is_tested(model) else ""
    return Table("Readings that predict each output", heads, rows, note)


def _is_tested(model: MultiOutputGP) -> bool:
    """Tell whether the fit tested which outputs gain from transfer (transfer="safe")."""
    return bool(model.fit_summary_.without_gain)


def _used(is_alone: bool) -> Cell:
    return words(OWN, "verdict") if is_alone else words(ALL, "verdict good")


def _statement(where: str, alone: Sequence[str], outputs: Sequence[str], effect: str) -> str:
    used = [output for output in outputs if output not in alone]
    if not alone:
        return f"{where} {effect} {_listed(used, outputs)}."
    own = "its own readings only" if len(alone) == 1 else "their own readings only"
    verb = "is" if len(alone) == 1 else "are"
    sentence = f"{where} {_listed(alone, outputs)} {verb} predicted from {own}"
    return f"{sentence}; {effect} {_listed(used, outputs)}." if used else f"{sentence}."


def _listed(names: Sequence[str], outputs: Sequence[str]) -> str:
    """Return the names, or their number if there are many."""
    if len(names) <= MAX_OUTPUTS_NAMED:
        return join_names(names)
    if len(names) == len(outputs):
        return f"all {len(outputs)} outputs"
    return f"{len(names)} of the {len(outputs)} outputs"
