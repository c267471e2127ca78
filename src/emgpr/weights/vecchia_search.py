"""Searches that maximise Vecchia's likelihood with the priors, in three stages.

1. From each starting point, a few iterations with few neighbours, on some of the sites. The other
   sites are held out. Of the starting points whose held-out log density is not clearly below the
   highest, the one with the highest posterior density is kept.
2. From its result, iterations with few neighbours on more sites.
3. Iterations with all neighbours. With many sites, they use growing parts of the blocks; the last
   iterations use all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from emgpr.arrays import allowed_threads
from emgpr.checkpoint import digest
from emgpr.covariance import VecchiaTable
from emgpr.kernels import distance_scales
from emgpr.metrics import paired_difference
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.progress import iteration_progress
from emgpr.scoring import (
    MAX_SCORING,
    ScoringState,
    evaluate_start,
    maximise_by_scoring,
)
from emgpr.weights.joint import RefinedModel
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.posterior_density import PosteriorDensity

Array = np.ndarray
MakeVector = Callable[[LMCParameters], ParameterVector]

# Neighbours of a site: FEW_NEIGHBOURS or, with many outputs, such that a block has about MAX_ROWS
# rows, but at least MIN_NEIGHBOURS. With up to SMALL_TABLE_SITES, up to MANY_NEIGHBOURS, as long as
# the Cholesky factors of all blocks need at most MAX_OPERATIONS.
MANY_NEIGHBOURS, FEW_NEIGHBOURS, MIN_NEIGHBOURS, MAX_ROWS = 30, 15, 5, 128
SMALL_TABLE_SITES, MAX_OPERATIONS = 4000, 4e8
COARSE_NEIGHBOURS = 6  # in the first two stages
FIRST_SITES, COARSE_BLOCKS = 400, 2000  # largest numbers in the first and in the second stage
LATE_DAMPING = 0.1  # in the third stage, which starts close to the maximum
MAX_FINAL_BLOCKS = 20_000  # from which the information at the end is computed
LATE_SCORING = 3  # iterations of the third stage that use the information matrix only
MIN_LATE_ITERATIONS = 2  # on all blocks, if the third stage begins with parts of them
GROWTH = 8  # factor by which the number of blocks grows in the third stage
HELD_OUT = 5  # one in this many sites is held out in the first stage
MIN_HELD_OUT = 8  # with fewer held-out sites, the posterior density alone is compared
FIRST_ITERATIONS = 10
NEW_SHARE = 0.4  # of a new information matrix in the average, if it is computed from some blocks
# Stop if the expected gain for each reading is less: in the three stages.
FIRST_TOLERANCE, COARSE_TOLERANCE, TOLERANCE = 2e-2, 1.5e-3, 7e-4
# With few sites, further iterations are cheap, and the parameters change the predictions more.
FEW_SITES, FEW_SITES_TOLERANCE = 100, 1e-5


def automatic_neighbours(N: int, D: int) -> int:
    """Return the number of neighbours for a table with N sites and D outputs.

    >>> [automatic_neighbours(*size) for size in ((30, 3), (359, 3), (10**6, 3), (606, 30))]
    [29, 30, 15, 5]
    """
    few = max(MIN_NEIGHBOURS, min(FEW_NEIGHBOURS, round(MAX_ROWS / D) - 1))
    if N <= SMALL_TABLE_SITES:
        affordable = int((3 * MAX_OPERATIONS / max(N, 1)) ** (1 / 3) / D) - 1
        few = max(few, min(MANY_NEIGHBOURS, affordable))
    return max(0, min(N - 1, few))


@dataclass(frozen=True)
class JointFit:
    """The result of the joint optimisation."""

    parameters: LMCParameters
    density: PosteriorDensity
    result: ScoringState
    values: list[float]  # log posterior density at the start of the last stage and after each step
    # At the end, including the curvature of the priors; None if it is not needed.
    information: Float[Array, "p p"] | None


@dataclass(frozen=True)
class VecchiaSearch:
    """The table and the settings of a joint optimisation."""

    observations: Observations
    make_vector: MakeVector
    weak_prior: bool
    max_iter: int
    with_information: bool
    execution: Execution

    @classmethod
    def around(
        cls,
        observations: Observations,
        fitted: RefinedModel,
        weak_prior: bool,
        max_iter: int,
        execution: Execution,
    ) -> "VecchiaSearch":
        """Return a search with the bounds of one that has ended, for a model with one member."""
        vector = fitted.vector
        assert vector is not None

        def make_vector(parameters: LMCParameters) -> ParameterVector:
            return replace(vector, start=parameters)

        return cls(observations, make_vector, weak_prior, max_iter, False, execution)

    def density(
        self,
        parameters: LMCParameters,
        n_neighbours: int,
        sites: Int[Array, " n"] | None = None,
        n_blocks: int | None = None,
    ) -> PosteriorDensity:
        """Return the log posterior density given the readings at these sites (default: all).

        With `n_blocks`, the likelihood is computed from this many blocks.
        """
        N = self.observations.n_sites
        table = VecchiaTable.from_sites(
            self.observations,
            parameters.kernels,
            n_neighbours,
            distance_scales(parameters.kernels, self.observations.x.shape[1]),
            sites,
            n_blocks=n_blocks,
            workers=allowed_threads() if N > COARSE_BLOCKS else 1,
            execution=self.execution,
        )
        growth = (N if sites is None else len(sites)) / len(table.blocks)
        variances = output_variances(self.observations)
        vector = self.make_vector(parameters)
        return PosteriorDensity(table, vector, self.weak_prior, variances, growth)

    def run(
        self,
        density: PosteriorDensity,
        parameters: LMCParameters,
        tolerance: float,
        label: str,
        *,
        max_iter: int | None = None,
        min_iter: int = 0,
        damping: float = 1.0,
        n_scoring: int = MAX_SCORING,
    ) -> tuple[ScoringState, list[float]]:
        """Maximise a log posterior density; also return its values after each step."""
        vector, checkpoint = density.vector, self.execution.checkpoint
        x0 = vector.pack(parameters, parameters.W)
        max_iter = self.max_iter if max_iter is None else min(max_iter, self.max_iter)
        name, resume, values = "", None, []
        if checkpoint.path is not None:
            key = (x0, density.table.blocks, vector.start.kernels, vector.start.free, tolerance)
            name = f"Joint optimisation: {label} {digest(*key, max_iter, vector.noise)}"
            resume, values = checkpoint.find(name) or (None, [])
        bounds = vector.bounds_around(x0)
        if resume is None:
            resume = evaluate_start(
                density, density.curvature, x0, bounds=bounds, damping=damping
            )  # fmt: skip
            values = [resume.value]
        threshold = tolerance * density.n_readings
        label = f"Joint optimisation: {label}"
        with iteration_progress(label, max_iter, threshold, self.execution.verbose) as show:

            def record(state: ScoringState) -> None:
                values.append(state.value)
                show(values)
                if checkpoint.path is not None and checkpoint.due:
                    checkpoint.keep(name, (state, values))

            result = maximise_by_scoring(
                density, density.curvature, x0, bounds=bounds, scale=density.n_readings,
                tolerance=tolerance, max_iter=max_iter, min_iter=min_iter, n_scoring=n_scoring,
                new_share=NEW_SHARE if density.n_curvature_blocks else 1.0, callback=record,
                initial_state=resume,
            )  # fmt: skip
        if checkpoint.path is not None:
            checkpoint.keep(name, (result, values))
            checkpoint.flush()
        return result, values

    def choose(self, points: dict[str, LMCParameters], few: int) -> LMCParameters:
        """Run the first stage; return the parameters reached from the best starting point."""
        sites = self.observations.pseudo_random_order[:FIRST_SITES]
        n_held_out = len(sites) // HELD_OUT
        held_out, known = np.sort(sites[:n_held_out]), np.sort(sites[n_held_out:])
        if n_held_out < MIN_HELD_OUT:
            held_out, known = held_out[:0], np.sort(sites)
        first = next(iter(points.values()))
        ends, values, scores = {}, {}, {}
        for name, given in points.items():
            density = self.density(given, few, known)
            point = given if given is first else _clip(density, given)
            result, _ = self.run(
                density, point, FIRST_TOLERANCE, f"from {name}", max_iter=FIRST_ITERATIONS
            )
            ends[name] = unpack(density, result.x)
            values[name] = result.value
            scores[name] = self._held_out_density(ends[name], held_out, known, few)
        near = list(points)
        if len(held_out):
            best = max(scores, key=lambda name: scores[name].sum())
            losses = {name: paired_difference(scores[best], scores[name]) for name in points}
            near = [name for name, loss in losses.items() if loss.mean <= 2 * loss.standard_error]
        chosen = max(near, key=lambda name: values[name])
        return ends[chosen]

    def _held_out_density(
        self,
        parameters: LMCParameters,
        held_out: Int[Array, " m"],
        known: Int[Array, " n"],
        few: int,
    ) -> Float[Array, " m"]:
        """Return the log density of the readings at each held-out site given its neighbours."""
        if not len(held_out):
            return np.zeros(0)
        x = self.observations.x / distance_scales(parameters.kernels, self.observations.x.shape[1])
        nearest = KDTree(x[known]).query(x[held_out], k=range(1, min(few, len(known)) + 1))[1]
        blocks = np.column_stack([known[nearest], held_out])
        table = VecchiaTable(self.observations, tuple(parameters.kernels), blocks)
        theta = np.concatenate([kernel.theta for kernel in parameters.kernels])
        return table.site_values(theta, parameters.W, parameters.noise)

    def improve(self, parameters: LMCParameters, few: int) -> LMCParameters:
        """Run the second stage; return the parameters reached."""
        density = self.density(parameters, few, n_blocks=COARSE_BLOCKS)
        result, _ = self.run(density, parameters, COARSE_TOLERANCE, "few neighbours")
        return unpack(density, result.x)

    def finish(self, parameters: LMCParameters, n_neighbours: int) -> JointFit:
        """Run the third stage, on growing parts of the blocks."""
        N, n = self.observations.n_sites, COARSE_BLOCKS
        while n * 2 < N:
            density = self.density(parameters, n_neighbours, n_blocks=n)
            result, _ = self.run(
                density, parameters, TOLERANCE, f"{n} of {N} sites", damping=LATE_DAMPING
            )
            parameters, n = unpack(density, result.x), n * GROWTH
        density = self.density(parameters, n_neighbours)
        result, values = self.run(
            density,
            parameters,
            TOLERANCE if N > FEW_SITES else FEW_SITES_TOLERANCE,
            "all sites",
            min_iter=MIN_LATE_ITERATIONS if n > COARSE_BLOCKS else 0,
            damping=LATE_DAMPING,
            n_scoring=LATE_SCORING,
        )
        information = None
        if self.with_information:
            information = information_at_end(density, result.x)
        return JointFit(unpack(density, result.x), density, result, values, information)


def unpack(density: PosteriorDensity, x: Float[Array, " p"]) -> LMCParameters:
    """Return the parameters that a vector represents."""
    parameters, W = density.vector.unpack(x, density.vector.start.W)
    return replace(parameters, W=W)


def information_at_end(density: PosteriorDensity, x: Float[Array, " p"]) -> Float[Array, "p p"]:
    """Return the information matrix at the end of a search."""
    return density.on_subset(MAX_FINAL_BLOCKS, np.random.default_rng(0)).information(x)


def _clip(density: PosteriorDensity, parameters: LMCParameters) -> LMCParameters:
    """Move parameters inside their bounds."""
    vector = density.vector
    x, n = vector.pack(parameters, parameters.W), len(vector.bounds)
    x[:n] = np.clip(x[:n], *vector.bounds.T)
    return unpack(density, x)
