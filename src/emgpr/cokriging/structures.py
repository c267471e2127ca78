"""Structures of a variogram model: names of kernels, and checks of kernels set by the user."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.kernels import NAMED_KERNELS, Spherical
from emgpr.latents import is_length_scale

Array = np.ndarray

VARIOGRAM_MODELS: dict[str, Kernel] = {
    "spherical": Spherical(),
    "exponential": Matern(nu=0.5),
    "gaussian": RBF(),
    **NAMED_KERNELS,
}
MAX_SPHERICAL_INPUTS = 3  # for which the spherical model is a covariance function


def as_structures(given: Any, n_inputs: int) -> list[Kernel]:
    """Return a kernel for each structure; raise ValueError if one is not a variogram model.

    A variogram model is a stationary kernel with unit variance, whose only free parameter is a
    length-scale for all inputs.

    >>> as_structures(["spherical", Matern(2.0, "fixed", nu=1.5)], 2)
    [Spherical(length_scale=1), Matern(length_scale=2, nu=1.5)]
    """
    listed = given if isinstance(given, list | tuple) else [given]
    if not listed:
        raise ValueError("kernel is an empty list; expected at least one variogram model.")
    kernels = [_as_kernel(structure) for structure in listed]
    if n_inputs > MAX_SPHERICAL_INPUTS and any(isinstance(k, Spherical) for k in kernels):
        raise ValueError(
            f"The spherical model is a covariance function for up to {MAX_SPHERICAL_INPUTS} "
            f"inputs, and there are {n_inputs}; use another model, such as kernel='exponential'."
        )
    return kernels


def _as_kernel(structure: Any) -> Kernel:
    """Return one structure as a kernel."""
    if isinstance(structure, str) and structure in VARIOGRAM_MODELS:
        return clone(VARIOGRAM_MODELS[structure])
    if not isinstance(structure, Kernel):
        raise ValueError(
            f"kernel={structure!r} is not a variogram model; expected one of "
            f"{', '.join(map(repr, VARIOGRAM_MODELS))}, a scikit-learn kernel with one "
            "length-scale, or a list of these."
        )
    free = [parameter for parameter in structure.hyperparameters if not parameter.fixed]
    only_scale = all(is_length_scale(structure, p.name) and p.n_elements == 1 for p in free)
    if len(free) > 1 or not only_scale or not structure.is_stationary():
        raise ValueError(
            f"kernel={structure!r} cannot be fitted to variograms; expected a stationary kernel "
            "whose only free parameter is one length-scale for all inputs."
        )
    variance = float(structure.diag(np.zeros((1, 1)))[0])
    if not np.isclose(variance, 1.0):
        raise ValueError(
            f"kernel={structure!r} has the variance {variance:g}; expected 1, because the sills "
            "are fitted."
        )
    return clone(structure)


def with_ranges(kernels: list[Kernel], log_ranges: Float[Array, " f"]) -> list[Kernel]:
    """Return the structures with these ranges, in which fixed ranges are left out.

    >>> with_ranges([RBF(3.0, "fixed"), RBF()], np.log([2.0]))
    [RBF(length_scale=3), RBF(length_scale=2)]
    """
    ranges = iter(log_ranges)
    return [
        kernel.clone_with_theta(np.array([next(ranges)])) if kernel.n_dims else kernel
        for kernel in kernels
    ]


def correlations(kernel: Kernel, h: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return k(h) for distances h."""
    return kernel(np.zeros((1, 1)), h.reshape(-1, 1)).reshape(h.shape)
