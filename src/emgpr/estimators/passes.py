"""Two passes over a table: a look at its rows, from which a start is made, and sums over them.

A table may be read in blocks, by anybody. The sample is of the same rows whatever the blocks are,
and sums are of the same pieces, added in the same order: rounding alone would lead an ascent
elsewhere, by a thousandth of a standard deviation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64

from emgpr.covariance import Lattice, Sums
from emgpr.estimators.door import (
    as_table,
    check_inputs,
    enter_outputs,
    ordered,
    placed,
    steps_of,
)
from emgpr.execution import each, threads_for
from emgpr.observations import Observations
from emgpr.transforms import Marginals

Array = np.ndarray

PIECE = 2**14  # rows whose sums are made as one, counted from the first row of the table
AT_A_TIME = 8  # pieces
SAMPLE = 100_000  # rows that are looked at for odd values, and from which the start is drawn
LEAST = 100  # readings of each output in a sample, if there are so many

Pieces = Mapping[tuple[int, int], Sums]  # by level and number: (1, 0) is both (0, 0) and (0, 1)


@dataclass(frozen=True)
class Look:
    """What a start is made from: lowest and highest values of all rows that were read, and some.

    Every row has a rank at random, the same whoever reads it; the lowest ranks are looked at. So
    looks at the blocks of a table add up to a look at all of it.

    >>> x, Y = np.arange(6.0)[:, None], np.arange(6.0)[:, None]
    >>> whole = Look.at(np.arange(6), x, x, Y)
    >>> parts = [Look.at(np.arange(6)[part], x[part], x[part], Y[part])
    ...          for part in (slice(0, 4), slice(4, 6))]
    >>> (parts[1] + parts[0]).rows, whole.corners.ravel()
    (array([0, 1, 2, 3, 4, 5]), array([0., 5.]))
    """

    corners: Float[Array, "2 P"]  # of inputs as kernels see them
    ranges: Float[Array, "2 D"]  # NaN: never read
    rows: Int[Array, " n"]
    ranks: UInt64[Array, " n"]
    numbers: Float[Array, "n p"]  # inputs as they were given
    Y: Float[Array, "n D"]

    @classmethod
    def at(
        cls,
        rows: Int[Array, " n"],
        numbers: Float[Array, "n p"],
        x: Float[Array, "n P"],
        Y: Float[Array, "n D"],
    ) -> "Look":
        """At these rows, numbered as in the table they are of, in order."""
        corners = [x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)]
        ranges = [end.reduce(Y, axis=0, initial=np.nan) for end in (np.fmin, np.fmax)]
        ranks = np.empty(0, np.uint64)
        if len(rows):
            bits = np.random.PCG64(0).advance(int(rows[0]))
            ranks = bits.random_raw(int(rows[-1] - rows[0]) + 1)[rows - rows[0]]
        return cls(np.stack(corners), np.stack(ranges), rows, ranks, numbers, Y)._some()

    def __add__(self, other: "Look") -> "Look":
        lows, highs = zip(self.corners, other.corners, strict=True)
        least, most = zip(self.ranges, other.ranges, strict=True)
        first, second = sorted((self, other), key=lambda look: look.rows[:1].tolist())
        return Look(
            np.stack([np.minimum(*lows), np.maximum(*highs)]),
            np.stack([np.fmin(*least), np.fmax(*most)]),
            np.concatenate([first.rows, second.rows]),
            np.concatenate([first.ranks, second.ranks]),
            np.concatenate([first.numbers, second.numbers]),
            np.concatenate([first.Y, second.Y]),
        )._some()

    def _some(self) -> "Look":
        """The rows of lowest rank, and enough that hold each output."""
        if len(self.rows) <= SAMPLE:
            return self
        order = np.argsort(self.ranks, kind="stable")
        read = [order[~np.isnan(own[order])][:LEAST] for own in self.Y.T]
        some = np.unique(np.concatenate([order[:SAMPLE], *read]))
        return Look(
            self.corners, self.ranges, self.rows[some], self.ranks[some], self.numbers[some],
            self.Y[some],
        )  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows in which anything was read, of a table in memory, or of a block that begins at `start`.

    `rows` are counted from there, `steps` are of the numbers of inputs and outputs.
    """

    rows: Int[Array, " n"]
    numbers: Float[Array, "n p"]
    x: Float[Array, "n P"]
    Y: Float[Array, "n D"]
    n_rows: int
    steps: tuple[Float[Array, " p"], Float[Array, " D"]]
    start: int = 0

    @classmethod
    def entered(cls, model: Any, X: Any, y: Any, *, first: bool, start: int = 0) -> "Table":
        """What the user brings; the model remembers or checks the names of its columns."""
        X, y = as_table(X), as_table(y)
        numbers = check_inputs(model, X, fitting=first)
        y = y if first else ordered(y, model.output_names_)
        Y, names, flat = enter_outputs(y, len(numbers))
        know_outputs(model, names, flat, first=first)
        rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
        steps = steps_of(X, numbers.shape[1]), steps_of(y, len(names))
        read = numbers[rows]
        return cls(rows, read, placed(model, read), Y[rows], len(Y), steps, start)

    def look(self, model: Any) -> Look:
        """At these rows; the model is not asked."""
        return Look.at(self.start + self.rows, self.numbers, self.x, self.Y)

    def sums(self, model: Any) -> Sums:
        """Over all rows, in the waves of the model."""
        return total(self.pieces(model), model._basis.lattice)

    def pieces(self, model: Any) -> Pieces:
        """The same, piece by piece."""
        model._refuse_outside(self.x)
        cuts = np.searchsorted(self.rows, np.arange(0, self.n_rows, PIECE)).tolist()
        ends = [*cuts[1:], len(self.rows)]
        parts = [(self.x[i:j], self.Y[i:j]) for i, j in zip(cuts, ends, strict=True)]
        first = self.start // PIECE
        runs = [(first + i, parts[i : i + AT_A_TIME]) for i in range(0, len(parts), AT_A_TIME)]
        work = partial(_pieces_of, model._basis.lattice, model._scale, model.output_names_)
        label = "Summing: chunks of places"
        with threads_for(0):
            return joined(
                *each(work, runs, n_jobs=model.n_jobs, label=label, verbose=model.verbose)
            )


