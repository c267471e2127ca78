"""Checks of parameters that all estimators have, and the assignment of kernels to outputs."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Kernel

from emgpr.kernels import NAMED_KERNELS
from emgpr.latents import is_length_scale
from emgpr.observations import Observations
from emgpr.parallel import check_verbose

Kernels: TypeAlias = Kernel | Sequence[Kernel | str] | str | None
Value = TypeVar("Value")
Transforms: TypeAlias = Any  # a name, a scikit-learn transformer, a sequence or mapping of these


def kernels_per_output(given: Kernels, n_latents: int, observations: Observations) -> list[Kernel]:
    """Return a kernel for every output, and the remaining kernels if a longer list is given."""
    D, P = observations.n_outputs, observations.x.shape[1]
    if isinstance(given, str):
        given = NAMED_KERNELS.get(given)  # None for "auto", which has its own candidates
    given = RBF() if given is None else given
    if isinstance(given, Kernel):
        kernels = [clone(given)] * D
    else:
        if len(given) != n_latents:
            raise ValueError(
                f"kernel is a list of {len(given)} kernels for {n_latents} latent processes; pass "
                "one kernel for all, or a list with one for each."
            )
        listed = [NAMED_KERNELS[k] if isinstance(k, str) else k for k in given]
        kernels = [clone(listed[i % n_latents]) for i in range(max(D, n_latents))]
    for kernel in kernels:
        for parameter in kernel.hyperparameters:
            n = parameter.n_elements
            if is_length_scale(kernel, parameter.name) and n not in (1, P):
                raise ValueError(
                    f"kernel {kernel} has {n} length-scales and X has {P} columns; pass one "
                    "length-scale for all columns, or one for each."
                )
    return kernels


def with_string_keys(given: Mapping[Any, Value], parameter: str) -> dict[str, Value]:
    """Return a dict with column names as keys: the name of a column that is labelled 1 is "1".

    >>> with_string_keys({1: "log", "Cd": None}, "output_transform")
    {'1': 'log', 'Cd': None}
    """
    named = {str(key): value for key, value in given.items()}
    if len(named) < len(given):
        raise ValueError(
            f"{parameter} has the keys {list(given)}, some of which stand for the same column; "
            "expected one key for each column."
        )
    return named


def is_auto(value: Any) -> bool:
    """Tell whether a parameter is the string "auto"; arrays and kernels are accepted, too."""
    return isinstance(value, str) and value == "auto"


def check_count(name: str, value: Any, otherwise: str = "") -> None:
    """Raise ValueError unless a parameter is a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a whole number of at least 1{otherwise}.")


def check_choice(name: str, value: Any, choices: tuple) -> None:
    """Raise ValueError unless the value of a parameter is one of `choices`."""
    if isinstance(value, bool) or value not in choices:
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(map(repr, choices))}.")


def check_options(*, normalize_y: Any, n_jobs: Any, random_state: Any, verbose: Any) -> None:
    """Raise ValueError unless these parameters, which all estimators have, are valid."""
    if normalize_y not in (True, False, None):  # None counts as False
        raise ValueError(f"normalize_y={normalize_y!r}; expected True or False.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={n_jobs!r}; expected a whole number of processes, -1 for one on each core, or "
            "None."
        )
    generator = isinstance(random_state, np.random.RandomState | np.random.Generator)
    whole = isinstance(random_state, Integral) and int(random_state) >= 0
    if not (generator or whole or random_state is None or random_state is np.random):
        raise ValueError(
            f"random_state={random_state!r}; expected a whole number of at least 0, a NumPy "
            "RandomState or Generator, or None."
        )
    check_verbose(verbose)


def check_transform(transform: Transforms, names: tuple) -> None:
    """Raise ValueError if an output transform is a string that is not one of `names`."""
    if isinstance(transform, str) and transform not in names:
        raise ValueError(
            f"output_transform={transform!r}; expected one of {', '.join(map(repr, names))}, a "
            "scikit-learn transformer, a list with one of these for each output, or a dict that "
            "maps outputs to them."
        )


def check_kernel(given: Kernels, names: tuple[str, ...]) -> None:
    """Raise an error unless `given` is a kernel, one of `names`, a list of these, or None.

    "auto" stands for all kernels, and cannot be in a list.
    """
    listed = isinstance(given, list | tuple)
    names = tuple(name for name in names if not (listed and is_auto(name)))
    kernels: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    for kernel in kernels:
        if listed or kernel is not None:
            _check_kernel("kernel", kernel, names, ", or a list of kernels")


def check_single_kernel(name: str, kernel: Any, names: tuple[str, ...]) -> None:
    """Raise an error unless the parameter `name` is a kernel, one of `names`, or None."""
    if kernel is not None:
        _check_kernel(name, kernel, names, ", or None")


def _check_kernel(parameter: str, kernel: Any, names: tuple[str, ...], otherwise: str) -> None:
    """Raise ValueError unless this is a kernel with possible parameters, or one of `names`."""
    if isinstance(kernel, Kernel):
        _check_hyperparameters(parameter, kernel)
    elif not (isinstance(kernel, str) and kernel in names):
        raise ValueError(
            f"{parameter}={kernel!r} is not a scikit-learn kernel; expected a kernel such as "
            "sklearn.gaussian_process.kernels.Matern(nu=1.5), one of "
            f"{', '.join(map(repr, names))}{otherwise}."
        )


def _check_hyperparameters(given: str, kernel: Kernel) -> None:
    """Raise ValueError if a parameter of a kernel has an impossible value or impossible bounds.

    `given` is the name of the parameter of the estimator.
    """
    params = kernel.get_params()
    if any(isinstance(part, CompoundKernel) for part in (kernel, *params.values())):
        raise ValueError(
            f"{given} contains a CompoundKernel, which is several kernels in one; expected a "
            "single covariance function. Pass a list of kernels, one for each latent process, "
            "or add them."
        )
    for parameter in kernel.hyperparameters:
        value, attribute = params[parameter.name], parameter.name.rsplit("__", 1)[-1]
        # Zero is allowed for noise; fixed parameters of other kernels can have any finite value.
        positive = attribute == "length_scale" or (
            not parameter.fixed and attribute != "noise_level"
        )
        not_negative = positive or attribute in ("noise_level", "constant_value")
        low = np.nextafter(0, 1) if positive else 0.0 if not_negative else -np.inf
        if not _all_between(value, low, np.finfo(float).max):
            sign = "positive numbers" if positive else "numbers of at least 0"
            raise ValueError(
                f"{given} has {parameter.name}={value!r}; expected finite "
                f"{sign if not_negative else 'numbers'}."
            )
        if not parameter.fixed and not _are_bounds(parameter.bounds):
            raise ValueError(
                f"{given} has {parameter.name}_bounds={parameter.bounds.tolist()!r}; expected the "
                'lowest and the highest value, such as (0.1, 10), or "fixed".'
            )
    for name, value in params.items():
        if name.rsplit("__", 1)[-1] == "nu" and not _all_between(value, 1e-9, np.inf):
            raise ValueError(f"{given} has {name}={value!r}; expected a positive number.")


def _all_between(value: Any, low: float, high: float) -> bool:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return False
    return bool(((numbers >= low) & (numbers <= high)).all())


def _are_bounds(bounds: Any) -> bool:
    return (
        np.ndim(bounds) == 2
        and np.shape(bounds)[1] == 2
        and _all_between(bounds, 0.0, np.inf)
        and bool((bounds[:, 0] <= bounds[:, 1]).all())
    )
