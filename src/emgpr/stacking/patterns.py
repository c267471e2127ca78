"""Patterns of known outputs: a predicted output, and the other outputs known at the location."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.observations import Observations
from emgpr.stacking.locations import typical_spacing

Array = np.ndarray
Pattern = tuple[int, tuple[int, ...]]  # an output, and the other outputs that are known

MIN_CORRELATION_SITES = 3  # of two outputs, for their correlation
MIN_COMMON_SITES = 10  # at which an output and the known outputs of its regression were measured
MIN_SITES = 10  # at which exactly the same outputs were measured; fewer: a rare set
MAX_KNOWN = 3  # known outputs of a regression if the set of known outputs is rare
MAX_MISSING = 5000  # missing readings whose distances are computed
GAP_DISTANCE = 3.0  # distance from an output's readings in a gap, relative to that between readings


@dataclass(frozen=True)
class TablePattern:
    """The most frequent pattern of known outputs where an output is missing in a table.

    `n_missing` is the number of these missing readings. `in_gap` is True if they are far from
    the output's other readings. Without missing readings, all other outputs are known.
    """

    pattern: Pattern
    n_missing: int = 0
    in_gap: bool = False


def table_pattern(
    observations: Observations, d: int, unit: Float[Array, " P"] | float
) -> TablePattern:
    """Return the most frequent pattern of known outputs where output d is missing.

    Distances are measured in the given unit of each input.
    """
    observed = observations.observed
    others = tuple(e for e in range(len(observed)) if e != d)
    missing = np.flatnonzero(~observed[d] & observed[list(others)].any(axis=0))
    if not len(missing):
        return TablePattern((d, others))
    known, rows = max(known_sets(observed[:, missing].T), key=lambda pattern: len(pattern[1]))
    at = missing[rows]
    if len(at) > MAX_MISSING:
        at = np.random.default_rng(0).choice(at, MAX_MISSING, replace=False)
    tree = observations.tree(unit, observed[d])
    distance = tree.query(observations.x[at] / unit)[0]
    in_gap = np.median(distance) > GAP_DISTANCE * typical_spacing(tree)
    return TablePattern((d, known), len(rows), bool(in_gap))


@dataclass(frozen=True)
class KnownOutputs:
    """Chooses the known outputs on which an output is regressed, according to a table.

    These are all known outputs, if the output and all of them were measured at ten sites or more,
    unless the set is large and rare in the table: otherwise, scattered missing readings would
    require a regression for nearly every row. Any other set is reduced to at most three outputs.
    """

    observed: Bool[
        Array, "D T"
    ]  # at the sites at which predictions of left-out readings are scored
    correlations: Float[Array, "D D"]  # absolute
    frequent: frozenset[tuple[int, ...]]  # sets that are known at many sites

    @classmethod
    def in_table(cls, observations: Observations, sites: Int[Array, " T"]) -> "KnownOutputs":
        """Count at `sites` which outputs were measured together."""
        observed = observations.observed
        sets = [known for known, rows in known_sets(observed.T) if len(rows) >= MIN_SITES]
        correlations = absolute_correlations(observations.y, observed)
        return cls(observed[:, sites], correlations, frozenset(sets))

    def reduce(self, pattern: Pattern) -> Pattern:
        """Return the pattern for the regression; without known outputs, if there can be none."""
        d, known = pattern
        complete = len(known) == len(self.observed) - 1
        small = complete or len(known) <= MAX_KNOWN or known in self.frequent
        if small and self._is_common((d, *known)):
            return pattern
        chosen: list[int] = []
        for e in sorted(known, key=lambda e: -self.correlations[d, e]):
            if len(chosen) < MAX_KNOWN and self._is_common((d, *chosen, e)):
                chosen.append(e)
        return d, tuple(sorted(chosen))

    def _is_common(self, outputs: tuple[int, ...]) -> bool:
        """Tell whether there are enough sites at which all of these outputs were measured."""
        return int(self.observed[list(outputs)].all(axis=0).sum()) >= MIN_COMMON_SITES


def patterns_in_sample(sample: Float[Array, "M D"]) -> dict[Pattern, Int[Array, " m"]]:
    """Group the outputs that are not in a sample by the outputs that are.

    >>> patterns = patterns_in_sample(np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan]]))
    >>> {key: rows.tolist() for key, rows in patterns.items()}
    {(1, (0,)): [0, 2]}
    """
    return {
        (d, known): rows
        for known, rows in known_sets(~np.isnan(sample))
        for d in range(sample.shape[1])
        if d not in known
    }


def patterns_left_out(
    observed: Bool[Array, "D M"], sets: Int[Array, "D M"]
) -> dict[Pattern, Int[Array, " m"]]:
    """Group the readings at M sites by output and by the known outputs in other sets."""
    patterns: dict[Pattern, Int[Array, " m"]] = {}
    for d in range(len(observed)):
        known = (observed & (sets != sets[d])).T
        known[~observed[d]] = False
        patterns |= {(d, others): rows for others, rows in known_sets(known)}
    return patterns


def absolute_correlations(
    y: Float[Array, "D N"], observed: Bool[Array, "D N"]
) -> Float[Array, "D D"]:
    """Return the absolute correlations of outputs at common sites; 0 with fewer than three.

    >>> y = np.array([[1.0, 2.0, 3.0, 9.0], [-1.0, -2.0, -3.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> observed = np.array([[True] * 4, [True] * 3 + [False], [True] + [False] * 3])
    >>> absolute_correlations(y, observed).round(2)[0]
    array([1., 1., 0.])
    """
    o = observed.astype(float)
    v = np.where(observed, y, 0.0)
    n = o @ o.T
    mean = (v @ o.T) / np.maximum(n, 1.0)  # of the first output, at common sites
    cov = v @ v.T - n * mean * mean.T
    variance = v**2 @ o.T - n * mean**2
    scale = np.sqrt(np.maximum(variance * variance.T, np.finfo(float).tiny))
    return np.where(n >= MIN_CORRELATION_SITES, np.abs(cov) / scale, 0.0)


def known_sets(known: Bool[Array, "M D"]) -> list[tuple[tuple[int, ...], Int[Array, " m"]]]:
    """Return each nonempty set of known outputs, with the rows in which exactly these are known."""
    order = np.lexsort(known.T[::-1])
    in_order = known[order]
    ends = np.flatnonzero((in_order[1:] != in_order[:-1]).any(axis=1)) + 1
    groups = [rows for rows in np.split(order, ends) if known[rows[:1]].any()]
    return [(tuple(np.flatnonzero(known[rows[0]]).tolist()), rows) for rows in groups]


def unknown_outputs(table_pattern: TablePattern, D: int) -> tuple[int, ...]:
    """Return the outputs that are not known, including the predicted one."""
    return tuple(d for d in range(D) if d not in table_pattern.pattern[1])
