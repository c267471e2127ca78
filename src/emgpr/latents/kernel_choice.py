"""Choice of kernels for kernel="auto", by running step 1 with every candidate kernel.

The candidates range from Matern(nu=0.5), with rough sample paths, to RBF, with smooth ones. For
each output, the kernel with the highest likelihood is chosen. The number of its length-scales
depends on the input columns:

- Coordinates of one unit share a length-scale. The chosen kernel is also fitted with a length-scale
  for each of them. That version is used if its log-likelihood is higher by more than ½ log n for
  each additional parameter (Schwarz's criterion).
- Otherwise, each column has a length-scale of its own, so that units do not matter.
- More than `MAX_COLUMNS` columns, which must have been standardised, share a length-scale. The
  version with a length-scale for each of them is used if it raises the log density of left-out
  readings by more than two standard errors.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.latents.base import Latent
from emgpr.metrics import paired_difference
from emgpr.observations import Observations

CANDIDATES = (Matern(nu=1.5), Matern(nu=0.5), Matern(nu=2.5), RBF())
MAX_COLUMNS = 10  # maximum number of columns that have their own length-scales by default

FitKernels = Callable[[Sequence[Kernel]], list[Latent]]
LeftOutDensity = Callable[[int, Latent], Float[np.ndarray, " n"]]  # of the readings of an output


def choose_kernels(
    observations: Observations,
    fit: FitKernels,
    *,
    coordinates: bool = True,
    left_out_density: LeftOutDensity | None = None,
) -> list[Latent]:
    """Return the best latent for each output; `fit` fits kernel i to output i mod D.

    `coordinates` tells whether all input columns are coordinates of one unit. `left_out_density` is
    needed for more than `MAX_COLUMNS` columns.
    """
    D, P = observations.n_outputs, observations.x.shape[1]
    n_varying = count_varying_columns(observations)
    counts = observations.observed.sum(axis=1).tolist()
    shared = shares_length_scale(observations, coordinates)
    candidates = CANDIDATES if shared else [_per_column(kernel, P) for kernel in CANDIDATES]
    fitted = fit([kernel for kernel in candidates for _ in range(D)])
    chosen = [
        int(np.argmax([_criterion(latent, 1, counts[d]) for latent in fitted[d::D]]))
        for d in range(D)
    ]
    best = [fitted[i * D + d] for d, i in enumerate(chosen)]
    if n_varying < 2 or not shared:
        return best
    # The candidate is used, because a learner can return a kernel of another form.
    several = fit([_per_column(CANDIDATES[i], P) for i in chosen])
    if coordinates or left_out_density is None:
        better = [
            _criterion(many, n_varying, n) > _criterion(one, 1, n)
            for one, many, n in zip(best, several, counts, strict=True)
        ]
    else:
        better = []
        for d in range(D):
            densities = (left_out_density(d, latents[d]) for latents in (several, best))
            gain = paired_difference(*densities)
            better.append(gain.mean > 2 * gain.standard_error)
    return [several[d] if better[d] else best[d] for d in range(D)]


def shares_length_scale(observations: Observations, coordinates: bool) -> bool:
    """Tell whether the candidate kernels have one length-scale for all columns."""
    n_varying = count_varying_columns(observations)
    return coordinates or n_varying < 2 or observations.x.shape[1] > MAX_COLUMNS


def count_varying_columns(observations: Observations) -> int:
    """Return the number of input columns that are not constant."""
    return int(np.count_nonzero(np.ptp(observations.x, axis=0)))


def _per_column(kernel: Kernel, P: int) -> Kernel:
    """Return the kernel with a length-scale for each of P columns."""
    return clone(kernel).set_params(length_scale=np.ones(P))


def _criterion(latent: Latent, n_scales: int, n: int) -> float:
    """Return Schwarz's criterion: the log-likelihood minus ½ log n per length-scale."""
    if not np.isfinite(latent.log_likelihood):
        return -np.inf
    n = n if latent.n_readings is None else latent.n_readings
    return latent.log_likelihood - 0.5 * n_scales * np.log(max(n, 1))
