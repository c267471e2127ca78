"""Models compared by true cross-validation: each learns anew without what it is to predict."""

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone

from emgpr.estimators.base import MultiOutputGP
from emgpr.estimators.door import as_table
from emgpr.estimators.findings import CrossValidation
from emgpr.estimators.left_out import spatial_blocks
from emgpr.estimators.validation import scores
from emgpr.execution import RandomState, each, generator
from emgpr.metrics import PairedDifference, paired_difference

Array = np.ndarray

BLOCKS = 4  # of neighbouring sites, for each fold
FRAMES = ("prediction", "std", "lower", "upper", "standardized", "nlpd", "crps", "pit")


@dataclass(frozen=True)
class Comparison:
    """What models predicted of every reading that they had not learned from.

    `found` has for each model what `cross_validate` gives. `fold` numbers the fit that a reading
    was left out of, `group` the place or block of a row: differences are averaged in each group
    first, and their standard error is that over groups. `notes` are what fits warned of, and how
    many of them.
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
        """Absolute errors, or negative log densities, of the first model less those of another."""
        first = next(iter(self.found))
        ours, theirs = (self._loss(name, output, loss) for name in (first, other))
        return paired_difference(ours, theirs)

    def _loss(self, name: str, output: str, loss: str) -> Float[Array, " G"]:
        found = self.found[name]
        values = found.residual[output].abs() if loss == "error" else found.nlpd[output]
        return values.groupby(self.group.to_numpy()).mean().to_numpy()

    def table(self) -> pd.DataFrame:
        """A row for each output and model: errors, log densities, coverage of 95% intervals.

        `difference` is of absolute errors, `nlpd_difference` of negative log densities: the first
        model's less this one's, so that negative favours the first.
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
        """A row for each reading and model: what was read, what was predicted, in which fold."""
        row, column = np.nonzero(self.fold.notna().to_numpy())
        fold = self.fold.to_numpy()[row, column].astype(int)
        group = self.group.to_numpy()[row]
        parts = [
            found.rows().assign(model=name, fold=fold, group=group)
            for name, found in self.found.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def verdict(self, other: str) -> str:
        """For which outputs the first model is better or worse than another, beyond doubt.

        Beyond two standard errors, made wider for the number of outputs, as in `transfer_report`.
        """
        outputs = list(self.fold.columns)
        said: dict[str, list[str]] = {"better": [], "worse": [], "no difference is seen": []}
        for output in outputs:
            sign = self.difference(output, other).sign(len(outputs))
            said[("no difference is seen", "worse", "better")[sign]].append(str(output))
        told = "; ".join(f"{word} for {', '.join(names)}" for word, names in said.items() if names)
        return f"{next(iter(self.found))} against {other}: {told}."

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
            f"{first}'s less the other's, ± standard error"
        )
        return "\n".join([title, shown.to_string(), *(self.verdict(other) for other in others)])


class _Table(NamedTuple):
    """The rows where anything was read, and which readings are left out of which fit."""

    X: Any
    Y: pd.DataFrame
    fold: Int[Array, "N D"]


