"""Data sets of the frozen cases, and the places at which fitted models are asked.

Simulated tables use `RandomState`, whose streams NumPy never changes, and plain arithmetic.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Table(NamedTuple):
    """Training inputs and outputs, seven places to predict, and outputs known at these places.

    Places 0 to 2 are new: at 0 nothing is known, at 1 the first output, at 2 all the others.
    Places 3 to 6 are training sites: `known` repeats all readings of the first, contradicts one
    of the second, says nothing of the third (which has a gap, if any row has) and repeats one
    reading of the fourth.
    """

    X: Any
    Y: Any
    places: Any
    known: Any


def asked(X: np.ndarray, Y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and known outputs of a table, as `Table` describes them."""
    table = Y.reshape(len(X), -1)
    middle = np.nanmedian(table, axis=0)
    read = ~np.isnan(table)
    whole = np.flatnonzero(read.all(axis=1))
    gaps = np.flatnonzero(read.any(axis=1) & ~read.all(axis=1))
    rows = [whole[1], whole[4], gaps[0] if len(gaps) else whole[7], whole[9]]
    low, high = X.min(axis=0), X.max(axis=0)
    new = low + np.random.RandomState(seed).random_sample((3, X.shape[1])) * (high - low)
    known = np.full((7, table.shape[1]), np.nan)
    known[1, 0] = middle[0]
    known[2, 1:] = middle[1:]
    known[3] = table[rows[0]]
    known[4, 0] = table[whole[2], 0]
    known[6, -1] = table[rows[3], -1]
    return np.vstack([new, X[rows]]), known if Y.ndim == 2 else known[:, 0]


def as_arrays(X: np.ndarray, Y: np.ndarray, seed: int) -> Table:
    return Table(X, Y, *asked(X, Y, seed))


def as_frames(X: pd.DataFrame, Y: pd.DataFrame, seed: int, index: list[str] | None = None) -> Table:
    """Frames whose index is not the default, with the known outputs in another order of columns."""
    places, known = asked(X.to_numpy(), Y.to_numpy(), seed)
    labels = [f"site {3 * i}" for i in range(len(X))] if index is None else index
    return Table(
        X.set_axis(labels, axis=0),
        Y.set_axis(labels, axis=0),
        pd.DataFrame(places, columns=X.columns, index=list("abcdefg")),
        pd.DataFrame(known, columns=Y.columns, index=list("abcdefg"))[list(Y.columns)[::-1]],
    )


def waves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three smooth functions of the first and the last input."""
    a, b = X[:, 0], X[:, -1]
    return np.sin(6 * a) + np.cos(4 * b), np.cos(5 * a + 1), np.sin(5 * b) - a


def related(seed: int, N: int, P: int = 2, noise: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Three outputs that share smooth functions, of variance about 1."""
    random = np.random.RandomState(seed)
    X = random.random_sample((N, P))
    f, g, h = waves(X)
    Y = np.column_stack([f, 0.8 * f + 0.5 * g, g - 0.7 * h])
    return X, Y + noise * random.normal(size=Y.shape)


def with_gaps(Y: np.ndarray, seed: int, share: float = 0.2) -> np.ndarray:
    return np.where(np.random.RandomState(seed).random_sample(Y.shape) < share, np.nan, Y)


def smooth() -> Table:
    """Complete, three outputs in three units."""
    X, Y = related(1, 40)
    return as_arrays(X, Y * [1.0, 100.0, 0.01] + [0.0, 500.0, -1.0], 101)


def gaps() -> Table:
    """A frame with gaps, and two rows in which nothing was read."""
    X, Y = related(2, 44)
    Y = with_gaps(Y, 12)
    Y[[5, 30]] = np.nan
    frames = pd.DataFrame(X, columns=["east", "north"]), pd.DataFrame(Y, columns=["a", "b", "c"])
    return as_frames(*frames, 102)


def skewed() -> Table:
    """Positive outputs, one of them nearly Gaussian."""
    X, Y = related(3, 42)
    Y = np.column_stack([np.exp(Y[:, 0]), np.exp(0.5 * Y[:, 1]), Y[:, 2] + 6.0])
    frames = pd.DataFrame(X, columns=["x", "y"]), pd.DataFrame(Y, columns=["Zn", "Pb", "pH"])
    return as_frames(*frames, 103)


