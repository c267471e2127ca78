"""What cross-validation found, as frames and as text."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from emgpr.metrics import mean_absolute_error, mean_squared_error


@dataclass(frozen=True)
class CrossValidation:
    """Every reading and what was predicted of it when it was left out, on the user's scale.

    Frames have the rows of the training inputs and a column an output, NaN where
    nothing was measured. `standardized` are residuals over their standard deviation, on
    the scale that the model works on (after transforms); `pit` is the probability
    that was given to values below the reading, uniform if the uncertainty is honest.
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
        """Truth less prediction."""
        return self.truth - self.prediction

    def rows(self) -> pd.DataFrame:
        """A row for each reading: where it was made, what of, and what was predicted."""
        row, column = np.nonzero(self.truth.notna().to_numpy())
        where = {
            "row": self.truth.index.to_numpy()[row],
            "output": self.truth.columns.to_numpy()[column],
        }
        frames = [field.name for field in fields(self) if field.name != "by"]
        told = {name: getattr(self, name).to_numpy()[row, column] for name in frames}
        return pd.DataFrame(where | told)

    def summary(self) -> pd.DataFrame:
        """A row an output: its number of readings, errors, and how honest its uncertainty is.

        `smse` is the mean squared error over the variance of the readings: 1 is what
        their mean would do. `coverage` is the share of readings inside their 95% intervals.
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
        return f"{self._title()}\n{_rounded(self.summary())}"

    def _repr_html_(self) -> str:
        return f"<p>{self._title()}</p>{self.summary().to_html(float_format='{:.4g}'.format)}"

    def _title(self) -> str:
        n = int(self.truth.count().sum())
        return f"Cross-validation by {self.by}: {n} readings of {self.truth.shape[1]} outputs"


@dataclass(frozen=True)
class TransferReport:
    """What the outputs gained or lost by being learned together, by cross-validation.

    In `table`, `mae` and `nlpd` are those with transfer, `mae_alone` and `nlpd_alone`
    those of every output on its own; `difference` is of absolute errors, with less
    without, paired by site (or averaged in each group, and paired by group).
    """

    by: str
    table: pd.DataFrame

    @property
    def losing(self) -> list[str]:
        """The outputs that do worse with transfer, beyond doubt."""
        return self._with("loses")

    def _with(self, verdict: str) -> list[str]:
        return [str(name) for name in self.table.index[self.table["verdict"] == verdict]]

    @property
    def sentence(self) -> str:
        """Whom transfer helps, whom it harms, and of whom neither can be told."""
        said = [
            f"{words} {', '.join(self._with(verdict))}"
            for verdict, words in (
                ("gains", "transfer helps"),
                ("loses", "transfer harms"),
                ("no difference", "no difference is seen for"),
            )
            if self._with(verdict)
        ]
        sentence = "; ".join(said)
        return f"{sentence[0].upper()}{sentence[1:]}."

    def __repr__(self) -> str:
        return f"Transfer, cross-validated by {self.by}\n{_rounded(self.table)}\n{self.sentence}"

    def _repr_html_(self) -> str:
        table = self.table.to_html(float_format="{:.4g}".format)
        return f"<p>Transfer, cross-validated by {self.by}</p>{table}<p>{self.sentence}</p>"


def _rounded(table: pd.DataFrame) -> str:
    return table.to_string(float_format="{:.4g}".format)
