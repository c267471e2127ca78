"""The accuracy section: cross-validated errors, and a comparison with independent models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from emgpr.cross_validation import CrossValidation, TransferReport
from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.report.cells import Row, Table, join_names, number, percent
from emgpr.report.columns import ERRORS, TRANSFER
from emgpr.report.data import MAX_OUTPUTS_NAMED
from emgpr.report.stacking import is_joint

SCENARIOS = {
    "site": "all outputs at a site left out, as at a new location",
    "output": "one output at a site left out, as at a location where the others are measured",
}
WHERE = {"site": "At new locations", "output": "Where the other outputs are measured"}
MIN_EXPLAINED = 0.005  # A smaller share of the variance is reported as "none".


@dataclass(frozen=True)
class Accuracy:
    """Results of cross-validation, and comparisons with independent models (transfer reports)."""

    # The keys say what is left out: "site" (all outputs at a site) or, for joint models, "output".
    errors: Mapping[str, CrossValidation]
    transfer: Mapping[str, TransferReport]  # empty unless the model is joint

    @classmethod
    def evaluate(cls, model: MultiOutputGP | ReadingsGP) -> "Accuracy":
        """Cross-validate a model by site and, if it models outputs jointly, by output."""
        compared = is_joint(model)
        units = ("site", "output") if compared else ("site",)
        errors = {by: model.cross_validate(by) for by in units}
        return cls(errors, {by: model.transfer_report(by) for by in units if compared})

    def for_outputs(self, outputs: Sequence[str]) -> "Accuracy":
        """Return the results of these outputs only."""
        return Accuracy(
            {by: results.for_outputs(outputs) for by, results in self.errors.items()},
            {by: report.for_outputs(outputs) for by, report in self.transfer.items()},
        )

    @property
    def summary(self) -> pd.DataFrame:
        """The errors of each output when all outputs at a site are left out."""
        return self.errors["site"].summary()

    def error_tables(self, units: Mapping[str, str]) -> list[Table]:
        """Return tables of errors, scores and interval coverage by output."""
        return [
            Table.build(f"Errors: {SCENARIOS[by]}", ERRORS, _rows(results.summary(), units))
            for by, results in self.errors.items()
        ]

    def transfer_tables(self, units: Mapping[str, str]) -> list[Table]:
        """Return tables that compare the joint model's errors with those of independent models."""
        return [
            Table.build(
                f"Joint and independent models: {SCENARIOS[by]}",
                TRANSFER,
                _rows(report.table, units),
                report.sentence,
            )
            for by, report in self.transfer.items()
        ]

    def error_sentence(self, units: Mapping[str, str]) -> str:
        """Describe the variance explained and the coverage of the prediction intervals."""
        summary = self.summary
        explained, coverage = (1 - summary["smse"]).dropna(), summary["coverage"].dropna()
        if explained.empty:
            sentence = "No output varies, so there is no variance to explain."
        elif len(summary) <= MAX_OUTPUTS_NAMED:
            parts: list[str] = []
            for output in map(str, explained.index):
                of = "that of" if parts else "the variance of"
                mae = f"{number(summary['mae'][output]).text} {units.get(output, '')}".strip()
                share = _share(explained[output])
                parts.append(f"{share} of {of} {output} (mean absolute error {mae})")
            sentence = f"With each site left out in turn, the model explains {join_names(parts)}."
        else:
            sentence = (
                "With each site left out in turn, the model explains between "
                f"{_share(explained.min())} ({explained.idxmin()}) and {_share(explained.max())} "
                f"({explained.idxmax()}) of the variance of an output, with a median of "
                f"{_share(explained.median())}."
            )
        if coverage.empty:
            return sentence
        low, high = (percent(end).text for end in (coverage.min(), coverage.max()))
        shares = low if low == high else f"{low} to {high}"
        return f"{sentence} The 95% prediction intervals contain {shares} of the readings."

    def transfer_sentence(self) -> str:
        """Describe the effect of joint modelling. Return "" if the model is not joint."""
        return " ".join(f"{WHERE[by]}, {_effect(report)}." for by, report in self.transfer.items())


def _rows(table: pd.DataFrame, units: Mapping[str, str]) -> Sequence[Row]:
    outputs = list(map(str, table.index))
    named = table.assign(output=outputs, unit=[units.get(output, "") for output in outputs])
    return named.to_dict("records")


def _share(share: float) -> str:
    return percent(share).text if share > MIN_EXPLAINED else "none"


def _effect(report: TransferReport) -> str:
    table, losing = report.table, report.losing
    gains = table.loc[table["verdict"] == "gains", "gain_percent"] / 100
    effects = []
    if len(gains):
        if len(gains) <= MAX_OUTPUTS_NAMED:
            outputs = join_names(f"{output} by {percent(by).text}" for output, by in gains.items())
        else:
            ends = f"{percent(gains.min()).text} to {percent(gains.max()).text}"
            outputs = f"{len(gains)} of the {len(table)} outputs by {ends}"
        effects.append(f"reduces the error for {outputs}")
    if losing:
        effects.append(f"increases {'that' if effects else 'the error'} for {join_names(losing)}")
    effect = " and ".join(effects) or "makes no significant difference"
    return f"modelling the outputs jointly {effect}"
