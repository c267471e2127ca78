"""A table before anything is learned from it: what is there, what is not, what is doubtful."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.estimators.doubts import Doubt
from emgpr.transforms import Marginals, candidates, one_each

Array = np.ndarray


@dataclass(frozen=True)
class FirstLook:
    """What a table holds. `doubts` are what `fit` would warn of.

    `outputs` has a row an output: its readings, how many rows have none, their least, median and
    greatest, and its transform; of "auto", the one it gets unless readings left out ask for
    another.
    """

    n_rows: int
    n_used: int
    n_places: int  # different ones
    n_shared: int  # rows at a place that another row has, too
    n_copies: int  # rows that repeat another one whole
    inputs: pd.DataFrame
    outputs: pd.DataFrame
    doubts: tuple[Doubt, ...]

    @classmethod
    def at(
        cls,
        X: Float[Array, "N P"],
        Y: Float[Array, "N D"],
        *,
        n_rows: int,
        names: tuple[Sequence[str], Sequence[str]],
        transform: Any,
        doubts: Sequence[Doubt],
    ) -> "FirstLook":
        """At the rows that are used, of so many; raises if an output has no such transform."""
        inputs, outputs = names
        given = one_each(transform, outputs)
        automatic = [isinstance(spec, str) and spec == "auto" for spec in given]
        fixed = [None if auto else spec for auto, spec in zip(automatic, given, strict=True)]
        Marginals.learned(Y, fixed, names=outputs).forward(Y, outputs)
        transforms = [
            f"{candidates(values[~np.isnan(values)])[0] or 'none'} (first guess)"
            if auto
            else "none" if spec is None else str(spec)
            for values, spec, auto in zip(Y.T, given, automatic, strict=True)
        ]  # fmt: skip
        readings = (~np.isnan(Y)).sum(axis=0)
        found = {
            "readings": readings,
            "missing": n_rows - readings,
            "least": np.nanmin(Y, axis=0),
            "median": np.nanmedian(Y, axis=0),
            "greatest": np.nanmax(Y, axis=0),
            "transform": transforms,
        }
        ranges = {"least": X.min(axis=0), "greatest": X.max(axis=0)}
        places = pd.DataFrame(X)
        return cls(
            n_rows,
            len(X),
            len(places.drop_duplicates()),
            int(places.duplicated(keep=False).sum()),
            int(pd.DataFrame(np.column_stack([X, Y])).duplicated().sum()),
            pd.DataFrame(ranges, index=pd.Index(inputs, name="input")),
            pd.DataFrame(found, index=pd.Index(outputs, name="output")),
            tuple(doubts),
        )

    def __str__(self) -> str:
        rows = f"{self.n_rows} rows"
        if self.n_used < self.n_rows:
            rows += f", {self.n_used} used: nothing was read in {self.n_rows - self.n_used}"
        places = f"{self.n_places} places"
        if self.n_shared:
            several = self.n_places - (self.n_used - self.n_shared)
            places += (
                f", of which {several} have several rows, {self.n_shared} in all: taken for "
                "repeated readings"
            )
        if self.n_copies:
            places += f"; {self.n_copies} rows repeat another one, readings and all"
        ranges = ", ".join(
            f"{name} {row['least']:g} to {row['greatest']:g}"
            for name, row in self.inputs.iterrows()
        )
        table = self.outputs.rename_axis(None).to_string(float_format="{:g}".format)
        return f"{rows}; {places}\n{ranges}\n{table}"
