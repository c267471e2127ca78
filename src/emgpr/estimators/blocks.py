"""Tables that Dask holds, looked at and summed where they are, block after block.

What comes back of a block is a look at it, or its sums; these meet in a tree, some at a time. The
table is in nobody's memory, and what a worker had when it died is read again by another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.covariance import Sums
from emgpr.estimators.door import (
    as_table,
    check_inputs,
    enter_outputs,
    names_of,
    ordered,
    steps_of,
)
from emgpr.estimators.gathered import is_lazy
from emgpr.estimators.lazy import array_and_head, named, one_of_many, sent
from emgpr.estimators.passes import PIECE, Look, Pieces, Table, joined, know_outputs, total
from emgpr.geo import needed

Array = np.ndarray

AT_ONCE = 4  # parts that meet in the memory of a worker


@dataclass(frozen=True)
class Blocks:
    """Inputs and outputs as Dask's arrays, in the same blocks of rows, which hold whole pieces."""

    X: Any
    Y: Any
    steps: tuple[Float[Array, " p"], Float[Array, " D"]]

    @classmethod
    def entered(cls, model: Any, X: Any, y: Any, *, first: bool) -> "Blocks":
        """What the user brings; the model remembers or checks the names of its columns.

        Nothing is read, but for the lengths of blocks that Dask does not know.
        """
        arrays = needed("dask.array", "Learning from what Dask holds", "dask")
        if y is None:
            enter_outputs(y, 0)  # raises
        (X, of_inputs), (Y, of_outputs) = (_entered(table, arrays) for table in (X, y))
        check_inputs(model, _a_row(of_inputs), fitting=first)
        row = _a_row(of_outputs)
        row = row if first else ordered(row, model.output_names_)
        _, names, flat = enter_outputs(row, 1)
        know_outputs(model, names, flat, first=first)
        Y = Y[:, None] if Y.ndim == 1 else Y
        given = names_of(of_outputs, len(names))
        if given != names:
            Y = Y[:, [given.index(name) for name in names]]
            of_outputs = of_outputs[names]
        X, Y = _counted(X, Y)
        if X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows and Y has {Y.shape[0]}; each row of Y must be one "
                "place in X. Write NaN where an output was not measured."
            )
        if not X.shape[0]:
            check_inputs(model, np.empty(X.shape), fitting=False)  # raises
        cuts = _whole_pieces((X if is_lazy(X) else Y).chunks[0])
        X, Y = (arrays.asarray(table).rechunk({0: cuts, 1: -1}) for table in (X, Y))
        steps = steps_of(of_inputs, X.shape[1]), steps_of(of_outputs, len(names))
        return cls(X, Y, steps)

    @property
    def n_rows(self) -> int:
        """Of the table."""
        return int(self.X.shape[0])

    def look(self, model: Any) -> Look:
        """At all rows: the first pass."""
        return self._met(model, _look_at, _added)

    def sums(self, model: Any) -> Sums:
        """Over all rows, in the waves of the model: the second."""
        return total(self._met(model, _pieces_of, joined), model._basis.lattice)

    def _met(self, model: Any, work: Callable[..., Any], meet: Callable[..., Any]) -> Any:
        """What the work gives of every block, in one."""
        arrays, dask = (needed(name, "Learning", "dask") for name in ("dask.array", "dask"))
        sizes = self.X.chunks[0]
        starts = arrays.from_array(np.cumsum([0, *sizes[:-1]]), chunks=1)
        told = arrays.blockwise(
            _alone, "i", self.X, "ip", self.Y, "id", starts, "i",
            work=work, model=sent(model), adjust_chunks={"i": (1,) * len(sizes)},
            concatenate=True, align_arrays=False, dtype=object, meta=np.empty(0, object),
        )  # fmt: skip
        parts = told.to_delayed().tolist()
        join = dask.delayed(_of_some, pure=False)
        while len(parts) > 1:
            parts = [join(meet, parts[i : i + AT_ONCE]) for i in range(0, len(parts), AT_ONCE)]
        return parts[0].compute()[0]


def _entered(table: Any, arrays: Any) -> tuple[Any, Any]:
    """An array, Dask's if the table is, and an empty table of the same names and numbers."""
    if is_lazy(table):
        return array_and_head(table, arrays)
    table = as_table(table)
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.to_numpy(), table.iloc[:0]
    values = np.atleast_1d(table)
    return values, values[:0]


def _a_row(head: Any) -> Any:
    """A row with the columns of a table."""
    row = np.zeros((1, *head.shape[1:]))
    if isinstance(head, pd.DataFrame):
        return pd.DataFrame(row, columns=head.columns)
    return pd.Series(row, name=head.name) if isinstance(head, pd.Series) else row


def _counted(*tables: Any) -> list[Any]:
    """Arrays of which the lengths of blocks are known: all that are not are counted together."""
    dask, arrays = (needed(name, "Learning", "dask") for name in ("dask", "dask.array"))
    unknown = [is_lazy(table) and np.isnan(table.shape[0]) for table in tables]
    asked = [
        [dask.delayed(len)(block) for block in table.to_delayed()[:, 0]]
        for table, odd in zip(tables, unknown, strict=True)
        if odd
    ]
    found = iter(dask.compute(*asked))
    return [
        arrays.Array(
            table.dask, table.name, (tuple(next(found)), *table.chunks[1:]), meta=table._meta
        )
        if odd
        else table
        for table, odd in zip(tables, unknown, strict=True)
    ]


def _whole_pieces(sizes: Sequence[int]) -> tuple[int, ...]:
    """Lengths of blocks that hold whole pieces, about as long as these.

    >>> _whole_pieces([16384, 20000, 20000])
    (16384, 16384, 23616)
    """
    ends = np.cumsum(sizes)
    cuts = np.minimum(np.round(ends[:-1] / PIECE).astype(int) * PIECE, ends[-1])
    cuts = np.unique([0, *cuts, ends[-1]])
    return tuple(np.diff(cuts).tolist())


def _alone(X: Array, Y: Array, start: Array, *, work: Callable[..., Any], model: Any) -> Array:
    """What the work gives of a block, as the only element of an array."""
    told = np.empty(1, object)
    if X.size and Y.size:
        first = int(start[0])
        with one_of_many(f"row {first} of the table"):
            outputs = pd.DataFrame(Y, columns=model.output_names_)
            inputs = named(X, model)
            told[0] = work(Table.entered(model, inputs, outputs, first=False, start=first), model)
    return told


def _look_at(table: Table, model: Any) -> Look:
    return table.look(model)


def _pieces_of(table: Table, model: Any) -> Pieces:
    return table.pieces(model)


def _added(*looks: Look) -> Look:
    return reduce(add, looks)


def _of_some(meet: Callable[..., Any], parts: Sequence[Array]) -> Array:
    """What some parts are together."""
    told = np.empty(1, object)
    told[0] = meet(*(part[0] for part in parts))
    return told
