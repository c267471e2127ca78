"""The kernels of all latents at the sites of a table, those that are alike evaluated as one.

To a GPU ten small matrices are as dear as one ten times as large, and to Python too if they are
very small; where they fill the processor's caches they are made one after another.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, like, namespace, panel
from emgpr.kernels import Pairs, Pullback, evaluate


class Together:
    """Kernels of the same sites, or of those of a batch of tables."""

    def __init__(self, kernels: Sequence[Kernel], x: Float[Array, "*b N P"]) -> None:
        self.kernels = tuple(kernels)
        self.pairs = Pairs(x[..., None, :, :])  # an axis for the latents
        self.runs = _alike(self.kernels, max(1, panel(x) // prod(self.pairs.shape)))

    def evaluate(self, theta: Float[np.ndarray, " p"]) -> tuple[Float[Array, "*b Q N N"], Pullback]:
        """k_q(x, x) of every latent for all their log hyper-parameters, and the pullback."""
        there = self.pairs.x
        xp, left, built = namespace(there), like(theta, there), []
        for run in self.runs:
            kernel, n = self.kernels[run.start], run.stop - run.start
            own, left = left[: n * kernel.n_dims], left[n * kernel.n_dims :]
            built.append(evaluate(kernel, own.reshape(n, kernel.n_dims), self.pairs))

        def pullback(G: Array) -> Array:
            pulled = [
                pull(G[..., run, :, :]) for run, (_, pull) in zip(self.runs, built, strict=True)
            ]
            return xp.concat([each.reshape(*G.shape[:-3], -1) for each in pulled], axis=-1)

        Ks = [K for K, _ in built]
        return Ks[0] if len(Ks) == 1 else xp.concat(Ks, axis=-3), pullback


def _alike(kernels: Sequence[Kernel], most: int) -> list[slice]:
    """Runs of at most so many kernels that differ in nothing but their hyper-parameters."""
    runs: list[slice] = []
    for q, kernel in enumerate(kernels):
        start = runs[-1].start if runs else q
        if q > start and q - start < most and _same_but_for_theta(kernels[start], kernel):
            runs[-1] = slice(start, q + 1)
        else:
            runs.append(slice(q, q + 1))
    return runs


def _same_but_for_theta(one: Kernel, other: Kernel) -> bool:
    if one.n_dims != other.n_dims:
        return False
    return bool(one.clone_with_theta(one.theta) == other.clone_with_theta(one.theta))
