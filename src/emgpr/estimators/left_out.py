"""What is left out at once in a cross-validation: sites, single readings, or groups of sites."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from sklearn.utils.validation import check_array

from emgpr.execution import RandomState, generator
from emgpr.observations import Observations

Array = np.ndarray

BLOCKS = 20  # of neighbouring sites, if the user names no others


@dataclass(frozen=True)
class LeftOut:
    """What is left out at once: readings of one number in `sets`; sites are of these groups.

    It is asked of all sites, or of some.
    """

    by: str
    sets: Int[Array, "D N"]
    groups: Int[Array, " N"]
    asked: Int[Array, " M"] | None = None

    def of_some(self, seen: Observations, most: int) -> "LeftOut":
        """Asked where each output was read so many times at most, at random."""
        return replace(self, asked=some_of_each(seen, most))

    def of(self, seen: Observations) -> Observations:
        """Of a table, what is asked."""
        return seen if self.asked is None else seen.at(self.asked)

    @classmethod
    def chosen(cls, model: Any, by: Any) -> "LeftOut":
        """As the user said."""
        D, N = model._seen.y.shape
        sites = np.arange(N)
        if isinstance(by, str) and by == "site":
            return cls("site", np.tile(sites, (D, 1)), sites)
        if isinstance(by, str) and by == "output":
            return cls("output", np.arange(D * N).reshape(D, N), sites)
        if isinstance(by, str) and by == "block":
            n = len(np.unique(model._seen.x, axis=0))
            blocks = spatial_blocks(model._seen.x, max(2, min(BLOCKS, n // 2)), 0)
            labels = np.full(len(model._index), None)
            labels[model._rows] = blocks
            by = labels
        group, names = _grouped(model, by)
        for d, seen in enumerate(model._seen.seen):
            held = np.unique(group[seen])
            if len(held) == 1:
                raise ValueError(
                    f"Group {names[held[0]]!r} holds all {int(seen.sum())} readings of output "
                    f"{model.output_names_[d]!r}, so nothing is left to predict them from. Divide "
                    "that group."
                )
        return cls(f"{len(names)} groups", np.tile(group, (D, 1)), group)


def some_of_each(seen: Observations, most: int) -> Int[Array, " M"]:
    """Sites where each output was read, so many times at most, at random."""
    order = np.random.default_rng(0).permutation(seen.n_sites)
    each = [order[own[order]][:most] for own in seen.seen]
    return np.unique(np.concatenate(each))


def _grouped(model: Any, by: Any) -> tuple[Int[Array, " N"], list[Any]]:
    """The group of every site at which anything was measured, and the labels."""
    n = len(model._index)
    expected = (
        f'expected "site", "output", "block", or {n} labels: one for each row of the training '
        "inputs, such as spatial_blocks(X) gives"
    )
    if isinstance(by, str) or np.ndim(by) != 1:
        shape = f" (shape {np.shape(by)})" if np.ndim(by) > 1 else f"={by!r}"
        raise ValueError(f"by{shape}; {expected}.")
    labels = pd.Series(list(by), dtype=object)
    if len(labels) != n:
        raise ValueError(f"by has {len(labels)} labels; {expected}.")
    labels = labels.iloc[model._rows]
    unknown = labels.index[labels.isna()]
    if len(unknown):
        raise ValueError(
            f"by has no label in {len(unknown)} rows where something was measured, first in rows "
            f"{unknown[:5].tolist()}; give every one a label."
        )
    group, names = pd.factorize(labels)
    if len(names) == 1:
        raise ValueError(
            f"by puts every reading into one group, {names[0]!r}, so nothing is left to predict "
            "from; give at least two groups."
        )
    return group.astype(int), list(names)


def spatial_blocks(
    X: Any, n_blocks: int = 10, random_state: RandomState = None
) -> Int[Array, " N"]:
    """Labels of blocks of neighbouring sites, for `cross_validate(by=...)`.

    By k-means on columns brought to one variance. Leaving out a block tells how well
    a model predicts away from its data; leaving out a site, only how well it fills in.

    >>> spatial_blocks([[0.0], [0.1], [5.0], [5.1]], n_blocks=2, random_state=0).tolist()
    [0, 0, 1, 1]
    """
    x = check_array(X, dtype=np.float64, input_name="X")
    distinct = len(np.unique(x, axis=0))
    if isinstance(n_blocks, bool) or not 2 <= n_blocks <= distinct:
        raise ValueError(
            f"n_blocks={n_blocks!r}; expected a whole number from 2 to {distinct}, the number of "
            "different sites."
        )
    spread = x.std(axis=0)
    seed = int(generator(random_state).integers(2**31))
    from sklearn.cluster import KMeans  # slow to import

    means = KMeans(int(n_blocks), n_init=5, random_state=seed)
    labels = means.fit_predict(x / np.where(spread > 0, spread, 1.0))
    _, first, block = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[block]  # numbered in the order of the rows
