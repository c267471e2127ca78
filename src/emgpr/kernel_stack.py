"""The kernels of several latent processes, evaluated together at the same sites."""

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from math import prod

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process import kernels as sk

from emgpr.arrays import Array, namespace, panel_size, to_device_of
from emgpr.kernels import Pairs, Pullback, evaluate_kernel

DIFFERENCE_STEP = 1e-6  # of log hyper-parameters; the relative error of derivatives is as large


class KernelStack:
    """The kernels of all latents at given sites. Similar kernels are evaluated together.

    Evaluating several small matrices together reduces the overhead of Python and of a GPU. Large
    matrices, which fill the processor's caches, are evaluated one after another.
    """

    def __init__(self, kernels: Sequence[sk.Kernel], x: Float[Array, "*b N P"]) -> None:
        self.kernels = tuple(kernels)
        self.sizes = tuple(kernel.n_dims for kernel in self.kernels)
        self.similar = _similar_to_previous(self.kernels)
        self._move_to(x)

    def at(self, x: Float[Array, "*b N P"]) -> "KernelStack":
        """Return the same kernels at other sites, without comparing them again."""
        moved = copy(self)
        moved._move_to(x)
        return moved

    def _move_to(self, x: Float[Array, "*b N P"]) -> None:
        self.pairs = Pairs(x[..., None, :, :])  # an axis for the latents
        max_kernels = max(1, panel_size(x) // max(1, prod(self.pairs.shape)))
        self.runs = _runs(self.similar, max_kernels)

    def evaluate(self, theta: Float[np.ndarray, " p"]) -> tuple[Float[Array, "*b Q N N"], Pullback]:
        """Return k_q(x, x) for all latents and its pullback; theta has the parameters of all."""
        x = self.pairs.x
        xp, remaining, evaluated = namespace(x), to_device_of(theta, x), []
        for run in self.runs:
            kernel, n, size = self.kernels[run.start], run.stop - run.start, self.sizes[run.start]
            first, remaining = remaining[: n * size], remaining[n * size :]
            evaluated.append(evaluate_kernel(kernel, first.reshape(n, size), self.pairs))

        def pullback(G: Array) -> Array:
            gradients = [
                pull(G[..., run, :, :]) for run, (_, pull) in zip(self.runs, evaluated, strict=True)
            ]
            return xp.concat([part.reshape(*G.shape[:-3], -1) for part in gradients], axis=-1)

        Ks = [K for K, _ in evaluated]
        return Ks[0] if len(Ks) == 1 else xp.concat(Ks, axis=-3), pullback

    def derivatives(
        self, theta: Float[np.ndarray, " p"], K: Float[Array, "*b Q N N"]
    ) -> list[tuple[int, Float[Array, "*b N N"]]]:
        """Return, for each hyper-parameter, the number of its kernel and the derivative of k(x, x).

        The derivatives are differences from `K`, the kernel matrices for `theta`. The first
        parameters of all kernels are changed together, then their second parameters, and so on.
        """
        latents = np.repeat(np.arange(len(self.kernels)), self.sizes)
        rank = np.concatenate([np.arange(size) for size in self.sizes])
        found: list[tuple[int, Array]] = [(0, theta)] * len(theta)
        for r in np.unique(rank):
            changed = self.evaluate(theta + DIFFERENCE_STEP * (rank == r))[0]
            slope = (changed - K) / DIFFERENCE_STEP
            for a in np.flatnonzero(rank == r):
                found[a] = int(latents[a]), slope[..., latents[a], :, :]
        return found


def _similar_to_previous(kernels: Sequence[sk.Kernel]) -> tuple[bool, ...]:
    """Tell for each kernel whether it differs from the one before only in free parameters."""
    return (False, *(_same_but_for_theta(one, other) for one, other in pairwise(kernels)))


def _runs(similar: Sequence[bool], max_length: int) -> list[slice]:
    """Divide a list of kernels into runs of at most `max_length` similar kernels."""
    runs: list[slice] = []
    for q, same in enumerate(similar):
        if same and q - runs[-1].start < max_length:
            runs[-1] = slice(runs[-1].start, q + 1)
        else:
            runs.append(slice(q, q + 1))
    return runs


def _same_but_for_theta(one: sk.Kernel, other: sk.Kernel) -> bool:
    if one.n_dims != other.n_dims:
        return False
    return bool(one.clone_with_theta(one.theta) == other.clone_with_theta(one.theta))
