"""Where step 1 starts on all sites: peaks found on some of them, for all tasks at once.

A likelihood often has two peaks, a short range with little noise and a long one with much, and
the value at a start says little about the peak it leads to. So every set of kernel parameters
is given its best noise and followed up on some of the sites, and peaks that are apart are
kept, with what the way there told of the curvature.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import Pairs, evaluate
from emgpr.latents.objective import loss_of
from emgpr.latents.prior import noise_prior, variances
from emgpr.latents.search import Search
from emgpr.observations import Observations
from emgpr.optimize import Memory, minimize

Array = np.ndarray

SOME = 128  # sites on which starts are compared, all tasks and noises at once, and followed
FEW = 10  # iterations
SAME = 0.3  # peaks nearer than this in every logarithm are one,
BEHIND = 10.0  # and one that lags by this much in log-likelihood is none
NOISES = np.log(np.geomspace(1e-4, 2.0, 16))  # at which starts are compared
RUNS = 2  # peaks of a task that are followed to the end
SLOPE = 1e-2  # of the log-likelihood, for a factor e of a parameter: none
LITTLE = 0.1  # log-likelihood that need not be gained on some of the sites,
NOTHING = 1e-4  # and on all


@dataclass(frozen=True)
class Peaks:
    """Places near peaks, the tasks whose they are, and how the functions curve there."""

    x: Float[Array, "m p"]
    whose: Int[Array, " m"]
    memory: Memory

    def at(self, some: range) -> "Peaks":
        """Some of them."""
        return Peaks(self.x[some], self.whose[some], self.memory.of(some))


def find_peaks(
    table: Observations,
    kernel: Kernel,
    search: Search,
    max_iter: int,
    *,
    weak_prior: bool,
    device: str,
) -> Peaks:
    """For each task of a complete table, at most `RUNS` of the highest peaks."""
    D = table.n_tasks
    some = table.at(table.some(SOME))
    starts = _with_best_noise(some, kernel, search, weak_prior)
    whose = np.repeat(np.arange(D), starts.shape[1])
    loss = loss_of(some, kernel, whose, weak_prior=weak_prior, device=device)
    x0 = starts.reshape(-1, starts.shape[-1])
    ends = minimize(
        loss,
        x0,
        bounds=search.bounds,
        max_iter=min(FEW, max_iter),
        gtol=SLOPE,
        promise=LITTLE,
    )
    kept: list[int] = []
    for d in range(D):
        own = np.flatnonzero(whose == d)
        best, *others = own[np.argsort(ends.value[own], kind="stable")].tolist()
        apart = [best]
        for i in others:
            near = any(np.abs(ends.x[i] - ends.x[j]).max() <= SAME for j in apart)
            if not near and ends.value[i] < ends.value[best] + BEHIND:
                apart.append(i)
        kept += apart[:RUNS]
    growth = table.n_sites / max(1, some.n_sites)
    return Peaks(ends.x[kept], whose[kept], ends.memory.of(kept, growth))


def _with_best_noise(
    table: Observations, kernel: Kernel, search: Search, weak_prior: bool
) -> Float[Array, "D S p"]:
    """Every set of kernel parameters with its best noise, for each task.

    One eigendecomposition of K gives the likelihood of every task at every noise.
    """
    n_each = len(search.starts) // search.n_kernels
    thetas, own = search.starts[::n_each, :-1], search.starts[:n_each, -1]
    noises = np.unique(np.clip([*NOISES, *own], *search.bounds[-1]))
    lam, U = np.linalg.eigh(evaluate(kernel, thetas, Pairs(table.x))[0])
    spread = np.maximum(lam, 0.0)[:, None, :] + np.exp(noises)[:, None]  # sets, noises, sites
    levels = np.exp(noises)[:, None, None]
    starts = []
    for y, variance in zip(table.y, variances(table), strict=True):
        z = (y @ U)[:, None, :]
        values = -0.5 * (z**2 / spread + np.log(spread)).sum(axis=-1)
        values = values + noise_prior(variance[None], weak_prior)(levels)[0]
        starts.append(np.column_stack([thetas, noises[values.argmax(axis=1)]]))
    return np.array(starts)
