"""Results of cross-validation, as frames and as text."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from html import escape

import numpy as np
import pandas as pd

from emgpr.metrics import mean_absolute_error, mean_squared_error
from emgpr.printable import escape_controls


@dataclass(frozen=True)
class CrossValidation:
    """Every reading, and its prediction from the readings that remain when its group is left out.

    Values are in original units. Each frame has one row for each row of the training inputs and one
    column for each output, with NaN where nothing was measured. `standardized` holds residuals
    divided by the predictive standard deviation, both on the standardised scale. `pit`, the
    probability integral transform, is the predictive probability of values below the reading; it is
    uniformly distributed if the predictions are calibrated.
    """

    by: str
    truth: pd.DataFrame
    prediction: pd.DataFrame
    std: pd.DataFrame
    lower: pd.DataFrame
    upper: pd.DataFrame
    standardized: pd.DataFrame
    nlpd: pd.DataFrame
    crps: pd.DataFrame
    pit: pd.DataFrame

    @property
    def residual(self) -> pd.DataFrame:
        """Truth minus prediction."""
        return self.truth - self.prediction

    def for_outputs(self, outputs: Sequence[str]) -> "CrossValidation":
        """Return the results of these outputs only."""
        frames = [field.name for field in fields(self) if field.name != "by"]
        return replace(self, **{name: getattr(self, name)[list(outputs)] for name in frames})

    def rows(self) -> pd.DataFrame:
        """Return a frame with the training row, output, value and prediction of each reading."""
        row, column = np.nonzero(self.truth.notna().to_numpy())
        where = {
            "row": self.truth.index.to_numpy()[row],
            "output": self.truth.columns.to_numpy()[column],
        }
        frames = [field.name for field in fields(self) if field.name != "by"]
        values = {name: getattr(self, name).to_numpy()[row, column] for name in frames}
        return pd.DataFrame(where | values)

    def summary(self) -> pd.DataFrame:
        """Return a frame of errors, scores and coverage, with one row for each output.

        `smse` is the mean squared error divided by the variance of the readings; it is 1 if their
        mean is predicted everywhere. `coverage` is the proportion of readings inside their 95%
        prediction intervals.
        """
        truth, mean = self.truth.to_numpy(), self.prediction.to_numpy()
        mse, variance = mean_squared_error(truth, mean), np.nanvar(truth, axis=0)
        inside = (self.lower <= self.truth) & (self.truth <= self.upper)
        columns = {
            "n": self.truth.count().to_numpy(),
            "mae": mean_absolute_error(truth, mean),
            "rmse": np.sqrt(mse),
            "smse": np.divide(mse, variance, out=np.full_like(mse, np.nan), where=variance > 0),
            "nlpd": self.nlpd.mean().to_numpy(),
            "crps": self.crps.mean().to_numpy(),
            "coverage": inside.where(self.truth.notna()).mean().to_numpy(dtype=float),
        }
        return pd.DataFrame(columns, index=pd.Index(self.truth.columns, name="output"))

    def __repr__(self) -> str:
        return f"{self._title()}\n{_to_text(self.summary())}"

    def _repr_html_(self) -> str:
        return f"<p>{self._title()}</p>{_to_html(self.summary())}"

    def _title(self) -> str:
        n = int(self.truth.count().sum())
        return f"Cross-validation by {self.by}: {n} readings of {self.truth.shape[1]} outputs"


@dataclass(frozen=True)
class TransferReport:
    """Change in the accuracy of each output due to transfer, estimated by cross-validation.

    In `table`, `mae` and `nlpd` refer to the model with transfer, `mae_alone` and `nlpd_alone` to
    the independent models. `difference` is the mean of the absolute error with transfer minus the
    absolute error without transfer at the same site. If groups of sites are left out, errors are
    first averaged within groups.
    """

    by: str
    table: pd.DataFrame

    def for_outputs(self, outputs: Sequence[str]) -> "TransferReport":
        """Return the rows of these outputs only."""
        return replace(self, table=self.table.loc[list(outputs)])

    @property
    def losing(self) -> list[str]:
        """Outputs that are predicted significantly worse with transfer."""
        return self._with_verdict("loses")

    def _with_verdict(self, verdict: str) -> list[str]:
        return [str(name) for name in self.table.index[self.table["verdict"] == verdict]]

    @property
    def sentence(self) -> str:
        """A sentence that says which outputs gain or lose significantly, and which do neither."""
        parts = [
            f"{text} {', '.join(self._with_verdict(verdict))}"
            for verdict, text in (
                ("gains", "transfer helps"),
                ("loses", "transfer harms"),
                ("no difference", "there is no significant difference for"),
            )
            if self._with_verdict(verdict)
        ]
        sentence = "; ".join(parts)
        return escape_controls(f"{sentence[0].upper()}{sentence[1:]}.")

    def __repr__(self) -> str:
        return f"Transfer, cross-validated by {self.by}\n{_to_text(self.table)}\n{self.sentence}"

    def _repr_html_(self) -> str:
        title, table = f"Transfer, cross-validated by {self.by}", _to_html(self.table)
        return f"<p>{title}</p>{table}<p>{escape(self.sentence)}</p>"


def _to_text(table: pd.DataFrame) -> str:
    return escape_controls(table.to_string(float_format="{:.4g}".format))


def _to_html(table: pd.DataFrame) -> str:
    return escape_controls(table.to_html(float_format="{:.4g}".format))
