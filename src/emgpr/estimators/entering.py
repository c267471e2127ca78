"""A table on its way in: checked, placed, doubted, and brought to the scale that is learned on."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator

from emgpr.checkpoint import Ledger
from emgpr.estimators.door import (
    as_tables,
    check_inputs,
    enter_outputs,
    names_of,
    placed,
    refuse_unobserved,
    steps_of,
)
from emgpr.estimators.doubts import Doubt, about_inputs, about_outputs
from emgpr.execution import threads_for
from emgpr.observations import Observations
from emgpr.transforms import Marginals, choose_transforms, is_constant, one_each

Array = np.ndarray


class Entering(BaseEstimator):
    """The estimator's door."""

    normalize_y: bool
    crs: str | None
    n_jobs: int | None
    verbose: int
    output_names_: list[str]
    _rows: Int[Array, " N"]
    _index: pd.Index

    def _enter(self, X: Any, y: Any) -> tuple[Float[Array, "N P"], Float[Array, "N D"]]:
        """Inputs and outputs of the sites where anything was measured; tells what is doubtful."""
        inputs, Y, doubts = self._entered(X, y)
        for doubt in doubts:
            self._advise(doubt)
        return inputs, Y

    def _entered(
        self, X: Any, y: Any
    ) -> tuple[Float[Array, "N P"], Float[Array, "N D"], list[Doubt]]:
        """Inputs and outputs of the sites where anything was measured, and what is doubtful about
        them; remembers names."""
        X, y = as_tables(X, y)
        numbers = check_inputs(self, X, fitting=True)
        Y, self.output_names_, self._flat = enter_outputs(y, len(numbers))
        names = self.output_names_
        refuse_unobserved(Y, len(Y), names)
        self._index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(numbers))
        # A site where nothing was measured teaches nothing and is dealt to no member.
        self._rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
        P, D = numbers.shape[1], Y.shape[1]
        doubts = [
            *about_inputs(numbers[self._rows], names_of(X, P), steps_of(X, P), self.crs),
            *about_outputs(Y, names, steps_of(y, D), centred=self.normalize_y),
        ]
        inputs, Y = placed(self, numbers[self._rows]), Y[self._rows]
        self.n_rows_ignored_ = len(self._index) - len(self._rows)
        self.n_outputs_ = D
        return inputs, Y, doubts

    def _standardise(
        self, inputs: Float[Array, "N P"], Y: Float[Array, "N D"], ledger: Ledger
    ) -> Observations:
        """What was measured, near Gaussian and of unit variance; remembers the way back."""
        names = self.output_names_
        chosen = self._transforms(inputs, Y, ledger)
        self._scale = Marginals.learned(Y, chosen, normalize=self.normalize_y, names=names)
        self.transforms_ = chosen
        Z = self._scale.forward(Y, names)
        if self.normalize_y:  # what rounding left of a constant would be taken for a signal
            Z = np.where(is_constant(Y) & ~np.isnan(Z), 0.0, Z)
        return Observations.from_table(inputs, Z)

    def _transforms(self, inputs: Array, Y: Array, ledger: Ledger) -> Any:
        """As the user said, or what the data ask for."""
        given = one_each(vars(self)["transform"], self.output_names_)
        automatic = [isinstance(spec, str) and spec == "auto" for spec in given]
        if not any(automatic):
            return given
        with threads_for(len(inputs)):
            chosen = choose_transforms(
                inputs, Y, n_jobs=self.n_jobs, verbose=self.verbose, ledger=ledger
            )
        return [c if auto else g for c, g, auto in zip(chosen, given, automatic, strict=True)]

    def _advise(self, what: str) -> None:
        warnings.warn(what, UserWarning, stacklevel=4)
