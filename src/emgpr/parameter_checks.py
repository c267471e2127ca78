"""Checks of parameters that all estimators have, and the assignment of kernels to outputs."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr.kernels import NAMED_KERNELS
from emgpr.latents import is_length_scale
from emgpr.observations import Observations

Kernels: TypeAlias = Kernel | Sequence[Kernel] | str | None
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
        kernels = [clone(given[i % n_latents]) for i in range(max(D, n_latents))]
    for kernel in kernels:
        for parameter in kernel.hyperparameters:
            n = parameter.n_elements
            if is_length_scale(kernel, parameter.name) and n not in (1, P):
                raise ValueError(
                    f"kernel {kernel} has {n} length-scales and X has {P} columns; pass one "
                    "length-scale for all columns, or one for each."
                )
    return kernels


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
    if not isinstance(verbose, Real):
        raise ValueError(f"verbose={verbose!r}; expected 0, or 1 to show progress.")


def check_transform(transform: Transforms, names: tuple) -> None:
    """Raise ValueError if an output transform is a string that is not one of `names`."""
    if isinstance(transform, str) and transform not in names:
        raise ValueError(
            f"output_transform={transform!r}; expected one of {', '.join(map(repr, names))}, a "
            "scikit-learn transformer, a list with one of these for each output, or a dict that "
            "maps outputs to them."
        )


def check_kernel(given: Kernels, names: tuple[str, ...]) -> None:
    """Raise an error unless `given` is a kernel, a list of kernels, one of `names`, or None."""
    listed = isinstance(given, list | tuple)
    kernels: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    for kernel in kernels:
        named = kernel is None or (isinstance(kernel, str) and kernel in names)
        if not isinstance(kernel, Kernel) and (listed or not named):
            raise ValueError(
                f"kernel={kernel!r} is not a scikit-learn kernel; expected a kernel such as "
                "sklearn.gaussian_process.kernels.Matern(nu=1.5), a list of kernels, or one of "
                f"{', '.join(map(repr, names))}."
            )
