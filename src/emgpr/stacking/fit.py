"""The weights of the candidates for every pattern of known outputs, fitted to left-out readings."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree

from emgpr.mixture_weights import gaussian_log_density, stacking_weights
from emgpr.neighbours import kd_tree
from emgpr.observations import Observations
from emgpr.parallel import thread_map
from emgpr.prediction import LMCModel, LMCPosterior
from emgpr.regression import FittedRegression, RegressionRows, fit_regression
from emgpr.regression.fit import FAR_READINGS, NEAR_READINGS
from emgpr.stacking.gaps import N_FOLDS, MadeGaps
from emgpr.stacking.locations import (
    location_unit,
    reading_tree,
    scaled_locations,
    typical_spacing,
)
from emgpr.stacking.patterns import (
    KnownOutputs,
    Pattern,
    TablePattern,
    table_pattern,
    unknown_outputs,
)
from emgpr.stacking.scores import LeftOutScores, Table
from emgpr.stacking.weights import CANDIDATES, CandidateWeights, without_negligible

Array = np.ndarray
Refit = Callable[[Observations], LMCModel]

MIN_READINGS = 10  # of an output; with fewer, there is no regression
MAX_READINGS = 500  # of a regression. Larger tables: TEST_READINGS, each with its neighbours
TEST_READINGS, NEIGHBOURS = 100, 4
INFLATION_READINGS = 5.0  # that a variance without inflation is worth
# Numbers of readings that the prior is worth for each candidate: near other readings of the output,
# and in gaps. A gap of the table can differ from the left-out blocks, so that neither the joint
# model nor the regression is used alone there, unless the other is clearly better.
NEAR_PRIOR, FAR_PRIOR = np.full(3, 1 / 3), np.array([0.3, 3.0, 3.0])
MAX_LOSS = 1.0  # a candidate whose mean log density is lower by more than this is not used


@dataclass(frozen=True)
class Stack:
    """Weights of the candidates: where nothing is known, and for every set of known outputs.

    `known` and `regressions` contain the patterns that were needed so far. If `fixed` is not
    None, it contains the weights of each output for all sets of known outputs.
    """

    n_sites: int  # number of training sites, which precede readings at new locations
    unknown: tuple[CandidateWeights, ...]
    kernel: str = "matern12"  # of the regressions' residual processes
    varying: bool = False  # whether coefficients vary with the location
    couples_outputs: bool = True  # whether the joint model is a candidate
    n_parameters: int = 0  # of the joint model
    known: dict[Pattern, CandidateWeights] = field(default_factory=dict)
    regressions: dict[Pattern, FittedRegression] = field(default_factory=dict)
    fixed: tuple[CandidateWeights | None, ...] = ()

    @property
    def switches(self) -> bool:
        """Whether one model predicts each output, as in files of earlier versions.

        Which model it is depends only on whether other outputs are known.
        """
        return bool(self.fixed) and all(found is not None for found in self.fixed)

    def reorder(self, columns: Int[Array, " D"]) -> "Stack":
        """Return the stack of a table in which output d has become column `columns[d]`."""

        def moved(pattern: Pattern) -> Pattern:
            d, known = pattern
            return int(columns[d]), tuple(sorted(int(columns[e]) for e in known))

        at = np.argsort(columns)
        return replace(
            self,
            unknown=tuple(self.unknown[d] for d in at),
            known={moved(pattern): found for pattern, found in self.known.items()},
            regressions={moved(pattern): found for pattern, found in self.regressions.items()},
            fixed=tuple(self.fixed[d] for d in at) if self.fixed else (),
        )

    def add(
        self,
        scores: LeftOutScores,
        pattern: Pattern,
        folds: Int[Array, " N"],
        own_far: Table,
        joint_far: Table | None = None,
    ) -> None:
        """Fit the weights of the candidates for one pattern.

        `own_far` and `joint_far` are predictions of readings from other folds. Without the latter,
        the joint model is not a candidate in gaps.
        """
        (d, known), table = pattern, scores.observations
        read = np.flatnonzero(table.observed[d])
        if len(read) < MIN_READINGS or table.constant[d]:
            self.known[pattern] = self.unknown[d]
            return
        x = scaled_locations(scores.posterior, d, self.n_sites)
        # Imputed values are smoother than readings, so that errors given them are too small.
        measured = table.observed[list(known)][:, read].all(axis=0)
        tree = reading_tree(scores.posterior, d, self.n_sites)
        chosen, scored = _regression_rows(tree, read, measured & np.isin(read, scores.sites))
        if scored.sum() < MIN_READINGS:
            self.known[pattern] = self.unknown[d]
            return
        rows = regression_rows(scores.posterior, pattern, x, chosen)
        found = fit_regression(
            self.kernel, rows, table.y[d, chosen], folds[chosen], scored, varying=self.varying
        )
        at, y = chosen[scored], table.y[d, chosen[scored]]
        near = [_at(scores.own_near, at, d), None, _scored(found.near, scored)]
        far = [_at(own_far, at, d), None, _scored(found.far, scored)]
        if self.couples_outputs:
            near[1] = scores.joint_given(pattern, at)
            far[1] = None if joint_far is None else _at(joint_far, at, d)
        distance = _distances_to_folds(x[read], folds[read], np.searchsorted(read, at))
        of_near = _weights(y, near, np.ones(3), scores.penalty, NEAR_READINGS, NEAR_PRIOR)
        self.regressions[pattern] = found.fitted  # before the weights, which refer to it
        self.known[pattern] = _near_and_in_gaps(of_near, typical_spacing(tree), y, far, distance)


def fit_stack(
    posterior: LMCPosterior,
    scores: LeftOutScores,
    *,
    kernel: str = "matern12",
    varying: bool = False,
    refit: Refit | None = None,
    not_stacked: Collection[int] = (),
) -> Stack:
    """Fit the weights where nothing is known, and for the most frequent pattern of each output.

    `refit` returns the joint model of other readings. The outputs in `not_stacked` are predicted by
    the joint model alone.
    """
    table, coupled = posterior.observations, scores.couples_outputs
    D = table.n_outputs
    outputs = [d for d in range(D) if d not in not_stacked]
    one = CandidateWeights.of_one("joint" if coupled else "own")
    unknown = [
        _where_nothing_is_known(scores, d) if coupled and d in outputs else one for d in range(D)
    ]

    def find_pattern(d: int) -> TablePattern:
        return table_pattern(table, d, location_unit(posterior, d, table.n_sites))

    patterns = list(thread_map(find_pattern, outputs if D > 1 else []))
    gaps = MadeGaps.in_table(posterior, patterns)
    models = []
    if coupled and refit is not None and gaps.folds:
        models = [refit(masked) for masked in gaps.masked(table)]
    folds = np.zeros((D, table.n_sites), int)
    of_patterns = list(thread_map(partial(gaps.of_pattern, posterior), patterns))
    for found, of_pattern in zip(patterns, of_patterns, strict=True):
        folds[found.pattern[0]] = of_pattern
    own_far = scores.own_far(folds)
    joint_far, nothing_known = dict[tuple[int, ...], Table](), dict[tuple[int, ...], Table]()
    for shift, (group, of_group) in enumerate(gaps.folds.items() if models else ()):
        in_order = [models[(fold + shift) % N_FOLDS] for fold in range(N_FOLDS)]
        joint_far[group] = scores.joint_far(in_order, of_group, group)
        nothing_known[group] = scores.joint_far(in_order, of_group, group, with_known=False)
    for found in patterns:
        d, group = found.pattern[0], unknown_outputs(found, D)
        if found.in_gap and group in nothing_known:
            unknown[d] = _nothing_known_in_gaps(
                scores, d, unknown[d], folds[d], own_far, nothing_known[group]
            )
    fixed = tuple(None if d in outputs else one for d in range(D))
    stack = Stack(
        table.n_sites, tuple(unknown), kernel, varying, coupled, scores.n_parameters, fixed=fixed
    )
    usable = KnownOutputs.in_table(table, scores.sites)
    for found in patterns:
        (d, _), group = found.pattern, unknown_outputs(found, D)
        pattern = usable.reduce(found.pattern)
        pattern = pattern if pattern[1] else found.pattern
        stack.add(scores, pattern, folds[d], own_far, joint_far.get(group))
    return stack


def regression_rows(
    posterior: LMCPosterior,
    pattern: Pattern,
    x: Float[Array, "N P"],
    sites: Int[Array, " n"],
) -> RegressionRows:
    """Return the rows of a regression at sites; missing known outputs are imputed."""
    known, table = np.array(pattern[1]), posterior.observations
    if table.observed[np.ix_(known, sites)].all():
        return RegressionRows.build(x[sites], table.y[np.ix_(known, sites)].T)
    values, variances = table.cached("imputed", lambda: _Imputed.none(table)).at(posterior, sites)
    return RegressionRows.build(x[sites], values[:, known], variances[:, known])


@dataclass(frozen=True)
class _Imputed:
    """The table with missing values predicted by the own processes, at the sites asked for so far.

    The arrays are filled when sites are asked for, since regressions of large tables use few sites.
    Threads can share them: a site is marked after its rows have been written.
    """

    values: Float[Array, "N D"]
    variances: Float[Array, "N D"]
    imputed: Bool[Array, " N"]

    @classmethod
    def none(cls, table: Observations) -> "_Imputed":
        """Return the table before anything is imputed."""
        return cls(table.table, np.zeros(table.table.shape), np.all(table.observed, axis=0))

    def at(
        self, posterior: LMCPosterior, sites: Int[Array, " n"]
    ) -> tuple[Float[Array, "n D"], Float[Array, "n D"]]:
        """Return values and variances at sites."""
        new = np.unique(sites[~self.imputed[sites]])
        if len(new):
            table = posterior.observations
            mean, cov = posterior.without_transfer().predict(table.x[new]).moments()
            missing = ~table.observed[:, new].T
            self.values[new] = np.where(missing, mean, self.values[new])
            self.variances[new] = np.where(missing, np.einsum("mdd->md", cov), 0.0)
            self.imputed[new] = True
        return self.values[sites], self.variances[sites]


def _regression_rows(
    tree: KDTree, read: Int[Array, " n"], tested: Bool[Array, " n"]
) -> tuple[Int[Array, " m"], Bool[Array, " m"]]:
    """Return the readings of a regression, and which of them are scored."""
    if len(read) <= MAX_READINGS:
        return read, tested
    some = np.flatnonzero(tested)[:TEST_READINGS]
    nearest = tree.query(tree.data[some], k=range(1, NEIGHBOURS + 2))[1]
    chosen = np.unique(np.concatenate([some, nearest.ravel()]))
    return read[chosen], np.isin(chosen, some)


def _where_nothing_is_known(scores: LeftOutScores, d: int) -> CandidateWeights:
    """Fit the weights of an output's own process and the joint model at other sites."""
    table = scores.observations
    at = scores.sites[table.observed[d, scores.sites]]
    if table.constant[d] or not len(at):
        return CandidateWeights.of_one("joint")
    near = [_at(scores.own_near, at, d), _at(scores.joint_near, at, d), None]
    weights, found = _weights(
        table.y[d, at], near, np.ones(3), scores.penalty, NEAR_READINGS, NEAR_PRIOR
    )
    return CandidateWeights(weights, weights, log_scores=np.stack([found, np.full(3, np.nan)]))


