"""What the approximations of a model cost, as a frame and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.estimators.findings import CrossValidation
from emgpr.metrics import PairedDifference, paired_difference

Array = np.ndarray

NOTHING = "Nothing is approximated: all readings were learned from and are predicted from."
LOSSES = ("mae", "nlpd")
PARTS = {"difference": ("fitted", "exact"), "conditioning": ("fitted", "from all"),
         "learning": ("from all", "exact")}  # fmt: skip


@dataclass(frozen=True)
class ApproximationReport:
    """How a model that approximates predicts some of its readings, left out, beside an exact one.

    `approximations` say what stands for something else, step by step; where nothing does, the
    table is empty. In `table`, a row for each output and loss (`mae`, mean absolute error, and
    `nlpd`, mean negative log density, less of which is better): `fitted` is the model's, as it
    predicts; `from_all` with the same parameters, conditioned on all readings known; `exact` the
    exact model's, of the readings known alone. `difference` is fitted less exact, and the sum of
    `conditioning` (fitted less from_all) and `learning` (from_all less exact), each with its
    standard error, paired by reading. `apart` is how far predictions are from the exact ones, as a
    root mean square over readings, in standard deviations of the exact prediction. `verdict` is
    "loses" or "gains" if the difference is beyond two standard errors, made wider for the number
    of comparisons, as in `transfer_report`.

    `n_sites` were sampled from, `n_known` readings were known. `not_compared` are outputs that were
    hardly read where it was asked; `found` has all that was predicted; `notes` are what the fit of
    the exact model warned of.
    """

    approximations: tuple[str, ...]
    n_sites: int
    n_known: int
    not_compared: tuple[str, ...]
    found: dict[str, CrossValidation]
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        approximations: Sequence[str],
        n_sites: int,
        n_known: int,
        not_compared: Sequence[str],
        found: Mapping[str, CrossValidation],
        notes: Sequence[str] = (),
    ) -> "ApproximationReport":
        """From what was predicted in each way; in none, where nothing is approximated."""
        table = _table(found) if found else pd.DataFrame()
        said, left, noted = tuple(approximations), tuple(not_compared), tuple(notes)
        return cls(said, n_sites, n_known, left, dict(found), table, noted)

    @property
    def losing(self) -> list[str]:
        """The outputs that the exact model predicts better, beyond doubt, by either loss."""
        return self._with("loses")

    def _with(self, verdict: str) -> list[str]:
        if not len(self.table):
            return []
        rows = self.table.index[self.table["verdict"] == verdict]
        return list(dict.fromkeys(str(output) for output, _ in rows))

    @property
    def sentence(self) -> str:
        """What is lost, by which approximation if that can be told, and where no loss is seen."""
        if not self.approximations:
            return NOTHING
        outputs = list(dict.fromkeys(str(output) for output, _ in self.table.index))
        whose: dict[str, list[str]] = {}
        for output in self.losing:
            whose.setdefault(self._why(output), []).append(output)
        said = [
            f"{', '.join(own)} {'loses' if len(own) == 1 else 'lose'}{why}"
            for why, own in whose.items()
        ]
        better = [name for name in self._with("gains") if name not in self.losing]
        rest = [name for name in outputs if name not in self.losing + better]
        if better:
            said.append(f"{', '.join(better)}: better than the exact model of fewer readings")
        if rest:
            said.append(f"no loss is seen for {', '.join(rest)}")
        if self.not_compared:
            said.append(f"read too rarely to be compared: {', '.join(self.not_compared)}")
        sentence = "; ".join(said)
        return f"{sentence[0].upper()}{sentence[1:]}."

    def _why(self, output: str) -> str:
        """Which part of the difference is beyond doubt, if one is."""
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
        """Of absolute errors or negative log densities, reading by reading: fitted less exact, or
        the part of it that is due to "conditioning" or to "learning"."""
        return _difference(self.found, output, loss, part)

    def rows(self) -> pd.DataFrame:
        """A row for each reading that was left out and each way to predict it; none if all is
        exact."""
        parts = [own.rows().assign(way=way) for way, own in self.found.items()]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def __repr__(self) -> str:
        if not self.approximations:
            return NOTHING
        table = self.table
        shown = table[["n", "fitted", "from_all", "exact"]].map("{:.4g}".format)
        for part in PARTS:
            values = zip(table[part], table[f"{part}_error"], strict=True)
            shown[part] = [f"{mean:+.2g} ± {error:.1g}" for mean, error in values]
        shown["apart"] = table["apart"].map("{:.2g} sd".format)
        lines = [f"  {line}" for line in self.approximations]
        notes = [f"The exact model: {note}" for note in self.notes]
        told = [self._title(), shown.to_string(), *notes, self.sentence]
        return "\n".join(["Approximated:", *lines, *told])

    def _repr_html_(self) -> str:
        if not self.approximations:
            return f"<p>{NOTHING}</p>"
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.approximations)
        table = self.table.to_html(float_format="{:.3g}".format)
        said = " ".join([*(f"The exact model: {note}" for note in self.notes), self.sentence])
        return f"<ul>{lines}</ul><p>{self._title()}</p>{table}<p>{escape(said)}</p>"

    def _title(self) -> str:
        asked = next(iter(self.found.values())).truth
        n = int(asked.count().sum())
        return (
            f"{n} readings left out, predicted from {self.n_known} others, of {self.n_sites} sites "
            "in all; differences from the exact model of these, ± standard error"
        )


def _table(found: Mapping[str, CrossValidation]) -> pd.DataFrame:
    outputs = [str(name) for name in found["exact"].truth.columns]
    rows = {}
    for output in outputs:
        far = found["fitted"].prediction[output] - found["exact"].prediction[output]
        apart = np.sqrt(np.mean((far / found["exact"].std[output]) ** 2))
        for loss in LOSSES:
            pairs = {part: _difference(found, output, loss, part) for part in PARTS}
            total = pairs["difference"]
            sign = total.sign(len(LOSSES) * len(outputs))
            rows[output, loss] = {
                "n": total.n,
                **{
                    way.replace(" ", "_"): _loss(own, output, loss).mean()
                    for way, own in found.items()
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
    """Of every reading of an output that was left out."""
    there = found.truth[output].notna()
    values = found.residual[output].abs() if loss == "mae" else found.nlpd[output]
    return values[there].to_numpy()
