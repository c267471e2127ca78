"""GPyTorch's kernels in scikit-learn's words, known by their names: torch need not be here."""

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

Array = np.ndarray


def translated(kernel: Any) -> sk.Kernel:
    """The same covariance function, with the hyper-parameters that were learned."""
    name = type(kernel).__name__
    if name not in KNOWN:
        raise ValueError(
            f"GPyTorch's {name} has no counterpart here; a model that is borrowed may have "
            f"{', '.join(KNOWN)}."
        )
    if getattr(kernel, "active_dims", None) is not None:
        raise ValueError(
            f"GPyTorch's {name} looks at some columns only (active_dims), which scikit-learn's "
            "kernels cannot; use a length-scale for each column."
        )
    return KNOWN[name](kernel)


def number(value: Any) -> float:
    """A parameter that is one number."""
    own = numbers(value)
    if own.size != 1:
        raise ValueError(f"GPyTorch's parameter has shape {own.shape}; expected a single number.")
    return float(own.ravel()[0])


def numbers(value: Any) -> Array:
    """A tensor as NumPy's; whatever else as it is."""
    tensor = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    return np.asarray(tensor, dtype=float)


def _scales(kernel: Any) -> float | Array:
    """One length-scale, or one for each column."""
    own = numbers(kernel.lengthscale)
    if own.size != own.shape[-1]:
        raise ValueError(
            f"GPyTorch's length-scales have shape {own.shape}: a batch of models. Give one model "
            "for each output."
        )
    return float(own.ravel()[0]) if own.size == 1 else own.ravel()


KNOWN: dict[str, Callable[[Any], sk.Kernel]] = {
    "RBFKernel": lambda k: sk.RBF(_scales(k)),
    "MaternKernel": lambda k: sk.Matern(_scales(k), nu=float(k.nu)),
    "RQKernel": lambda k: sk.RationalQuadratic(number(k.lengthscale), number(k.alpha)),
    "ScaleKernel": lambda k: sk.ConstantKernel(number(k.outputscale)) * translated(k.base_kernel),
    "AdditiveKernel": lambda k: reduce(add, map(translated, k.kernels)),
    "ProductKernel": lambda k: reduce(mul, map(translated, k.kernels)),
}
