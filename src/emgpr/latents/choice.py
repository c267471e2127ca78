"""kernel="auto": step 1 with every candidate, and for each task the likeliest.

The candidates are as smooth as RBF and as rough as Matern(nu=0.5), each with one length-scale.
With several input columns the chosen one is tried once more with a length-scale a column,
which is kept if it earns its parameters (Schwarz's criterion, ½ log n a parameter).
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.latents.latent import Latent
from emgpr.observations import Observations

CANDIDATES = (Matern(nu=1.5), Matern(nu=0.5), Matern(nu=2.5), RBF())

Learn = Callable[[Sequence[Kernel]], list[Latent]]


def choose_kernels(seen: Observations, learn: Learn) -> list[Latent]:
    """The likeliest kernel of each task; `learn` does step 1 of task i mod D with kernel i."""
    D, P = seen.n_tasks, seen.x.shape[1]
    varied = int(np.count_nonzero(np.ptp(seen.x, axis=0)))  # the other columns say nothing
    fitted = learn([kernel for kernel in CANDIDATES for _ in range(D)])
    counts = seen.seen.sum(axis=1).tolist()
    worth = [[_worth(latent, 1, counts[d]) for latent in fitted[d::D]] for d in range(D)]
    chosen = [int(np.argmax(own)) for own in worth]
    best = [fitted[i * D + d] for d, i in enumerate(chosen)]
    if varied < 2:
        return best
    # Of the form that was asked for: a learner may have answered with another.
    each = learn([clone(CANDIDATES[i]).set_params(length_scale=np.ones(P)) for i in chosen])
    return [
        max(
            (one, several),
            key=lambda latent: _worth(latent, 1 if latent is one else varied, counts[d]),
        )
        for d, (one, several) in enumerate(zip(best, each, strict=True))
    ]


def _worth(latent: Latent, n_scales: int, n: int) -> float:
    """Log-likelihood less what its length-scales would gain by chance, of n readings at most."""
    if not np.isfinite(latent.log_likelihood):
        return -np.inf
    n = n if latent.n_readings is None else latent.n_readings
    return latent.log_likelihood - 0.5 * n_scales * np.log(max(n, 1))
