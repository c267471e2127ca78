"""Choice of kernels for kernel="auto", by running step 1 with several candidate kernels.

The candidates range from Matern(nu=0.5), with rough sample paths, to RBF, with smooth ones. For
each output, the kernel with the highest likelihood is chosen. Matern(nu=1.5) is fitted first. The
search for each further kernel starts from the kernel fitted before, with the length-scale at which
both have the same range. The likelihood has a single maximum as a function of the smoothness, so
that smoother kernels are fitted only where the rougher ones are not better: Matern(nu=2.5) where
Matern(nu=0.5) is not better than Matern(nu=1.5), and RBF where Matern(nu=2.5) is the best so far.
The number of length-scales depends on the input columns:

- Coordinates of one unit share a length-scale. The chosen kernel is also fitted with a length-scale
  for each of them. That version is used if its log-likelihood is higher by more than ½ log n for
  each additional parameter (Schwarz's criterion).
- Otherwise, each column has a length-scale of its own, so that units do not matter.
- More than `MAX_COLUMNS` columns, which must have been standardised, share a length-scale. The
  version with a length-scale for each of them is used if it raises the log density of left-out
  readings by more than two standard errors. It is not tried with more than `MAX_SEPARATE` columns,
  because hundreds of length-scales take minutes to fit and overfit a few hundred readings.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.latents.base import Latent
from emgpr.latents.starts import WarmStart
from emgpr.metrics import paired_difference
from emgpr.neighbours import extents
from emgpr.observations import Observations

CANDIDATES = (Matern(nu=1.5), Matern(nu=0.5), Matern(nu=2.5), RBF())
# Distance, relative to the length-scale, at which the correlation of each candidate is one half.
HALF_CORRELATION = (0.969, 0.693, 1.042, 1.177)
# Each further candidate, and the candidate that must be the best so far for it to be fitted.
FURTHER = ((1, 0), (2, 0), (3, 2))
MAX_COLUMNS = 10  # maximum number of columns that have their own length-scales by default
MAX_SEPARATE = 50  # maximum number of columns for which their own length-scales are tried
# If the noise variance of a standardised output is larger, its likelihood can have an optimum with
# a shorter range and less noise, so that other kernels are not fitted from this one.
MUCH_NOISE = 0.5
# With more columns, separate length-scales have so many optima that several starts are needed.
MAX_WARM_COLUMNS = 3

FitKernels = Callable[..., list[Latent]]  # see choose_kernels
LeftOutDensity = Callable[[int, Latent], Float[np.ndarray, " n"]]  # of the readings of an output


def choose_kernels(
    observations: Observations,
    fit: FitKernels,
    *,
    coordinates: bool = True,
    left_out_density: LeftOutDensity | None = None,
) -> list[Latent]:
    """Return the best latent for each output.

    `fit(kernels, outputs=outputs, starts=starts)` fits kernel i to output `outputs[i]`, if possible
    starting from the parameters of the latent `starts[i]`, which can be None. `coordinates` tells
    whether all input columns are coordinates of one unit. `left_out_density` is needed for more
    than `MAX_COLUMNS` columns.
    """
    D, P = observations.n_outputs, observations.x.shape[1]
    n_varying = count_varying_columns(observations)
    counts = observations.observed.sum(axis=1).tolist()
    shared = shares_length_scale(observations, coordinates)
    candidates = CANDIDATES if shared else [_per_column(kernel, P) for kernel in CANDIDATES]
    best = fit([candidates[0]] * D, outputs=range(D), starts=[None] * D)
    chosen = [0] * D
    for c, previous in FURTHER:
        outputs = [d for d in range(D) if chosen[d] == previous]
        ratio = HALF_CORRELATION[previous] / HALF_CORRELATION[c]
        starts = [_warm_start(best[d], candidates[previous], candidates[c], ratio) for d in outputs]
        fitted = fit([candidates[c]] * len(outputs), outputs=outputs, starts=starts)
        for d, latent in zip(outputs, fitted, strict=True):
            if _criterion(latent, 1, counts[d]) > _criterion(best[d], 1, counts[d]):
                best[d], chosen[d] = latent, c
    if not 2 <= n_varying <= MAX_SEPARATE or not shared:
        return best
    # The candidate is used, because a learner can return a kernel of another form.
    separate = [_per_column(CANDIDATES[c], P) for c in chosen]
    starts = [None] * D
    if P <= MAX_WARM_COLUMNS:
        starts = [
            _warm_start(latent, CANDIDATES[c], kernel, gain=_penalty(n_varying - 1, n))
            for latent, c, kernel, n in zip(best, chosen, separate, counts, strict=True)
        ]
    several = fit(separate, outputs=range(D), starts=starts)
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


def half_correlation(kernel: Kernel) -> float | None:
    """Return the distance, relative to the length-scale, at which the correlation is one half.

    Return None if the kernel is not a candidate of the automatic choice.

    >>> half_correlation(Matern(0.3, nu=0.5)), half_correlation(Matern(0.3, nu=7.0))
    (0.693, None)
    """
    for candidate, distance in zip(CANDIDATES, HALF_CORRELATION, strict=True):
        same_nu = getattr(kernel, "nu", None) == getattr(candidate, "nu", None)
        if type(kernel) is type(candidate) and same_nu:
            return distance
    return None


def shares_length_scale(observations: Observations, coordinates: bool) -> bool:
    """Tell whether the candidate kernels have one length-scale for all columns."""
    n_varying = count_varying_columns(observations)
    return coordinates or n_varying < 2 or observations.x.shape[1] > MAX_COLUMNS


def count_varying_columns(observations: Observations) -> int:
    """Return the number of input columns that are not constant."""
    return int(np.count_nonzero(extents(observations.x)))


def _per_column(kernel: Kernel, P: int) -> Kernel:
    """Return the kernel with a length-scale for each of P columns."""
    return clone(kernel).set_params(length_scale=np.ones(P))


def _warm_start(
    latent: Latent, own: Kernel, kernel: Kernel, ratio: float = 1.0, gain: float = 0.0
) -> WarmStart | None:
    """Return a start for another kernel: the fitted length-scales times `ratio`, and the noise.

    The likelihood must increase by `gain`. Return None if the fit says little about other kernels,
    because it ended at a bound or consists mostly of noise, or if the learner returned a kernel of
    another form than `own`.
    """
    unreliable = bool(latent.message) or latent.noise > MUCH_NOISE
    if unreliable or type(latent.kernel) is not type(own):
        return None
    found, shape = np.asarray(latent.kernel.length_scale), np.shape(kernel.length_scale)
    same_nu = getattr(latent.kernel, "nu", None) == getattr(own, "nu", None)
    if not same_nu or (found.ndim and found.shape != shape):
        return None
    scales = np.broadcast_to(ratio * found, shape)
    start = clone(kernel).set_params(length_scale=scales if scales.ndim else float(scales))
    return WarmStart(start, latent.noise, latent.log_likelihood + gain)


def _criterion(latent: Latent, n_scales: int, n: int) -> float:
    """Return Schwarz's criterion: the log-likelihood minus ½ log n per length-scale."""
    if not np.isfinite(latent.log_likelihood):
        return -np.inf
    n = n if latent.n_readings is None else latent.n_readings
    return latent.log_likelihood - _penalty(n_scales, n)


def _penalty(n_scales: int, n: int) -> float:
    return 0.5 * n_scales * float(np.log(max(n, 1)))