def know_outputs(model: Any, names: list[str], flat: bool, *, first: bool) -> None:
    """Remember the outputs, or raise if they are not those that the model was begun with."""
    if first:
        model.output_names_, model.n_outputs_, model._flat = names, len(names), flat
    elif names != model.output_names_:
        raise ValueError(
            f"y has the outputs {names}, and this model was begun with {model.output_names_}; "
            "give the same columns in every chunk, NaN where one was not measured."
        )


def joined(*parts: Pieces) -> Pieces:
    """All pieces, any two halves of a whole added.

    >>> lattice = Lattice((0.0,), (1.0,), (1,))
    >>> sorted(joined(*({(0, i): Sums(lattice)} for i in (2, 0, 4, 1, 3))))
    [(0, 4), (2, 0)]
    """
    nodes = {at: sums for part in parts for at, sums in part.items()}
    for at in sorted(nodes):
        while at in nodes and (beside := (at[0], at[1] ^ 1)) in nodes:
            left, right = sorted([at, beside])
            at = at[0] + 1, at[1] // 2
            nodes[at] = nodes.pop(left) + nodes.pop(right)
    return nodes


def total(pieces: Pieces, lattice: Lattice) -> Sums:
    """Of all pieces of a table: the parts that are no half of anything, in order."""
    order = sorted(pieces, key=lambda at: at[1] << at[0])
    return reduce(add, (pieces[at] for at in order), Sums(lattice))


def _pieces_of(
    lattice: Lattice,
    scale: Marginals,
    names: Sequence[str],
    run: tuple[int, list[tuple[Float[Array, "n P"], Float[Array, "n D"]]]],
) -> Pieces:
    first, parts = run
    tables = [Observations.from_table(x, scale.forward(Y, names)) for x, Y in parts]
    return joined({(0, first + i): Sums.of(lattice, table) for i, table in enumerate(tables)})
