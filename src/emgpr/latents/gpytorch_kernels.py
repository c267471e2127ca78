"""Conversion of GPyTorch kernels, recognised by class name to avoid importing torch."""

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

Array = np.ndarray


def as_sklearn_kernel(kernel: Any) -> sk.Kernel:
    """Convert a GPyTorch kernel and its hyper-parameters to a scikit-learn kernel."""
    name = type(kernel).__name__
    if name not in CONVERSIONS:
        raise ValueError(
            f"GPyTorch's {name} cannot be converted to a scikit-learn kernel; expected one of "
            f"{', '.join(CONVERSIONS)}."
        )
    if getattr(kernel, "active_dims", None) is not None:
        raise ValueError(
            f"GPyTorch's {name} depends on some columns only (active_dims), which scikit-learn's "
            "kernels cannot express; use a kernel with a length-scale for each column instead."
        )
    return CONVERSIONS[name](kernel)


def as_number(value: Any) -> float:
    """Convert a parameter with a single value to a float."""
    numbers = _as_numpy(value)
    if numbers.size != 1:
        raise ValueError(
            f"A GPyTorch parameter has shape {numbers.shape}; expected a single number."
        )
    return float(numbers.ravel()[0])


def _as_numpy(value: Any) -> Array:
    tensor = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    return np.asarray(tensor, dtype=float)


def _length_scales(kernel: Any) -> float | Array:
    """Return the length-scale of a kernel, or an array with a length-scale for each column."""
    scales = _as_numpy(kernel.lengthscale)
    if scales.size != scales.shape[-1]:
        raise ValueError(
            f"GPyTorch's length-scales have shape {scales.shape}, as for a batch of models; "
            "expected one length-scale, or one for each column. Pass one model for each output."
        )
    return float(scales.ravel()[0]) if scales.size == 1 else scales.ravel()


CONVERSIONS: dict[str, Callable[[Any], sk.Kernel]] = {
    "RBFKernel": lambda k: sk.RBF(_length_scales(k)),
    "MaternKernel": lambda k: sk.Matern(_length_scales(k), nu=float(k.nu)),
    "RQKernel": lambda k: sk.RationalQuadratic(as_number(k.lengthscale), as_number(k.alpha)),
    "ScaleKernel": lambda k: (
        sk.ConstantKernel(as_number(k.outputscale)) * as_sklearn_kernel(k.base_kernel)
    ),
    "AdditiveKernel": lambda k: reduce(add, map(as_sklearn_kernel, k.kernels)),
    "ProductKernel": lambda k: reduce(mul, map(as_sklearn_kernel, k.kernels)),
}
