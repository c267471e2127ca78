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
    fitted = learn([kernel for kernel in CANDIDATES for _ in range(D)])
    best = [
        max(fitted[d::D], key=lambda latent: _worth(latent, seen.task(d).n_readings))
        for d in range(D)
    ]
    if P == 1:
        return best
    each = learn([clone(latent.kernel).set_params(length_scale=np.ones(P)) for latent in best])
    return [
        max(pair, key=lambda latent: _worth(latent, seen.task(d).n_readings))
        for d, pair in enumerate(zip(best, each, strict=True))
    ]


def _worth(latent: Latent, n: int) -> float:
    """Log-likelihood less what its parameters would gain by chance."""
    if not np.isfinite(latent.log_likelihood):
        return -np.inf
    return latent.log_likelihood - 0.5 * latent.kernel.n_dims * np.log(max(n, 1))
