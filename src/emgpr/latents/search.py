"""Where step 1 looks: starts and bounds taken from the data, in the data's own units.

Length-scales start between the distance of neighbours and the extent of the
region, spread evenly in logarithm, and may not leave a wider range around it.
Bounds that the user set on a kernel are kept; scikit-learn's default of
(1e-5, 1e5), which knows no units, is replaced.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from emgpr.latents.latent import NOISE_BOUNDS
from emgpr.sampling import with_nearest

Array = np.ndarray

SKLEARN_DEFAULT = (1e-5, 1e5)
NOISE_STARTS = (0.03, 0.15, 0.6)


@dataclass(frozen=True)
class Search:
    """Log starts and log bounds of (kernel hyper-parameters, noise variance), and their names."""

    starts: Float[Array, "S p"]
    bounds: Float[Array, "p 2"]
    names: tuple[str, ...]
    n_kernels: int = 1  # the starts are so many sets of kernel parameters, each at every noise

    @property
    def noise_bounds(self) -> tuple[float, float]:
        """Bounds of the noise variance."""
        low, high = np.exp(self.bounds[-1]).tolist()
        return low, high


def search_space(
    kernel: Kernel,
    white: WhiteKernel | None,
    X: Float[Array, "N P"],
    n_starts: int,
    rng: np.random.Generator,
) -> Search:
    """Every combination of `n_starts` sets of length-scales with three noise levels."""
    X = X - X.min(axis=0)  # exact, and the same wherever the origin is
    n_scales = sum(is_length_scale(kernel, p.name) for p in kernel.hyperparameters if not p.fixed)
    near, far = distances(X)
    spread = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)

    columns, bounds, names = [], [], []
    theta = kernel.theta
    at = scale_index = 0
    for parameter in kernel.hyperparameters:
        if parameter.fixed:
            continue
        n = parameter.n_elements
        own_bounds = np.log(np.broadcast_to(parameter.bounds, (n, 2)))
        if is_length_scale(kernel, parameter.name):
            # One length-scale has the units of a distance; one a column, those of its column.
            unit = np.ones(1) if n == 1 else spread
            low, high = (near, far) if n == 1 else distances(X / spread)
            if np.allclose(parameter.bounds, SKLEARN_DEFAULT):
                own_bounds = np.log(unit[:, None] * np.array([[0.1 * low, 20.0 * high]]))
            # Evenly over the strata of log distance, somewhere in each; two length-scales
            # of one kernel start in different strata, or they would move as one.
            stratum = (np.arange(n_starts) + scale_index * max(1, n_starts // n_scales)) % n_starts
            u = (stratum + rng.uniform(size=n_starts)) / n_starts
            # From shorter than the spacing: a smooth kernel is near zero beyond two length-scales.
            short, long = np.log(0.4 * low), np.log(0.5 * high)
            column = short + u[:, None] * (long - short) + np.log(unit)
            own = theta[at : at + n]
            if np.any(own != 0):  # not scikit-learn's default of 1: the user has an idea
                column = np.vstack([column, own])
            scale_index += 1
        else:
            column = theta[None, at : at + n]
        columns.append(np.clip(column, own_bounds[:, 0], own_bounds[:, 1]))
        bounds.append(own_bounds)
        names += [parameter.name if n == 1 else f"{parameter.name}[{i}]" for i in range(n)]
        at += n

    noise_bounds = NOISE_BOUNDS
    noises = np.array(NOISE_STARTS) * np.exp(rng.uniform(-0.5, 0.5, size=len(NOISE_STARTS)))
    if white is not None:
        level = max(white.noise_level, NOISE_BOUNDS[0])  # none at all has no logarithm
        noises = np.append(noises, level)
        if isinstance(white.noise_level_bounds, str):  # "fixed"
            noises = np.array([level])
            noise_bounds = (level, level)
        elif not np.allclose(white.noise_level_bounds, SKLEARN_DEFAULT):
            noise_bounds = tuple(np.ravel(white.noise_level_bounds).tolist())
    # A parameter with fewer starts than another keeps its last for the rest.
    n_kernels = max((len(column) for column in columns), default=1)
    columns = [column[np.minimum(np.arange(n_kernels), len(column) - 1)] for column in columns]
    kernels = np.concatenate(columns, 1) if columns else np.empty((1, 0))
    starts = np.concatenate(
        [
            np.repeat(kernels, len(noises), axis=0),
            np.clip(np.log(np.tile(noises, len(kernels))), *np.log(noise_bounds))[:, None],
        ],
        axis=1,
    )
    return Search(
        starts,
        np.concatenate([*bounds, np.log([noise_bounds])]),
        (*names, "noise"),
        len(kernels),
    )


def is_length_scale(kernel: Kernel, name: str) -> bool:
    """Whether this hyper-parameter, however deep in the kernel, is a distance between sites.

    The length-scale of a periodic kernel is not: it is relative to the period.
    """
    *path, attribute = name.split("__")
    owner = kernel
    for step in path:
        owner = getattr(owner, step)
    return attribute == "length_scale" and not hasattr(owner, "periodicity")


def distances(X: Float[Array, "N P"]) -> tuple[float, float]:
    """The distance of close neighbours, and the extent of the region."""
    extent = float(np.linalg.norm(np.ptp(X, axis=0))) if len(X) else 0.0
    if extent == 0:
        return 1.0, 1.0
    sites, nearest = with_nearest(X)
    apart = np.linalg.norm(sites - nearest, axis=1)
    # Rounding can part equal sites by 1e-16 of the extent: no smaller scale is believed.
    return max(float(np.median(apart)), 1e-6 * extent), extent
