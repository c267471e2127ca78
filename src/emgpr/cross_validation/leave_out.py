"""Sets of readings that are left out together: sites, single readings, or groups of sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.utils.validation import check_array

from emgpr.inputs import InputSpec
from emgpr.observations import Observations
from emgpr.parallel import RandomState, as_generator
from emgpr.row_numbers import rows_from_zero

Array = np.ndarray

DEFAULT_BLOCKS = 20  # number of blocks of neighbouring sites


@dataclass(frozen=True)
class LeaveOutSets:
    """Labels that define which readings are left out together.

    `sets` contains a label for each reading; readings with equal labels are left out together.
    `groups` contains a label for each site; errors are averaged over sites with equal labels before
    standard errors are computed.
    """

    by: str
    sets: Int[Array, "D N"]
    groups: Int[Array, " N"]

    @classmethod
    def build(
        cls,
        by: Any,
        observations: Observations,
        inputs: InputSpec,
        output_names: Sequence[str],
    ) -> "LeaveOutSets":
        """Create the sets for `by`: a word, or a label for each training row."""
        D, N = observations.y.shape
        sites = np.arange(N)
        if isinstance(by, str) and by == "site":
            return cls("site", np.tile(sites, (D, 1)), sites)
        if isinstance(by, str) and by == "output":
            return cls("output", np.arange(D * N).reshape(D, N), sites)
        blocks, gaps = (isinstance(by, str) and by == word for word in ("block", "gap"))
        if blocks or gaps:
            if len(np.unique(observations.x, axis=0)) < 2:
                raise ValueError(
                    f'by="{by}" leaves out blocks of neighbouring sites, but all readings are at '
                    'one location; set by="site" or by="output".'
                )
            by = np.full(len(inputs.index), None)
            by[inputs.rows] = _default_blocks(observations.x)
        groups, labels = _group_sites(by, inputs)
        for d, observed in enumerate(observations.observed):
            present = np.unique(groups[observed])
            if len(present) == 1:
                in_block = blocks or gaps
                group = "A block" if in_block else f"Group {labels[present[0]]!r}"
                remedy = 'Set by="site"' if in_block else 'Divide this group, or set by="site"'
                raise ValueError(
                    f"{group} contains all {int(observed.sum())} readings of "
                    f"output {output_names[d]!r}, so that no others are left to predict them "
                    f"from. {remedy}."
                )
        if gaps:  # readings of other outputs in the block are in other sets, so that they are known
            return cls("gap", groups + len(labels) * np.arange(D)[:, None], groups)
        return cls(f"{len(labels)} groups", np.tile(groups, (D, 1)), groups)


def _default_blocks(x: Float[Array, "N P"]) -> Int[Array, " N"]:
    n = len(np.unique(x, axis=0))
    return spatial_blocks(x, max(2, min(DEFAULT_BLOCKS, n // 2)), 0)


def _group_sites(by: Any, inputs: InputSpec) -> tuple[Int[Array, " N"], list[Any]]:
    """Return the group number of every site, and the group labels."""
    n = len(inputs.index)
    expected = (
        f'expected "site", "output", "block", "gap", or {n} labels, one for each row of the '
        "training inputs, such as the result of spatial_blocks(X)"
    )
    if isinstance(by, str) or np.ndim(by) != 1:
        shape = f" (shape {np.shape(by)})" if np.ndim(by) > 1 else f"={by!r}"
        raise ValueError(f"by{shape}; {expected}.")
    labels = pd.Series(list(by), dtype=object)
    if len(labels) != n:
        raise ValueError(f"by has {len(labels)} labels; {expected}.")
    labels = labels.iloc[inputs.rows]
    missing = labels.index[labels.isna()]
    if len(missing):
        raise ValueError(
            f"by has no label for {len(missing)} rows with readings, the first of them "
            f"{rows_from_zero(missing.tolist())}; label all of them."
        )
    groups, names = pd.factorize(labels)
    if len(names) == 1:
        raise ValueError(
            f"by puts all readings into one group, {names[0]!r}, so that none are left to predict "
            "from; pass at least two groups."
        )
    return groups.astype(int), list(names)


def spatial_blocks(
    X: Any, n_blocks: int = 10, random_state: RandomState = None
) -> Int[Array, " N"]:
    """Divide sites into blocks of neighbours, and return the block number of every site.

    The result can be passed to `cross_validate(by=...)`. Blocks are found by k-means on columns
    scaled to unit variance. Leaving out a block tests predictions far from the data; leaving out
    single sites only tests interpolation.

    >>> spatial_blocks([[0.0], [0.1], [5.0], [5.1]], n_blocks=2, random_state=0).tolist()
    [0, 0, 1, 1]
    """
    x = check_array(X, dtype=np.float64, input_name="X")
    distinct = len(np.unique(x, axis=0))
    if isinstance(n_blocks, bool) or not 2 <= n_blocks <= distinct:
        raise ValueError(
            f"n_blocks={n_blocks!r}; expected a whole number from 2 to {distinct}, the number of "
            "distinct sites."
        )
    std = x.std(axis=0)
    seed = int(as_generator(random_state).integers(2**31))
    from sklearn.cluster import KMeans  # slow to import

    clustering = KMeans(int(n_blocks), n_init=5, random_state=seed)
    labels = clustering.fit_predict(x / np.where(std > 0, std, 1.0))
    _, first, block = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[block]  # numbered by first appearance
