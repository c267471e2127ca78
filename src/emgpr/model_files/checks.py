"""Checks that the shapes and values in a model file describe a valid fitted model.

A checksum detects accidental damage, but not a file that was forged with a new checksum. Everything
that predictions depend on is therefore checked.
"""

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import eigvalsh
from emgpr.geo import n_input_columns
from emgpr.kernels import kernel_matrix
from emgpr.persistence import ModelFileError
from emgpr.transforms import (
    Bounded,
    Composition,
    FittedTransformer,
    Link,
    NormalScore,
    OutputScaler,
    PointMass,
    Transform,
    YeoJohnson,
)

Array = np.ndarray

MAX_VALUE = 1e154  # The square of this value is finite. Values in validated tables are smaller.
INTEGER_ARRAYS = ("batches", "top", "waves", "strides")
UNBOUNDED_ARRAYS = ("noise_bounds",)  # Upper bounds can be infinite.


def expect(condition: bool, message: str) -> None:
    """Raise `ModelFileError` with the given message unless the condition holds."""
    if not condition:
        raise ModelFileError(message)


def expect_fields(found: Set[str], known: Set[str]) -> None:
    """Raise `ModelFileError` if a known field is missing or an unknown field is present."""
    if found != known:
        raise ModelFileError(f"the fields {sorted(found ^ known)} are missing or unknown")


def expect_type(state: dict[str, Any], name: str, *types: type) -> Any:
    """Return a field of the state; raise `ModelFileError` unless it has one of the given types."""
    value = state[name]
    # In Python, a bool is an int, but a bool is not a valid count.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        expected = " or ".join(kind.__name__ for kind in types)
        raise ModelFileError(f"{name!r} is {shown(value)}; expected {expected}")
    return value


def shown(value: Any) -> str:
    """Return a scalar as a string, but only the type of any other value, which could be huge."""
    is_scalar = value is None or isinstance(value, bool | int | float)
    return repr(value) if is_scalar else f"{type(value).__name__}"


def expect_array(name: str, array: Any, shape: Sequence[str | int], axes: dict[str, int]) -> None:
    """Check the type, the shape and the finiteness of an array.

    `shape` contains a length or a letter for each axis. Axes with the same letter must have the
    same length in all arrays. `axes` collects the lengths found for each letter.
    """
    expect(isinstance(array, Array), f"{name!r} is not an array")
    integers = name in INTEGER_ARRAYS
    valid = array.dtype.kind in "iu" if integers else array.dtype == np.float64
    expect(valid, f"{name!r} contains {array.dtype}")
    known = [axes.get(str(axis), axis) for axis in shape]
    if array.ndim != len(shape) or any(
        (axis if isinstance(axis, int) else axes.setdefault(axis, n)) != n
        for axis, n in zip(shape, array.shape, strict=True)
    ):
        raise ModelFileError(f"{name!r} has shape {array.shape}; expected {tuple(known)}")
    # NaN in y denotes a missing reading.
    extremes = (np.fmin, np.fmax) if name == "y" else (np.minimum, np.maximum)
    low, high = (extreme.reduce(array, axis=None, initial=0) for extreme in extremes)
    bound = np.inf if name in UNBOUNDED_ARRAYS else MAX_VALUE
    expect(low > -MAX_VALUE and high <= bound, f"{name!r} contains NaN or infinite values")


def check_settings(settings: dict[str, Any]) -> None:
    """Check the parameters that the estimator itself does not validate."""
    for name, value in settings.items():
        is_array = isinstance(value, Array) and name != "output_transform"
        expect(not is_array, f"{name!r} is an array")
    settings.setdefault("crs", None)  # Older files lack this parameter.
    expect_type(settings, "crs", str, type(None))
    expect_type(settings, "verbose", int, bool, np.integer)
    expect_type(settings, "n_jobs", int, np.integer, type(None))
    # With a checkpoint, refitting a forged model could overwrite any file.
    expect(settings.get("checkpoint") is None, "'checkpoint' is set")


def check_scaler(scaler: OutputScaler, D: int) -> None:
    """Check that each output has a name and a valid transform."""
    transforms = scaler.transforms
    valid = isinstance(transforms, tuple) and len(transforms) == D
    expect(valid, f"the number of transforms is not {D}")
    expect(bool((scaler.scale > 0).all()), "a scale is not positive")
    for d, transform in enumerate(transforms):
        _check_transform(transform, float(scaler.shift[d]))
    expect(isinstance(scaler.one_dimensional, bool), "'one_dimensional' is neither true nor false")
    expect(D == 1 or not scaler.one_dimensional, "a one-dimensional y has several outputs")
    check_names("output names", scaler.names, D)
    for whole in scaler.compositions:
        valid = isinstance(whole, Composition) and whole.total > 0 and len(whole.outputs) > 1
        expect(valid and set(whole.outputs) <= set(range(D)), "a composition is invalid")
    specs = scaler.specs
    expect(isinstance(specs, tuple) and len(specs) == D, "not every output has a transform")