def compare(
    models: Mapping[str, MultiOutputGP],
    X: Any,
    y: Any,
    *,
    by: Literal["site", "block", "output"] = "site",
    n_folds: int = 5,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Comparison:
    """Fit every model `n_folds` times, each time without some readings, and predict those.

    By "site", all readings of a place are left out together, at random places; by "block", those
    of blocks of neighbouring places (`spatial_blocks`, four for each fold), which tells how models
    predict away from their data; by "output", single readings, of different outputs at different
    places (as far as there are folds enough), so that what else was read there informs them. The
    first model is the one that the others are compared with. `cross_validate` of a fitted model
    is quicker, and flatters.

    >>> from emgpr import ICM, IndependentGP, compare
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> Y = np.sin(X) * [1, -1] + 0.1 * np.random.default_rng(0).normal(size=(40, 2))
    >>> found = compare({"ICM": ICM(), "no transfer": IndependentGP()}, X, Y, n_folds=2)
    >>> found.table()["mae"].round(1).tolist()
    [0.1, 0.1, 0.1, 0.1]
    """
    if not models:
        raise ValueError("models is empty; give at least one, as {'EMGPR': EMGPR()}.")
    if isinstance(n_folds, bool) or int(n_folds) != n_folds or n_folds < 2:
        raise ValueError(f"n_folds={n_folds!r}; expected a whole number of at least 2.")
    X = as_table(X)
    door: Any = clone(next(iter(models.values())))
    inputs, Y, _ = door._entered(X, y)
    rows, names = door._rows, door.output_names_
    X = X.iloc[rows] if isinstance(X, pd.DataFrame) else np.asarray(X)[rows]
    index = door._index[rows]
    fold, group = _dealt(inputs, Y, by, n_folds, generator(random_state))
    fold = np.where(np.isnan(Y), -1, fold)
    _refuse_emptied(fold, names)
    table = _Table(X, pd.DataFrame(Y, columns=names), fold)
    quiet = {
        name: clone(model).set_params(verbose=0, n_jobs=None, checkpoint=None)
        for name, model in models.items()
    }
    jobs = [(name, k) for k in range(n_folds) for name in models]
    answers = each(
        partial(_predicted, table, quiet),
        jobs,
        n_jobs=n_jobs,
        label="Cross-validation: fits",
        verbose=verbose,
    )
    found = {}
    for name in models:
        frames = {what: np.full(Y.shape, np.nan) for what in FRAMES}
        for (own, k), (values, _) in zip(jobs, answers, strict=True):
            if own == name:
                for what in FRAMES:
                    frames[what] = np.where(fold == k, values[what], frames[what])
        framed = {
            what: pd.DataFrame(values, index=index, columns=names)
            for what, values in {"truth": Y, **frames}.items()
        }
        found[name] = CrossValidation(f"{by}, learned anew", **framed)
    notes = Counter(note for _, own in answers for note in own)
    made = pd.DataFrame(fold, index=index, columns=names).where(~np.isnan(Y))
    return Comparison(by, n_folds, found, made, pd.Series(group, index=index), dict(notes))


def _dealt(
    inputs: Float[Array, "N P"],
    Y: Float[Array, "N D"],
    by: str,
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[Int[Array, "N D"], Int[Array, " N"]]:
    """The fold of every reading, and the group of every row."""
    if by not in ("site", "block", "output"):
        raise ValueError(f"by={by!r}; expected 'site', 'block' or 'output'.")
    # Rows of one place stay together: one of them would tell the others.
    place = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    n = int(place.max()) + 1
    if n < n_folds:
        raise ValueError(f"{n} places cannot be left out in {n_folds} folds; make fewer folds.")
    group = place
    if by == "block":
        seed = int(rng.integers(2**31))
        group = spatial_blocks(inputs, max(n_folds, min(BLOCKS * n_folds, n // 2)), seed)
    turn = rng.permutation(int(group.max()) + 1) % n_folds
    shift = np.arange(Y.shape[1]) * (by == "output")  # no two outputs of a place in one fold
    return (turn[group][:, None] + shift) % n_folds, group


def _refuse_emptied(fold: Int[Array, "N D"], names: list[str]) -> None:
    """Of every output, something must be left to learn from."""
    for d, name in enumerate(names):
        own = fold[fold[:, d] >= 0, d]
        if len(np.unique(own)) < 2:
            raise ValueError(
                f"All {len(own)} readings of output {name!r} are left out together, so nothing is "
                "left to learn from. Leave it out, or make more folds."
            )


def _predicted(
    table: _Table, models: Mapping[str, MultiOutputGP], job: tuple[str, int]
) -> tuple[dict[str, Float[Array, "N D"]], list[str]]:
    """What a model that has not seen a fold says of it, and what it warned of."""
    name, k = job
    out = table.fold == k
    Y = table.Y.mask(out)
    kept, asked = np.flatnonzero(Y.notna().any(axis=1)), np.flatnonzero(out.any(axis=1))
    framed = isinstance(table.X, pd.DataFrame)
    at, new = ((table.X.iloc[rows] if framed else table.X[rows]) for rows in (kept, asked))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model: Any = clone(models[name]).fit(at, Y.iloc[kept])
        belief = model._belief(new, None, True)
        truth = table.Y.to_numpy()[asked]
        # A value that can be, where nothing was read: NaN is not for all transforms.
        truth = np.where(np.isnan(truth), model._scale.to_user(np.zeros_like(truth)), truth)
        values = scores(model._scale, belief, truth, model._scale.standardised(truth))
    answer = {what: np.full(out.shape, np.nan) for what in FRAMES}
    for what, part in values.items():
        answer[what][asked] = part
    return answer, sorted({f"{name}: {warning.message}" for warning in caught})
