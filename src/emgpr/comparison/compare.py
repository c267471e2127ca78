"""Comparison of models by cross-validation, in which the models are refitted for every fold."""

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone

from emgpr.arrays import resolve_device
from emgpr.cross_validation import CrossValidation, score_predictions, spatial_blocks
from emgpr.inputs import InputSpec, as_table, read_training_table
from emgpr.metrics import PairedDifference, paired_difference
from emgpr.parallel import Execution, RandomState, as_generator, check_verbose, parallel_map
from emgpr.prediction import Posterior
from emgpr.printable import escape_controls
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import OutputScaler

Array = np.ndarray

BLOCKS_PER_FOLD = 4  # number of blocks of neighbouring sites in a fold
FRAMES = ("prediction", "std", "lower", "upper", "standardized", "nlpd", "crps", "pit")


class Regressor(Protocol):
    """The attributes and methods that an estimator needs for a comparison."""

    input_spec_: InputSpec
    output_scaler_: OutputScaler
    posterior_: Posterior

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        ...

    def set_params(self, **params: Any) -> Self:
        """Set parameters."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Predictions of every reading by models that were fitted without it.

    `found` holds a `CrossValidation` for each model. `fold` is the fold in which a reading was left
    out, and `group` is the location or block of a row. Differences are averaged within groups, and
    standard errors are computed from these averages. `notes` lists the warnings that the fits
    issued, and how often each was issued.
    """

    by: str
    n_folds: int
    found: dict[str, CrossValidation]
    fold: pd.DataFrame
    group: pd.Series
    notes: dict[str, int]

    def difference(
        self, output: str, other: str, loss: Literal["error", "nlpd"] = "error"
    ) -> PairedDifference:
        """Return the difference in loss between the first and another model, paired by group."""
        first = next(iter(self.found))
        ours, theirs = (self._loss(name, output, loss) for name in (first, other))
        return paired_difference(ours, theirs)

    def _loss(self, name: str, output: str, loss: str) -> Float[Array, " G"]:
        found = self.found[name]
        values = found.residual[output].abs() if loss == "error" else found.nlpd[output]
        return values.groupby(self.group.to_numpy()).mean().to_numpy()

    def table(self) -> pd.DataFrame:
        """Return errors, log densities and coverage of 95% intervals for each output and model.

        `difference` refers to absolute errors, `nlpd_difference` to negative log densities. Both
        columns contain the loss of the first model minus that of the model in this row. Negative
        values favour the first model.
        """
        _, *others = self.found
        tables = []
        for name, found in self.found.items():
            table = found.summary()[["n", "mae", "rmse", "nlpd", "crps", "coverage"]]
            for loss, column in (("error", ""), ("nlpd", "nlpd_")):
                pairs = [
                    self.difference(output, name, loss)  # type: ignore[arg-type]
                    if name in others
                    else PairedDifference(np.nan, np.nan, 0)
                    for output in table.index
                ]
                table[f"{column}difference"] = [pair.mean for pair in pairs]
                table[f"{column}standard_error"] = [pair.standard_error for pair in pairs]
            tables.append(table.assign(model=name))
        outputs = list(tables[0].index)
        joined = pd.concat(tables).reset_index().set_index(["output", "model"])
        return joined.loc[[(output, name) for output in outputs for name in self.found]]

    def rows(self) -> pd.DataFrame:
        """Return a frame with one row for each reading and model: value, prediction and fold."""
        row, column = np.nonzero(self.fold.notna().to_numpy())
        fold = self.fold.to_numpy()[row, column].astype(int)
        group = self.group.to_numpy()[row]
        parts = [
            found.rows().assign(model=name, fold=fold, group=group)
            for name, found in self.found.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def verdict(self, other: str) -> str:
        """Return a sentence that lists the outputs for which the first model is better or worse.

        A difference is significant if it exceeds two standard errors, adjusted for the number of
        outputs as in `transfer_report`.
        """
        outputs = list(self.fold.columns)
        verdicts: dict[str, list[str]] = {
            "better": [],
            "worse": [],
            "no significant difference": [],
        }
        for output in outputs:
            sign = self.difference(output, other).sign(len(outputs))
            verdicts[("no significant difference", "worse", "better")[sign]].append(str(output))
        parts = [f"{word} for {', '.join(listed)}" for word, listed in verdicts.items() if listed]
        return escape_controls(
            f"{next(iter(self.found))} compared with {other}: {'; '.join(parts)}."
        )

    def __repr__(self) -> str:
        first, *others = self.found
        table = self.table()
        shown = table[["n", "mae", "nlpd", "coverage"]].map("{:.4g}".format)
        for column, heading in (("", "mae"), ("nlpd_", "nlpd")):
            means, errors = table[f"{column}difference"], table[f"{column}standard_error"]
            shown[f"{heading} difference"] = [
                "" if np.isnan(mean) else f"{mean:+.3g} ± {error:.2g}"
                for mean, error in zip(means, errors, strict=True)
            ]
        title = (
            f"Cross-validation by {self.by}, {self.n_folds} fits of each model; differences are "
            f"{first} minus the other model, ± standard error"
        )
        lines = [title, shown.to_string(), *(self.verdict(other) for other in others)]
        return escape_controls("\n".join(lines))


class _FoldedTable(NamedTuple):
    """A table without the rows in which nothing was measured, and the fold of every reading."""

    rows: Int[Array, " N"]  # in the table of the user
    X: Any
    Y: pd.DataFrame
    fold: Int[Array, "N D"]


def compare(
    models: Mapping[str, Regressor],
    X: Any,
    y: Any,
    *,
    by: Literal["site", "block", "output", "gap"] = "site",
    n_folds: int = 5,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Comparison:
    """Compare models by cross-validation, refitting every model for each of the `n_folds` folds.

    All models are compared with the first. `by` determines which readings are left out together:

    - "site": all readings at a location. The locations of a fold are chosen at random.
    - "block": all readings in a block of neighbouring locations (see `spatial_blocks`), with four
      blocks in each fold. This tests predictions far from the data.
    - "output": single readings. If there are enough folds, the outputs at a location are in
      different folds, so that predictions use the other readings at the location.
    - "gap": the readings of single outputs in a block. If there are enough folds, the outputs of a
      block are in different folds, so that predictions use the readings of the others there.

    The method `cross_validate` of a fitted model is faster, but optimistic, because it does not
    refit the model.

    >>> from emgpr import ICM, IndependentGP, compare
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> Y = np.sin(X) * [1, -1] + 0.1 * np.random.default_rng(0).normal(size=(40, 2))
    >>> found = compare({"ICM": ICM(), "no transfer": IndependentGP()}, X, Y, n_folds=2)
    >>> found.table()["mae"].round(1).tolist()
    [0.1, 0.1, 0.1, 0.1]
    """
    if not models:
        raise ValueError("models is empty; pass at least one model, such as {'EMGPR': EMGPR()}.")
    if not isinstance(n_folds, Integral) or isinstance(n_folds, bool) or n_folds < 2:
        raise ValueError(f"n_folds={n_folds!r}; expected a whole number of at least 2.")
    X = as_table(X)
    first = next(iter(models.values()))
    table = read_training_table(
        X, y, estimator=type(first).__name__, crs=first.get_params(deep=False).get("crs")
    )
    rows, names, Y = table.inputs.rows, list(table.output_names), table.Y
    X = X.iloc[rows] if isinstance(X, pd.DataFrame) else np.asarray(X)[rows]
    index = table.inputs.index[rows]
    fold, group = _assign_folds(table.x, Y, by, n_folds, as_generator(random_state))
    fold = np.where(np.isnan(Y), -1, fold)
    _check_folds(fold, names)
    data = _FoldedTable(rows, X, pd.DataFrame(Y, index=index, columns=names), fold)
    quiet = {name: _quiet(model) for name, model in models.items()}
    jobs = [(name, k) for k in range(n_folds) for name in models]
    execution = Execution(n_jobs=n_jobs, verbose=check_verbose(verbose))
    results = parallel_map(
        partial(_fit_and_score, data, quiet), jobs, execution, label="Cross-validation: fits"
    )
    found = {}
    for name in models:
        frames = {what: np.full(Y.shape, np.nan) for what in FRAMES}
        for (fitted, k), (values, _) in zip(jobs, results, strict=True):
            if fitted == name:
                for what in FRAMES:
                    frames[what] = np.where(fold == k, values[what], frames[what])
        framed = {
            what: pd.DataFrame(values, index=index, columns=names)
            for what, values in {"truth": Y, **frames}.items()
        }
        found[name] = CrossValidation(f"{by}, refitted", **framed)
    notes = Counter(message for _, messages in results for message in messages)
    folds = pd.DataFrame(fold, index=index, columns=names).where(~np.isnan(Y))
    return Comparison(by, n_folds, found, folds, pd.Series(group, index=index), dict(notes))


def _assign_folds(
    inputs: Float[Array, "N P"],
    Y: Float[Array, "N D"],
    by: str,
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[Int[Array, "N D"], Int[Array, " N"]]:
    """Assign a fold to every reading, and a group to every row."""
    if by not in ("site", "block", "output", "gap"):
        raise ValueError(f"by={by!r}; expected 'site', 'block', 'output' or 'gap'.")
    # Rows with the same location are left out together, because their readings are similar.
    group = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    n = int(group.max()) + 1
    if n < n_folds:
        raise ValueError(f"n_folds={n_folds}, but there are only {n} locations; use fewer folds.")
    if by in ("block", "gap"):
        seed = int(rng.integers(2**31))
        group = spatial_blocks(inputs, max(n_folds, min(BLOCKS_PER_FOLD * n_folds, n // 2)), seed)
    fold = rng.permutation(int(group.max()) + 1) % n_folds
    separate = by in ("output", "gap")  # outputs at a location in different folds
    shift = np.arange(Y.shape[1]) * separate
    return (fold[group][:, None] + shift) % n_folds, group


def _check_folds(fold: Int[Array, "N D"], names: list[str]) -> None:
    """Raise ValueError if all readings of an output are in the same fold."""
    for d, name in enumerate(names):
        folds = fold[fold[:, d] >= 0, d]
        if len(np.unique(folds)) < 2:
            raise ValueError(
                f"All {len(folds)} readings of output {name!r} are in the same fold, so that none "
                "remain for the fit. Remove this output, or use more folds."
            )


def _quiet(model: Regressor) -> Regressor:
    """Return a clone of the model without progress bars, parallel processes or a checkpoint."""
    params = model.get_params(deep=False)
    quiet = {"verbose": 0, "n_jobs": None, "checkpoint": None}
    return clone(model).set_params(**{k: v for k, v in quiet.items() if k in params})


def _fit_and_score(
    table: _FoldedTable, models: Mapping[str, Regressor], job: tuple[str, int]
) -> tuple[dict[str, Float[Array, "N D"]], list[str]]:
    """Fit a model without one fold; return its scores on this fold and the warnings of the fit."""
    name, k = job
    left_out = table.fold == k
    Y = table.Y.mask(left_out)
    training, test = np.flatnonzero(Y.notna().any(axis=1)), np.flatnonzero(left_out.any(axis=1))
    framed = isinstance(table.X, pd.DataFrame)
    X, new = ((table.X.iloc[rows] if framed else table.X[rows]) for rows in (training, test))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with rows_of_table(table.rows[training]):
            model = clone(models[name]).fit(X, Y.iloc[training])
        device = resolve_device(model.get_params(deep=False).get("device", "cpu"))
        x = model.input_spec_.read(new)
        predicted = model.posterior_.predict(x, execution=Execution(device))
        scaler, truth = model.output_scaler_, table.Y.to_numpy()[test]
        # Missing readings get a valid value, because some transforms do not accept NaN.
        truth = np.where(np.isnan(truth), scaler.to_original(np.zeros_like(truth)), truth)
        values = score_predictions(scaler, predicted, truth)
    result = {what: np.full(left_out.shape, np.nan) for what in FRAMES}
    for what, part in values.items():
        result[what][test] = part
    return result, sorted({f"{name}: {warning.message}" for warning in caught})
