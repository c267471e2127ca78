"""Structures of a variogram model: names of kernels, and checks of kernels set by the user."""

from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Hyperparameter, Kernel, Matern

from emgpr.kernels import NAMED_KERNELS, Spherical
from emgpr.latents import is_length_scale

Array = np.ndarray

VARIOGRAM_MODELS: dict[str, Kernel] = {
    "spherical": Spherical(),
    "exponential": Matern(nu=0.5),
    "gaussian": RBF(),
    **NAMED_KERNELS,
}
DEFAULT_BOUNDS = 1e-5, 1e5  # of the length-scales of all kernels
MIN_DECREASE, ROUNDING = 1e-3, 1e-12  # of k(h), up to three length-scales
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
    if not isinstance(structure, Kernel) or isinstance(structure, CompoundKernel):
        raise ValueError(
            f"kernel={structure!r} is not a variogram model; expected one of "
            f"{', '.join(map(repr, VARIOGRAM_MODELS))}, a scikit-learn kernel with one "
            "length-scale, or a list of these."
        )
    _check_length_scales(structure)
    free = [parameter for parameter in structure.hyperparameters if not parameter.fixed]
    only_scale = all(is_length_scale(structure, p.name) for p in free)
    if len(free) > 1 or not only_scale or not structure.is_stationary():
        raise ValueError(
            f"kernel={structure!r} cannot be fitted to variograms; expected a stationary kernel "
            "whose only free parameter is one length-scale for all inputs."
        )
    for parameter in free:
        _check_bounds(structure, parameter)
    _check_values(structure)
    return clone(structure)


def _length_scales(kernel: Kernel) -> dict[str, Any]:
    """Return the length-scales of a kernel and of its parts."""
    values = kernel.get_params()
    return {
        parameter.name: values[parameter.name]
        for parameter in kernel.hyperparameters
        if is_length_scale(kernel, parameter.name)
    }


def _check_length_scales(kernel: Kernel) -> None:
    """Raise ValueError unless every length-scale is one finite, positive number."""
    for name, value in _length_scales(kernel).items():
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not 0 < float(value) < np.inf:
            raise ValueError(
                f"{type(kernel).__name__}: {name}={value!r}; expected one length-scale for all "
                "inputs, which is finite and positive."
            )


def _check_bounds(kernel: Kernel, parameter: Hyperparameter) -> None:
    """Raise ValueError unless the bounds of a length-scale are two numbers above zero, in order."""
    bounds = np.asarray(parameter.bounds)
    if bounds.dtype.kind in "fiu" and bounds.shape == (1, 2):
        low, high = bounds[0]
        if 0 < low < high < np.inf:
            return
    raise ValueError(
        f"{type(kernel).__name__}: the bounds of {parameter.name} are "
        f"{kernel.get_params()[parameter.name + '_bounds']!r}; expected two positive numbers in "
        'increasing order, or "fixed".'
    )


def _check_values(kernel: Kernel) -> None:
    """Raise ValueError unless k(0) = 1 and k decreases with the distance."""
    variance = float(kernel.diag(np.zeros((1, 1)))[0])
    if not np.isclose(variance, 1.0):
        raise ValueError(
            f"kernel={kernel!r} has the variance {variance:g}; expected 1, because the sills "
            "are fitted."
        )
    longest = max(_length_scales(kernel).values(), default=1.0)
    k = correlations(kernel, longest * np.array([0.0, 0.1, 0.3, 1.0, 3.0]))
    if not np.isclose(k[0], 1.0) or k[-1] > 1.0 - MIN_DECREASE or (np.diff(k) > ROUNDING).any():
        raise ValueError(
            f"kernel={kernel!r} is not a structure of a variogram; expected a kernel with "
            "k(0) = 1 that decreases with the distance. The nugget is added automatically."
        )


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


def range_bounds(kernels: list[Kernel], low: float, high: float) -> Float[Array, "f 2"]:
    """Return the logarithms of the bounds of the free ranges.

    They are the bounds of the kernel or, if these are the default ones, `low` and `high`.

    >>> np.exp(range_bounds([RBF(1.0, (0.1, 0.2)), RBF(1.0, "fixed"), RBF()], 0.5, 4.0))
    array([[0.1, 0.2],
           [0.5, 4. ]])
    """
    free = [kernel.bounds for kernel in kernels if kernel.n_dims]
    bounds = np.concatenate(free) if free else np.empty((0, 2))
    default = np.isclose(bounds, np.log(DEFAULT_BOUNDS)).all(axis=1, keepdims=True)
    return np.where(default, np.log([low, high]), bounds)