def check_names(what: str, names: Any, n: int) -> None:
    """Check that each column has a name."""
    valid = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    expect(valid, f"{what} are not strings")
    expect(len(names) == n, f"there are {len(names)} {what} for {n} columns")


def check_feature_names(names: Any, n_kernel_columns: int, crs: str | None) -> int:
    """Check the names of the input columns, if there are any, and return the number of columns."""
    n = n_input_columns(n_kernel_columns, crs)
    expect(crs is None or n >= 2, "the inputs lack a coordinate")
    if names is not None:
        check_names("feature names", names, n)
    return n


def check_history(state: dict[str, Any]) -> None:
    """Check that each stage of an optimisation has a description and a log-likelihood."""
    for stage in expect_type(state, "history", list, type(None)) or []:
        is_pair = isinstance(stage, tuple) and len(stage) == 2
        valid = is_pair and isinstance(stage[0], str) and isinstance(stage[1], float)
        expect(valid, f"'history' contains {shown(stage)}")


def check_integers(name: str, numbers: Any, n: int) -> None:
    """Check that the numbers are distinct integers from 0 to n − 1."""
    integers = isinstance(numbers, Array) and numbers.ndim == 1 and numbers.dtype.kind in "iu"
    expect(integers and len(numbers) <= n, f"{name!r} are not an array of at most {n} integers")
    inside = bool((numbers >= 0).all() and (numbers < n).all())
    distinct = len(np.unique(numbers)) == len(numbers)
    expect(inside and distinct, f"{name!r} are not distinct integers from 0 to {n - 1}")


def check_noise(noise: Array, variances: Array) -> None:
    """Check that `noise` is a covariance matrix, and that `variances` are not negative."""
    positive = bool((np.diagonal(noise) >= 0).all() and (variances >= 0).all())
    expect(positive, "a noise variance is negative")
    rounding = 1e-8 * noise.max()
    expect(bool((np.abs(noise - noise.T) <= rounding).all()), "the noise is not symmetric")
    definite = bool(eigvalsh(noise).min() >= -rounding)
    expect(definite, "the noise is not a covariance matrix")


def check_kernels(name: str, kernels: Any, n: int, x: Array) -> None:
    """Check that there are n kernels, and that each is a covariance function at the inputs x."""
    expect(isinstance(kernels, list) and len(kernels) == n, f"the number of {name} is not {n}")
    probe = x[:3]
    for kernel in kernels:
        expect(isinstance(kernel, Kernel), f"{shown(kernel)} is not a kernel")
        with np.errstate(all="ignore"):
            K, variance = kernel_matrix(kernel, probe), kernel.diag(probe)
        valid = K.shape == (len(probe), len(probe)) and variance.shape == (len(probe),)
        expect(valid and bool(np.isfinite(K).all()), f"{kernel} is not a covariance function")
        expect(bool((variance >= 0).all()), f"{kernel} has a negative variance")


def _check_transform(transform: Any, u: float) -> None:
    """Check that a transform is valid, and invertible at u, the mean of transformed readings."""
    expect(isinstance(transform, Transform), f"{shown(transform)} is not a transform")
    if isinstance(transform, Bounded):
        link, masses = transform.link, (transform.at_lower, transform.at_upper)
        expect(isinstance(link, Link) and link.width > 0, "the width of a transform is invalid")
        expect(link.lower < link.upper, "the bounds of a transform are invalid")
        expect(all(isinstance(m, PointMass | None) for m in masses), "a mass is invalid")
        _check_transform(transform.shape, 0.0)
    if isinstance(transform, YeoJohnson):
        valid = transform.spread > 0 and 0 <= transform.power <= 2
        expect(valid, f"{transform} is not a valid transform")
    if isinstance(transform, NormalScore):
        for name, knots in (("values", transform.values), ("scores", transform.scores)):
            expect_array(f"normal-score {name}", knots, ["J"], {"J": len(transform.values)})
            increasing = len(knots) > 1 and bool((np.diff(knots) > 0).all())
            expect(increasing, f"normal-score {name} do not increase")
    if isinstance(transform, FittedTransformer):
        valid = transform.unit > 0 and abs(transform.sign) == 1
        expect(valid, "the sign or unit of a transform is invalid")
        u = float(np.clip(u, transform.low, transform.high))
    y = transform.inverse(np.array([u]))
    defined = np.isfinite(y) & np.isfinite(transform.forward(y))
    expect(bool(defined.all()), f"{transform} is undefined at the mean of its readings")