def apart() -> Table:
    """Two related outputs, and one that has nothing to do with them."""
    X, Y = related(4, 60)
    other = np.sin(9 * X[:, 1] + 2) * np.cos(7 * X[:, 0])
    random = np.random.RandomState(14)
    Y[:, 2] = other + 0.3 * random.normal(size=len(X))
    Y[::7, 0] = np.nan
    return as_arrays(X, Y, 104)


def pair() -> Table:
    """Two outputs, for ensembles of three members."""
    X, Y = related(5, 33, noise=0.3)
    Y = np.column_stack([Y[:, 0], Y[:, 2] + 0.3 * Y[:, 0]])
    Y[3::8, 1] = np.nan
    return as_arrays(X, Y, 105)


def joined_noise() -> Table:
    """Noises of a row that are correlated, and gaps."""
    X, Y = related(6, 48, noise=0.1)
    random = np.random.RandomState(16)
    Y = Y + 0.35 * random.normal(size=(len(X), 1)) * [1.0, 0.9, -0.8]
    Y = with_gaps(Y, 26, 0.15)
    return as_arrays(X, Y, 106)


def shared() -> Table:
    """Three outputs of one function: fewer latents than outputs are enough."""
    X, Y = related(23, 40, noise=0.3)
    random = np.random.RandomState(23)
    Y = Y[:, :1] * [1.0, -0.6, 0.8] + 0.3 * random.normal(size=(len(X), 3))
    return as_arrays(X, Y, 118)


def plenty() -> Table:
    """Readings enough for two weight vectors of each latent."""
    X, Y = related(15, 75)
    return as_arrays(X, Y[:, 1:], 117)


def vector() -> Table:
    """A 1-D y of one input."""
    X, Y = related(7, 30, P=1)
    return as_arrays(6 * X, Y[:, 0], 107)


def single() -> Table:
    """A 2-D y of one column."""
    X, Y = related(7, 30, P=1)
    return as_arrays(6 * X, Y[:, :1], 107)


def cube() -> Table:
    """Three inputs of different units."""
    X, Y = related(8, 45, P=3)
    return as_arrays(X * [1.0, 50.0, 0.1], Y[:, 1:], 108)


def constant() -> Table:
    """One output has one value only."""
    X, Y = related(9, 34)
    Y[:, 1] = 7.5
    return as_arrays(X, Y, 109)


def repeated() -> Table:
    """Some places were measured twice or three times."""
    X, Y = related(10, 36)
    X[30:34], X[34:] = X[:4], X[0]
    return as_arrays(X, Y, 110)


def few() -> Table:
    """A dozen sites."""
    X, Y = related(11, 12, noise=0.3)
    return as_arrays(X, Y, 111)


def many() -> Table:
    """Enough for sums over sites."""
    X, Y = related(12, 300)
    Y = with_gaps(Y[:, :2], 32, 0.1)
    return as_arrays(X, Y, 112)


def many_framed() -> Table:
    """Positive outputs in a frame, for sums over sites."""
    X, Y = related(13, 240)
    Y = np.exp(0.5 * Y[:, :2])
    frames = pd.DataFrame(X, columns=["x", "y"]), pd.DataFrame(Y, columns=["Cu", "Pb"])
    return as_frames(*frames, 113)


def jura() -> Table:
    """Three metals of the Swiss Jura; cadmium is withheld at some sites."""
    from emgpr.datasets import jura_table

    table = jura_table()
    rows = np.r_[0:259:6, 259:359:9]
    return as_frames(table.X.iloc[rows], table.Y.iloc[rows], 114)


def metals() -> Table:
    """Four metals at 36 sites of the Jura, complete."""
    from emgpr.datasets import load_jura

    train = load_jura().train.iloc[::7].iloc[:36]
    return as_frames(train[["Xloc", "Yloc"]], train[["Cd", "Cu", "Ni", "Zn"]], 115)


def swath() -> Table:
    """Three channels of AMSU-A at every 14th site; latitude and longitude."""
    from emgpr.datasets import load_amsua

    swath = load_amsua()
    X, Y = swath.X.iloc[::14], swath.Y[["ch01", "ch05", "ch15"]].iloc[::14]
    return as_frames(X, Y, 116)


MAKERS: dict[str, Callable[[], Table]] = {
    make.__name__: make
    for make in (
        smooth, gaps, skewed, apart, pair, joined_noise, shared, plenty, vector, single, cube,
        constant, repeated, few, many, many_framed, jura, metals, swath,
    )
}  # fmt: skip


@cache
def table(name: str) -> Table:
    """The table of this name, made once."""
    return MAKERS[name]()
