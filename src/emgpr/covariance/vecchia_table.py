"""A table whose likelihood is evaluated by Vecchia's approximation, in chunks of blocks.

Blocks are independent of each other, so that chunks of them are evaluated in several threads. If
there are worker processes, each of them evaluates parts of the table, with several chunks each.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import panel_size, to_device_of, to_numpy
from emgpr.checkpoint import NO_CHECKPOINT
from emgpr.covariance.vecchia import (
    add_weight_curvature,
    block_information,
    block_log_likelihood,
    derivative_by_coregionalization,
)
from emgpr.kernel_stack import KernelStack
from emgpr.neighbours import earlier_neighbours, kd_tree, spread_order
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map, thread_map, uses_workers

Sums = tuple[Any, ...]  # NumPy arrays or tensors, summed over blocks
SumChunk = Callable[[Observations, KernelStack], Sums]

MAX_CACHED_VALUES = 3e7  # distances and readings of all blocks that are stored between evaluations
PANELS_PER_CHUNK = 2  # elements of the covariances in a chunk, relative to `panel_size`
CHUNKS_PER_PART = 64  # in a part for a worker process; evaluating them takes about half a second
MIN_THREADED_CHUNKS = 16  # fewer chunks are evaluated one after another
MIN_SORTED_BLOCKS = 5000  # so many blocks are sorted by location, so that chunks share sites


class VecchiaFit(NamedTuple):
    """The log-likelihood of a table and its derivatives."""

    value: float
    of_theta: Float[np.ndarray, " t"]
    of_weights: Float[np.ndarray, "Q D k"]
    of_noise: Float[np.ndarray, "D D"]


@dataclass(frozen=True)
class VecchiaTable:
    """Readings at sites, each of which is conditioned on its nearest earlier sites.

    Row i of `blocks` contains the neighbours of a site and, last, the site itself; −1 means that
    there is no neighbour.
    """

    observations: Observations
    kernels: tuple[Kernel, ...]  # their hyper-parameters are passed to each evaluation
    blocks: Int[np.ndarray, "N s"]
    execution: Execution = DEFAULT_EXECUTION  # whether there are worker processes
    _cache: dict[int, tuple[Observations, KernelStack]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_sites(
        cls,
        observations: Observations,
        kernels: Sequence[Kernel],
        n_neighbours: int,
        scale: Float[np.ndarray, " P"] | float = 1.0,
        sites: Int[np.ndarray, " n"] | None = None,
        *,
        n_blocks: int | None = None,
        workers: int = 1,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> "VecchiaTable":
        """Order the sites and find their neighbours by the distances of x / scale.

        With `n_blocks`, only the blocks of this many sites, chosen at random, are made.
        """
        x = observations.x / scale
        order = observations.spread_order(scale) if sites is None else sites[spread_order(x[sites])]
        rows = np.arange(len(order))
        if n_blocks is not None and n_blocks < len(order):
            rows = np.sort(np.random.default_rng(0).choice(rows, n_blocks, replace=False))
        nearest = earlier_neighbours(x[order], n_neighbours, rows, workers)
        neighbours = np.append(order, -1)[nearest]
        blocks = np.column_stack([neighbours, order[rows]])
        if len(blocks) >= MIN_SORTED_BLOCKS:
            blocks = blocks[kd_tree(x[blocks[:, -1]]).indices]
        return cls(observations.to(execution.device), tuple(kernels), blocks, execution)

    def subset(self, n: int, rng: np.random.Generator) -> "VecchiaTable":
        """Return a table with n randomly chosen blocks."""
        chosen = np.sort(rng.choice(len(self.blocks), min(n, len(self.blocks)), replace=False))
        table = VecchiaTable(self.observations, self.kernels, self.blocks[chosen], self.execution)
        vars(table)["_kernel_stack"] = self._kernel_stack  # the kernels are not compared again
        return table

    @property
    def observations_constant(self) -> Bool[np.ndarray, " D"]:
        """Mask of the outputs whose readings are all equal."""
        return np.asarray(to_numpy(self.observations.constant))

    def sample_sites(self, n: int) -> Float[np.ndarray, "m P"]:
        """Return the locations of at most n sites, evenly chosen from the order of the blocks."""
        last = self.blocks[:, -1]
        chosen = last[np.linspace(0, len(last) - 1, min(n, len(last)), dtype=int)]
        return np.asarray(to_numpy(self.observations.x)[chosen])

    @property
    def n_readings(self) -> int:
        """Number of readings at the last sites of all blocks, without constant outputs.

        Tolerances are relative to it. A constant output must not change those of other outputs.
        """
        observed = to_numpy(self.observations.observed)[:, self.blocks[:, -1]]
        return max(1, int(observed[~self.observations_constant].sum()))

    def evaluate(
        self,
        theta: Float[np.ndarray, " t"],
        W: Float[np.ndarray, "Q D k"],
        noise: Float[np.ndarray, "D D"],
    ) -> VecchiaFit:
        """Return the log-likelihood of all blocks and its derivatives."""
        sums = self._sum_over_blocks(partial(_likelihood_of_chunk, theta, W, noise))
        value, *derivatives = map(to_numpy, sums)
        return VecchiaFit(float(value), *derivatives)

    def site_values(
        self,
        theta: Float[np.ndarray, " t"],
        W: Float[np.ndarray, "Q D k"],
        noise: Float[np.ndarray, "D D"],
    ) -> Float[np.ndarray, " N"]:
        """Return the log-likelihood of the last site of each block."""
        x = self.observations.x
        W, noise = to_device_of(W, x), to_device_of(noise, x)
        parts = [
            to_numpy(block_log_likelihood(blocks, W, noise, kernels.evaluate(theta)[0]).value)
            for blocks, kernels in self._chunks()
        ]
        return np.concatenate(parts)

    def information(
        self,
        theta: Float[np.ndarray, " t"],
        W: Float[np.ndarray, "Q D k"],
        noise: Float[np.ndarray, "D D"],
        noise_basis: Float[np.ndarray, "c D D"],
    ) -> Float[np.ndarray, "p p"]:
        """Return the information matrix of kernel parameters, noise parameters and weights.

        `noise_basis` contains the derivative of Σ with respect to each noise parameter.
        """
        compute = partial(_information_of_chunk, theta, W, noise, noise_basis, False)
        (total,) = self._sum_over_blocks(compute)
        return np.asarray(to_numpy(total))

    def curvature(
        self,
        theta: Float[np.ndarray, " t"],
        W: Float[np.ndarray, "Q D k"],
        noise: Float[np.ndarray, "D D"],
        noise_basis: Float[np.ndarray, "c D D"],
    ) -> Float[np.ndarray, "p p"]:
        """Return the information matrix plus the curvature of B_q = W_q W_qᵀ, for a search."""
        compute = partial(_information_of_chunk, theta, W, noise, noise_basis, True)
        information, of_B = map(to_numpy, self._sum_over_blocks(compute))
        return add_weight_curvature(information, of_B, W.shape[-1])

    def _sum_over_blocks(self, compute: SumChunk) -> Sums:
        """Return the sum of the results of a function for all chunks."""
        if len(self._chunk_starts) > CHUNKS_PER_PART and uses_workers(self.execution):
            quiet = replace(self.execution.quiet(), checkpoint=NO_CHECKPOINT)
            return _add(parallel_map(partial(_sum_over_part, compute), self._parts, quiet))
        return _add(_sum_over_chunks(self, compute, starts) for starts in self._part_starts)

    def _chunks(self) -> Iterator[tuple[Observations, KernelStack]]:
        """Yield all chunks of blocks, each with its kernels."""
        return map(self._chunk, self._chunk_starts)

    def _chunk(self, start: int) -> tuple[Observations, KernelStack]:
        """Return the blocks of a chunk and its kernels; small tables keep them for reuse."""
        chunk = self._cache.get(start)
        if chunk is None:
            tables = self.observations.at(self.blocks[start : start + self._chunk_size])
            chunk = tables, self._kernel_stack.at(tables.x)
            (N, s), (D, P) = self.blocks.shape, (tables.n_outputs, tables.x.shape[-1])
            if N * (s * s * (P + 1) + s * (D + P)) <= MAX_CACHED_VALUES:
                self._cache[start] = chunk
        return chunk

    @cached_property
    def _kernel_stack(self) -> KernelStack:
        return KernelStack(self.kernels, self.observations.x[:1])

    @property
    def _chunk_size(self) -> int:
        rows = self.blocks.shape[1] * self.observations.n_outputs
        return max(1, int(PANELS_PER_CHUNK * panel_size(self.observations.y)) // rows**2)

    @property
    def _chunk_starts(self) -> range:
        return range(0, len(self.blocks), self._chunk_size)

    @property
    def _part_starts(self) -> list[range]:
        """The first blocks of the chunks of each part."""
        starts = self._chunk_starts
        return [starts[i : i + CHUNKS_PER_PART] for i in range(0, len(starts), CHUNKS_PER_PART)]

    @cached_property
    def _parts(self) -> list["VecchiaTable"]:
        """The table in parts for worker processes, each with only the sites in its blocks."""
        size, parts = CHUNKS_PER_PART * self._chunk_size, []
        for starts in self._part_starts:
            blocks = self.blocks[starts.start : starts.start + size]
            sites = np.unique(blocks[blocks >= 0])
            local = np.where(blocks >= 0, np.searchsorted(sites, blocks), -1).astype(np.int32)
            parts.append(VecchiaTable(self.observations.at(sites), self.kernels, local))
        return parts


def _sum_over_part(compute: SumChunk, part: VecchiaTable) -> Sums:
    return _sum_over_chunks(part, compute, part._chunk_starts)


def _sum_over_chunks(table: VecchiaTable, compute: SumChunk, starts: range) -> Sums:
    """Return the sum of the results for some chunks, which are computed in threads on a CPU."""

    def compute_chunk(start: int) -> Sums:
        return compute(*table._chunk(start))

    threads = isinstance(table.observations.y, np.ndarray) and len(starts) >= MIN_THREADED_CHUNKS
    return _add((thread_map if threads else map)(compute_chunk, starts))


def _add(sums: Iterable[Sums]) -> Sums:
    return reduce(lambda one, other: tuple(map(add, one, other)), sums)


def _likelihood_of_chunk(
    theta: Float[np.ndarray, " t"],
    W: Float[np.ndarray, "Q D k"],
    noise: Float[np.ndarray, "D D"],
    blocks: Observations,
    kernels: KernelStack,
) -> Sums:
    """Return the log-likelihood of a chunk, and its derivatives in the order of `VecchiaFit`."""
    W, noise = to_device_of(W, blocks.x), to_device_of(noise, blocks.x)
    K, pullback = kernels.evaluate(theta)
    fit = block_log_likelihood(blocks, W, noise, K)
    return fit.value.sum(), pullback(fit.of_kernels).sum(0), fit.of_weights, fit.of_noise


def _information_of_chunk(
    theta: Float[np.ndarray, " t"],
    W: Float[np.ndarray, "Q D k"],
    noise: Float[np.ndarray, "D D"],
    noise_basis: Float[np.ndarray, "c D D"],
    with_curvature: bool,
    blocks: Observations,
    kernels: KernelStack,
) -> Sums:
    """Return the information matrix of a chunk and, optionally, the derivative by each B_q."""
    W, noise, basis = (to_device_of(part, blocks.x) for part in (W, noise, noise_basis))
    K, _ = kernels.evaluate(theta)
    fit = block_log_likelihood(blocks, W, noise, K)
    F = block_information(fit, blocks, W, K, kernels.derivatives(theta, K), basis)
    return (F, derivative_by_coregionalization(fit, K)) if with_curvature else (F,)
