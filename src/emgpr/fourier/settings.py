"""Validated settings for a fit with Fourier features."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from emgpr.geo import coordinate_system
from emgpr.kernels import NAMED_KERNELS
from emgpr.parameter_checks import (
    Kernels,
    Transforms,
    check_choice,
    check_count,
    check_kernel,
    check_options,
    check_transform,
    is_auto,
)
from emgpr.transforms import TRANSFORM_NAMES


@dataclass(frozen=True)
class FourierSettings:
    """The parameters of a fit with Fourier features, as passed to the estimator."""

    kernel: Kernels
    n_latents: int | None
    rank: int | None
    noise: Literal["correlated", "independent"]
    box: Any
    tolerance: float
    n_functions: int | Literal["auto"]
    n_start: int
    output_transform: Transforms
    normalize_y: bool
    crs: str | None
    max_iter: int
    n_restarts: int
    n_jobs: int | None
    random_state: Any
    verbose: int

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> "FourierSettings":
        """Validate the parameters of an estimator, and return them as settings."""
        validate_params(params)
        return cls(**params)


def validate_params(params: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter is invalid."""
    options = ("normalize_y", "n_jobs", "random_state", "verbose")
    check_options(**{name: params[name] for name in options})
    for name in ("max_iter", "n_restarts", "n_start"):
        check_count(name, params[name])
    for name in ("rank", "n_latents"):
        if params[name] is not None:
            check_count(name, params[name], " or None")
    if not is_auto(params["n_functions"]):
        check_count("n_functions", params["n_functions"], ' or "auto"')
    check_choice("noise", params["noise"], ("independent", "correlated"))
    box, tolerance = params["box"], params["tolerance"]
    if isinstance(box, str) and box != "auto":
        raise ValueError(f'box={box!r}; expected "auto" or the bounds (lows, highs) of the inputs.')
    if not isinstance(tolerance, Real) or not 0 < float(tolerance) < 1:
        raise ValueError(f"tolerance={tolerance!r}; expected a share between 0 and 1.")
    unbounded = tuple(name for name in TRANSFORM_NAMES if name != "softplus")
    given = params["output_transform"]
    listed = given.values() if isinstance(given, Mapping) else given
    for transform in listed if isinstance(given, Mapping | list | tuple) else [given]:
        check_transform(transform, unbounded)
    if params["crs"] is not None:
        coordinate_system(params["crs"])
    check_kernel(params["kernel"], tuple(NAMED_KERNELS))
