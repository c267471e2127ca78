"""How good the predictions are, and whether learning the outputs together helped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from emgpr.estimators import CrossValidation, IndependentGP, TransferReport
from emgpr.report.data import NAMED
from emgpr.report.tables import Cell, Table, listed, name, number, percent, plus_minus, words

LEVEL = 0.95  # of the intervals that cross-validation gives
WHERE = {
    "site": "when all of a site is left out: as at a new place",
    "output": "when one output of a site is left out: as where the others were measured",
}


@dataclass(frozen=True)
class Checks:
    """What cross-validation found, and what outputs gained over being learned alone."""

    found: Mapping[str, CrossValidation]  # by "site", and with several outputs by "output"
    transfer: Mapping[str, TransferReport]  # likewise; none where there is no transfer

    @classmethod
    def of(cls, model: Any) -> "Checks":
        """Leaves out sites, and where there is something to transfer single readings too."""
        together = model.n_outputs_ > 1 and not isinstance(model, IndependentGP)
        kinds = ("site", "output") if together else ("site",)
        found = {by: model.cross_validate(by) for by in kinds}
        return cls(found, {by: model.transfer_report(by) for by in kinds if together})


def error_table(found: CrossValidation, units: Mapping[str, str]) -> Table:
    """Errors, scores and coverage of every output."""
    rows = []
    for output, row in found.summary().iterrows():
        rows.append(
            (
                name(output),
                words(units.get(str(output), "")),
                number(row["n"]),
                number(row["mae"]),
                number(row["rmse"]),
                percent(1 - row["smse"]),
                number(row["crps"]),
                number(row["nlpd"]),
                percent(row["coverage"]),
                honesty(row["coverage"], row["n"]),
            )
        )
    heads = (
        "output", "unit", "readings", "MAE", "RMSE", "variance explained", "CRPS", "NLPD",
        "inside 95%", "intervals are",
    )  # fmt: skip
    return Table(f"Errors {WHERE[found.by]}", heads, rows).full()


def honesty(share: float, n: float) -> Cell:
    """Whether so many readings inside their 95% intervals are what chance would give."""
    error = 2 * np.sqrt(LEVEL * (1 - LEVEL) / max(n, 1))
    if not np.isfinite(share) or abs(share - LEVEL) <= error:
        return words("as stated", "verdict good")
    return words("too narrow", "verdict bad") if share < LEVEL else words("too wide", "verdict")


def transfer_table(report: TransferReport, units: Mapping[str, str]) -> Table:
    """Errors of every output together with the others and alone, and whether they differ."""
    rows = []
    marks = {"gains": "good", "loses": "bad"}
    for output, row in report.table.iterrows():
        rows.append(
            (
                name(output),
                words(units.get(str(output), "")),
                number(row["mae_alone"]),
                number(row["mae"]),
                percent(row["gain_percent"] / 100),
                plus_minus(row["difference"], row["standard_error"]),
                number(row["nlpd_alone"]),
                number(row["nlpd"]),
                words(row["verdict"], f"verdict {marks.get(row['verdict'], '')}".strip()),
            )
        )
    heads = (
        "output", "unit", "MAE alone", "MAE together", "gain", "difference ± s.e.", "NLPD alone",
        "NLPD together", "verdict",
    )  # fmt: skip
    caption = f"Together against alone, {WHERE[report.by]}"
    return Table(caption, heads, rows, report.sentence).full()


def how_good(checks: Checks, units: Mapping[str, str]) -> str:
    """The sentence about accuracy that comes first."""
    summary = checks.found["site"].summary()
    explained = (1 - summary["smse"]).dropna()
    covered, mae = summary["coverage"].dropna(), summary["mae"]
    if explained.empty:
        how = "No output varies, so there is no variance to explain"
    elif len(summary) <= NAMED:
        told = [
            f"{_share(share)} of {output} (mean absolute error "
            f"{number(mae[str(output)]).text} {units.get(str(output), '')}".rstrip()
            + ")"
            for output, share in explained.items()
        ]
        how = "With each site left out in turn, the model explains " + listed(
            [told[0].replace(" of ", " of the variance of ", 1), *told[1:]]
        )
    else:
        how = (
            f"With each site left out in turn, the model explains between "
            f"{_share(explained.min())} ({explained.idxmin()}) and {_share(explained.max())} "
            f"({explained.idxmax()}) of the variance of an output, the median being "
            f"{_share(explained.median())}"
        )
    return f"{how}. {_coverage(covered)}" if len(covered) else f"{how}."


def _share(share: float) -> str:
    return percent(share).text if share > 0.005 else "nothing"


def _coverage(covered: pd.Series) -> str:
    least, most = (percent(end).text for end in (covered.min(), covered.max()))
    between = least if least == most else f"{least} to {most}"
    return f"95% intervals hold {between} of the readings."


def what_transfer_gave(checks: Checks) -> str:
    """The sentence about learning outputs together; empty if they were not."""
    said = []
    for by, where in (("site", "At a new place"), ("output", "Where other outputs are known")):
        report = checks.transfer.get(by)
        if report is not None:
            said.append(f"{where}, {_verdict(report)}.")
    return " ".join(said)


def _verdict(report: TransferReport) -> str:
    table = report.table
    gains, losing = table.index[table["verdict"] == "gains"], report.losing
    parts = []
    if len(gains):
        lower = table.loc[gains, "gain_percent"] / 100
        if len(gains) <= NAMED:
            told = listed(f"{output} by {percent(lower[output]).text}" for output in gains)
        else:
            ends = f"{percent(lower.min()).text} to {percent(lower.max()).text}"
            told = f"{len(gains)} of {len(table)} outputs by {ends}"
        parts.append(f"learning together lowers the error of {told}")
    if losing:
        parts.append(f"raises that of {listed(losing)}" if parts else f"it harms {listed(losing)}")
    return " and ".join(parts) or "no gain from learning the outputs together is seen"