def _nothing_known_in_gaps(
    scores: LeftOutScores,
    d: int,
    found: CandidateWeights,
    folds: Int[Array, " N"],
    own_far: Table,
    joint_far: Table,
) -> CandidateWeights:
    """Add weights for gaps in an output, at locations between those of the other outputs."""
    table = scores.observations
    x = scaled_locations(scores.posterior, d, table.n_sites)
    read = np.flatnonzero(table.observed[d])
    at = read[np.isin(read, scores.sites)]
    if len(at) < MIN_READINGS or table.constant[d]:
        return found
    distance = _distances_to_folds(x[read], folds[read], np.searchsorted(read, at))
    spacing = typical_spacing(reading_tree(scores.posterior, d, table.n_sites))
    far = [_at(own_far, at, d), _at(joint_far, at, d), None]
    near = found.near, found.log_scores[0]
    return _near_and_in_gaps(near, spacing, table.y[d, at], far, distance)


def _near_and_in_gaps(
    near: tuple[Float[Array, " 3"], Float[Array, " 3"]],
    spacing: float,
    y: Float[Array, " n"],
    far: Sequence[tuple[Array, Array] | None],
    distance: Float[Array, " n"],
) -> CandidateWeights:
    """Return weights and log densities near other readings, together with those in gaps.

    The latter are fitted to readings predicted from those in other folds, at this distance.
    """
    # At the edges of a gap, the own process is as good as near other readings.
    deep = distance >= np.median(distance)
    far = [None if moments is None else _scored(moments, deep) for moments in far]
    inflation = np.array([_inflation(y[deep], moments) for moments in far])
    inflation[CANDIDATES.index("regression")] = 1.0
    weights, log_scores = _weights(y[deep], far, inflation, 0.0, FAR_READINGS, FAR_PRIOR)
    distances = spacing, float(np.median(distance[deep]))
    return CandidateWeights(near[0], weights, distances, inflation, np.stack([near[1], log_scores]))


