"""Step 1 with Vecchia's likelihood of a limited number of readings, each given its neighbours."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance import VecchiaTable
from emgpr.latents.base import Work
from emgpr.latents.maximum_likelihood import LikelihoodLearner, search_work, typical_evaluations
from emgpr.latents.search_space import column_scales
from emgpr.observations import Observations
from emgpr.optimize import Objective

Array = np.ndarray


@dataclass
class Vecchia(LikelihoodLearner):
    """Learner that maximises Vecchia's likelihood, in which readings depend on a few neighbours.

    The readings are put in an order, and each is conditioned on its nearest earlier readings. If
    there are more than `n_sites` readings, the likelihoods of this many of them, chosen at random,
    are multiplied.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 60, 400)[:, None]
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> latent = Vecchia().learn(x, y, RBF())
    >>> 0.8 < latent.noise**0.5 / 0.1 < 1.25
    True
    """

    n_neighbours: int = 20
    n_sites: int = 2000  # maximum number of readings whose likelihoods are multiplied

    def objective(
        self, table: Observations, kernel: Kernel, outputs: Int[Array, " m"], device: str = "cpu"
    ) -> Objective:
        """Return the objective: Vecchia's negative log-likelihood of the readings of an output."""
        blocks = self._blocks(table, kernel)
        growth = table.n_sites / len(blocks)
        tables = {
            d: VecchiaTable(table.select_outputs(np.array([d])).to(device), (kernel,), blocks)
            for d in set(outputs.tolist())
        }
        W = np.ones((1, 1, 1))

        def objective(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
            values, gradients = np.empty(len(params)), np.empty(params.shape)
            for i, (row, d) in enumerate(zip(params, outputs[which].tolist(), strict=True)):
                noise = np.exp(row[-1:])[None]
                fit = tables[d].evaluate(row[:-1], W, noise)
                values[i] = -growth * fit.value
                gradients[i] = -growth * np.append(fit.of_theta, fit.of_noise * noise)
            return values, gradients

        return objective

    def prepare(self, table: Observations, kernel: Kernel) -> None:
        """Compute the neighbours of the readings, in addition to the subsample of sites."""
        super().prepare(table, kernel)
        self._blocks(table, kernel)

    def _blocks(self, table: Observations, kernel: Kernel) -> Int[Array, "b s"]:
        """Return the sites of some readings and their neighbours, which the table caches."""
        scale = table.cached_for_sites("column scales", lambda: column_scales(table.x))
        if np.size(kernel.theta) < table.x.shape[1]:  # one length-scale for all columns
            scale = np.ones_like(scale)

        def find() -> Int[Array, "b s"]:
            n, n_blocks = self.n_neighbours, self.n_sites
            return VecchiaTable.from_sites(table, [kernel], n, scale, n_blocks=n_blocks).blocks

        key = "Vecchia blocks", self.n_neighbours, self.n_sites, tuple(scale.tolist())
        return table.cached_for_sites(key, find)

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        times, n_blocks, side = typical_evaluations(n), min(n, self.n_sites), self.n_neighbours + 1
        parts = search_work(
            n,
            times,
            blocks=3.0 * n_blocks,
            block_size=side,
            kernel_values=float(n_blocks * side**2),
            calls=n_blocks / 100,
        )
        return Work("Vecchia", side, n_blocks, times, parts, (), n_blocks * side * (side + 3.0))

    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact.

        >>> Vecchia().describe_approximation(800)
        'Vecchia, each reading given 20 earlier neighbours'
        >>> Vecchia().describe_approximation(21)
        ''
        """
        if n <= self.n_neighbours + 1:
            return ""
        some = f"{self.n_sites} of {n} readings, each" if n > self.n_sites else "each reading"
        return f"Vecchia, {some} given {self.n_neighbours} earlier neighbours"
