"""The report on the accuracy lost through a model's approximations, as a DataFrame and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.cross_validation import CrossValidation
from emgpr.metrics import PairedDifference, paired_difference
from emgpr.printable import escape_controls

Array = np.ndarray

EXACT = (
    "Nothing is approximated: the model is fitted to all readings and predicts from all of them."
)
LOSSES = ("mae", "nlpd")
PARTS = {"difference": ("fitted", "exact"), "conditioning": ("fitted", "from all"),
         "learning": ("from all", "exact")}  # fmt: skip


@dataclass(frozen=True)
class ApproximationReport:
    """Comparison of an approximate with an exact model by their predictions of left-out readings.

    `approximations` describes the approximation in each step. If there are none, `table` is empty.
    Otherwise `table` has a row for each output and loss (mean absolute error, `mae`, and mean
    negative log density, `nlpd`), with these columns:

    - `fitted`: the loss of the approximate model;
    - `from_all`: the loss of the model with the same parameters, conditioned on all known readings;
    - `exact`: the loss of the exact model, fitted to the known readings;
    - `difference`: fitted minus exact, the sum of `conditioning` (fitted minus from_all) and
      `learning` (from_all minus exact). The standard errors of all three are computed from
      differences for single readings;
    - `apart`: root mean square difference between the predictions of the two models, in standard
      deviations of the exact prediction;
    - `verdict`: "loses" or "gains" if the difference exceeds two standard errors, adjusted for the
      number of comparisons as in `transfer_report`.

    The comparison uses a sample of the `n_sites` training sites. In this sample, `n_known` readings
    are known, and the others are left out and predicted. `not_compared` lists the outputs with too
    few readings in the sample. `found` holds all predictions, and `notes` holds the warnings issued
    by the exact fit.
    """

    approximations: tuple[str, ...]
    n_sites: int
    n_known: int
    not_compared: tuple[str, ...]
    found: dict[str, CrossValidation]
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def build(
        cls,
        approximations: Sequence[str],
        n_sites: int,
        n_known: int,
        not_compared: Sequence[str],
        found: Mapping[str, CrossValidation],
        notes: Sequence[str] = (),
    ) -> "ApproximationReport":
        """Create the report from predictions; `found` is empty if nothing is approximated."""
        table = _table(found) if found else pd.DataFrame()
        return cls(
            tuple(approximations), n_sites, n_known, tuple(not_compared), dict(found), table,
            tuple(notes),
        )  # fmt: skip

    @property
    def losing(self) -> list[str]:
        """Outputs for which at least one loss of the exact model is significantly smaller."""
        return self._with_verdict("loses")

    def _with_verdict(self, verdict: str) -> list[str]:
        if not len(self.table):
            return []
        rows = self.table.index[self.table["verdict"] == verdict]
        return list(dict.fromkeys(str(output) for output, _ in rows))

    @property
    def sentence(self) -> str:
        """A sentence that lists the outputs that lose accuracy significantly, and the causes."""
        if not self.approximations:
            return EXACT
        outputs = list(dict.fromkeys(str(output) for output, _ in self.table.index))
        by_cause: dict[str, list[str]] = {}
        for output in self.losing:
            by_cause.setdefault(self._cause(output), []).append(output)
        parts = [
            f"{', '.join(listed)} {'loses' if len(listed) == 1 else 'lose'}{cause}"
            for cause, listed in by_cause.items()
        ]
        better = [name for name in self._with_verdict("gains") if name not in self.losing]
        others = [name for name in outputs if name not in self.losing + better]
        if better:
            listed = ", ".join(better)
            parts.append(f"better than the exact model, fitted to fewer readings, for {listed}")
        if others:
            parts.append(f"no significant loss for {', '.join(others)}")
        if self.not_compared:
            parts.append(f"too few readings for a comparison of {', '.join(self.not_compared)}")
        sentence = "; ".join(parts)
        return escape_controls(f"{sentence[0].upper()}{sentence[1:]}.")

    def _cause(self, output: str) -> str:
        """Return a phrase that names the significant causes of lower accuracy, or an empty one."""
        n = 2 * len(self.table)
        causes = [
            part
            for part in ("conditioning", "learning")
            if any(self.difference(output, loss, part).sign(n) > 0 for loss in LOSSES)
        ]
        return f" by {' and '.join(causes)}" if causes else ""

    def difference(
        self, output: str, loss: str = "mae", part: str = "difference"
    ) -> PairedDifference:
        """Return the paired difference in absolute error or in negative log density.

        The difference is fitted minus exact, or the part of it that is due to "conditioning" or to
        "learning".
        """
        return _difference(self.found, output, loss, part)

    def rows(self) -> pd.DataFrame:
        """Return a frame with one row for each left-out reading and each way of predicting it."""
        parts = [predictions.rows().assign(way=way) for way, predictions in self.found.items()]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def __repr__(self) -> str:
        if not self.approximations:
            return EXACT
        table = self.table
        shown = table[["n", "fitted", "from_all", "exact"]].map("{:.4g}".format)
        for part in PARTS:
            values = zip(table[part], table[f"{part}_error"], strict=True)
            shown[part] = [f"{mean:+.2g} ± {error:.1g}" for mean, error in values]
        shown["apart"] = table["apart"].map("{:.2g} sd".format)
        lines = [f"  {line}" for line in self.approximations]
        notes = [f"The exact model: {note}" for note in self.notes]
        lines = ["Approximated:", *lines, self._title(), shown.to_string(), *notes, self.sentence]
        return escape_controls("\n".join(lines))

    def _repr_html_(self) -> str:
        if not self.approximations:
            return f"<p>{EXACT}</p>"
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.approximations)
        table = self.table.to_html(float_format="{:.3g}".format)
        text = " ".join([*(f"The exact model: {note}" for note in self.notes), self.sentence])
        page = f"<ul>{lines}</ul><p>{self._title()}</p>{table}<p>{escape(text)}</p>"
        return escape_controls(page)

    def _title(self) -> str:
        truth = next(iter(self.found.values())).truth
        n = int(truth.count().sum())
        return (
            f"{n} left-out readings predicted from {self.n_known} others, in a sample from "
            f"{self.n_sites} sites; differences from the exact model, ± standard error"
        )


def _table(found: Mapping[str, CrossValidation]) -> pd.DataFrame:
    outputs = [str(name) for name in found["exact"].truth.columns]
    rows = {}
    for output in outputs:
        deviation = found["fitted"].prediction[output] - found["exact"].prediction[output]
        apart = np.sqrt(np.mean((deviation / found["exact"].std[output]) ** 2))
        for loss in LOSSES:
            pairs = {part: _difference(found, output, loss, part) for part in PARTS}
            total = pairs["difference"]
            sign = total.sign(len(LOSSES) * len(outputs))
            rows[output, loss] = {
                "n": total.n,
                **{
                    way.replace(" ", "_"): _loss(predictions, output, loss).mean()
                    for way, predictions in found.items()
                },
                **{part: pair.mean for part, pair in pairs.items()},
                **{f"{part}_error": pair.standard_error for part, pair in pairs.items()},
                "apart": float(apart),
                "verdict": ("no loss", "loses", "gains")[sign],
            }
    index = pd.MultiIndex.from_tuples(list(rows), names=["output", "loss"])
    return pd.DataFrame(list(rows.values()), index=index)


def _difference(
    found: Mapping[str, CrossValidation], output: str, loss: str, part: str
) -> PairedDifference:
    ours, theirs = (_loss(found[way], output, loss) for way in PARTS[part])
    return paired_difference(ours, theirs)


def _loss(found: CrossValidation, output: str, loss: str) -> Float[Array, " n"]:
    """Return the losses for all left-out readings of an output."""
    measured = found.truth[output].notna()
    values = found.residual[output].abs() if loss == "mae" else found.nlpd[output]
    return values[measured].to_numpy()