def _weights(
    y: Float[Array, " n"],
    candidates: Sequence[tuple[Array, Array] | None],
    inflation: Float[Array, " 3"],
    penalty: float,
    n_readings: float,
    prior: Float[Array, " 3"],
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Return weights and mean log densities of the candidates; None means no candidate."""
    weights, means = np.zeros(3), np.full(3, np.nan)
    used = [c for c, moments in enumerate(candidates) if moments is not None]
    density = np.column_stack(
        [
            gaussian_log_density(y, moments[0], inflation[c] * moments[1])
            for c, moments in enumerate(candidates)
            if moments is not None
        ]
    )
    density[:, [CANDIDATES[c] == "joint" for c in used]] -= penalty
    means[used] = density.mean(axis=0)
    # The prior alone must not give a weight to a candidate that clearly predicts badly.
    good = ~(means[used] < means[used].max() - MAX_LOSS)
    found = stacking_weights(density[:, good], prior[used][good], n_readings)
    weights[np.array(used)[good]] = without_negligible(found)
    return weights, means


def _inflation(y: Float[Array, " n"], moments: tuple[Array, Array] | None) -> float:
    """Return the factor by which the variances of left-out readings are too small, at least 1."""
    if moments is None or not len(y):
        return 1.0
    ratio = float(np.mean((y - moments[0]) ** 2 / moments[1]))
    n, prior = FAR_READINGS, INFLATION_READINGS
    return max(1.0, (n * ratio + prior) / (n + prior))


def _distances_to_folds(
    x: Float[Array, "n P"], folds: Int[Array, " n"], rows: Int[Array, " m"]
) -> Float[Array, " m"]:
    """Return the distance from some rows to the nearest one in another fold; 0 if there is none."""
    distance = np.zeros(len(rows))
    tested = np.unique(folds[rows]).tolist()
    trees = list(thread_map(lambda fold: kd_tree(x[folds != fold]), tested))
    for fold, others in zip(tested, trees, strict=True):
        inside = folds[rows] == fold
        if others.n:
            distance[inside] = others.query(x[rows[inside]])[0]
    return distance


def _at(table: Table, sites: Int[Array, " n"], d: int) -> tuple[Array, Array]:
    return table[0][sites, d], table[1][sites, d]


def _scored(moments: tuple[Array, Array], scored: Bool[Array, " n"]) -> tuple[Array, Array]:
    return moments[0][scored], moments[1][scored]
