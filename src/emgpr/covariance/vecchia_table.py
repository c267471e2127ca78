"""A table whose likelihood is evaluated by Vecchia's approximation, in chunks of blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import panel_size, to_device_of, to_numpy
from emgpr.covariance.vecchia import block_information, block_log_likelihood
from emgpr.kernel_stack import KernelStack
from emgpr.neighbours import earlier_neighbours, spread_order
from emgpr.observations import Observations

MAX_CACHED_VALUES = 3e7  # distances and readings of all blocks that are stored between evaluations
PANELS_PER_CHUNK = 2  # elements of the covariances in a chunk, relative to `panel_size`


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
        device: str = "cpu",
        workers: int = 1,
    ) -> "VecchiaTable":
        """Order the sites and find their neighbours by the distances of x / scale.

        With `n_blocks`, only the blocks of this many sites, chosen at random, are made.
        """
        x = to_numpy(observations.x) / scale
        order = np.arange(len(x)) if sites is None else sites
        order = order[spread_order(x[order])]
        rows = np.arange(len(order))
        if n_blocks is not None and n_blocks < len(order):
            rows = np.sort(np.random.default_rng(0).choice(rows, n_blocks, replace=False))
        nearest = earlier_neighbours(x[order], n_neighbours, rows, workers)
        neighbours = np.where(nearest >= 0, order[nearest], -1)
        blocks = np.column_stack([neighbours, order[rows]])
        return cls(observations.to(device), tuple(kernels), blocks)

    def subset(self, n: int, rng: np.random.Generator) -> "VecchiaTable":
        """Return a table with n randomly chosen blocks."""
        chosen = np.sort(rng.choice(len(self.blocks), min(n, len(self.blocks)), replace=False))
        return VecchiaTable(self.observations, self.kernels, self.blocks[chosen])

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
        """Number of readings at the last sites of all blocks."""
        return int(to_numpy(self.observations.observed)[:, self.blocks[:, -1]].sum())

    def evaluate(
        self,
        theta: Float[np.ndarray, " t"],
        W: Float[np.ndarray, "Q D k"],
        noise: Float[np.ndarray, "D D"],
    ) -> VecchiaFit:
        """Return the log-likelihood of all blocks and its derivatives."""
        x = self.observations.x
        W, noise = to_device_of(W, x), to_device_of(noise, x)
        value: Any = 0.0
        of_theta: Any = 0.0
        of_W: Any = 0.0
        of_noise: Any = 0.0
        for blocks, kernels in self._chunks():
            K, pullback = kernels.evaluate(theta)
            fit = block_log_likelihood(blocks, W, noise, K)
            value = value + fit.value.sum()
            of_theta = of_theta + pullback(fit.of_kernels).sum(0)
            of_W, of_noise = of_W + fit.of_weights, of_noise + fit.of_noise
        return VecchiaFit(float(value), *(to_numpy(part) for part in (of_theta, of_W, of_noise)))

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
        x = self.observations.x
        W, noise, basis = (to_device_of(part, x) for part in (W, noise, noise_basis))
        total: Any = 0.0
        for blocks, kernels in self._chunks():
            K, _ = kernels.evaluate(theta)
            fit = block_log_likelihood(blocks, W, noise, K)
            derivatives = kernels.derivatives(theta, K)
            total = total + block_information(fit, blocks, W, K, derivatives, basis)
        return np.asarray(to_numpy(total))

    def _chunks(self) -> Iterator[tuple[Observations, KernelStack]]:
        """Yield the blocks in chunks, each with its kernels; small tables keep them for reuse."""
        N, s = self.blocks.shape
        D, P = self.observations.n_outputs, self.observations.x.shape[-1]
        size = max(1, int(PANELS_PER_CHUNK * panel_size(self.observations.y)) // (s * D) ** 2)
        keep = N * (s * s * (P + 1) + s * (D + P)) <= MAX_CACHED_VALUES
        stack: KernelStack | None = None
        for start in range(0, N, size):
            chunk = self._cache.get(start)
            if chunk is None:
                tables = self.observations.at(self.blocks[start : start + size])
                stack = KernelStack(self.kernels, tables.x) if stack is None else stack.at(tables.x)
                chunk = tables, stack
                if keep:
                    self._cache[start] = chunk
            yield chunk
