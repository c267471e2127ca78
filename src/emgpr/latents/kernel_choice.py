"""Choice of kernels for kernel="auto", by running step 1 with every candidate kernel.

The candidates range from Matern(nu=0.5), with rough sample paths, to RBF, with smooth ones. Each
candidate has one length-scale. For each output, the kernel with the highest likelihood is chosen.
If there are several input columns, this kernel is also fitted with a length-scale for each column.
That version is chosen if its log-likelihood is higher by more than ½ log n for each additional
parameter (Schwarz's criterion).
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.latents.base import Latent
from emgpr.observations import Observations

CANDIDATES = (Matern(nu=1.5), Matern(nu=0.5), Matern(nu=2.5), RBF())

FitKernels = Callable[[Sequence[Kernel]], list[Latent]]


def choose_kernels(observations: Observations, fit: FitKernels) -> list[Latent]:
    """Return the best latent for each output; `fit` fits kernel i to output i mod D."""
    D, P = observations.n_outputs, observations.x.shape[1]
    n_varying = count_varying_columns(observations)
    counts = observations.observed.sum(axis=1).tolist()
    fitted = fit([kernel for kernel in CANDIDATES for _ in range(D)])
    chosen = [
        int(np.argmax([_criterion(latent, 1, counts[d]) for latent in fitted[d::D]]))
        for d in range(D)
    ]
    best = [fitted[i * D + d] for d, i in enumerate(chosen)]
    if n_varying < 2:
        return best
    # The candidate is used, because a learner can return a kernel of another form.
    ard = fit([clone(CANDIDATES[i]).set_params(length_scale=np.ones(P)) for i in chosen])
    return [
        several if _criterion(several, n_varying, n) > _criterion(one, 1, n) else one
        for one, several, n in zip(best, ard, counts, strict=True)
    ]


def count_varying_columns(observations: Observations) -> int:
    """Return the number of input columns that are not constant."""
    return int(np.count_nonzero(np.ptp(observations.x, axis=0)))


def _criterion(latent: Latent, n_scales: int, n: int) -> float:
    """Return Schwarz's criterion: the log-likelihood minus ½ log n per length-scale."""
    if not np.isfinite(latent.log_likelihood):
        return -np.inf
    n = n if latent.n_readings is None else latent.n_readings
    return latent.log_likelihood - 0.5 * n_scales * np.log(max(n, 1))
