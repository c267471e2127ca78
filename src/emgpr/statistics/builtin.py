"""The statistics that come with the package."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from emgpr.parameter_checks import with_string_keys
from emgpr.prediction import GaussianMixture
from emgpr.statistics.base import Statistic
from emgpr.transforms import OutputScaler

Array = np.ndarray

CENTRES = {"median": OutputScaler.median, "mean": OutputScaler.mean}


def unknown_centre(statistic: str) -> ValueError:
    """Return the error to raise for a `statistic` that is not in `CENTRES`."""
    expected = " or ".join(map(repr, CENTRES))
    return ValueError(f"statistic={statistic!r}; expected {expected}.")


def covariances(scaler: OutputScaler, distribution: GaussianMixture) -> Float[Array, "D M D"]:
    """Return the covariances between all outputs at each location."""
    return np.moveaxis(scaler.covariance(distribution), 1, 0)


class Centre(Statistic):
    """The centre of the distribution: the median or the mean."""

    suffix: ClassVar[str] = ""

    def __init__(self, statistic: str) -> None:
        if statistic not in CENTRES:
            raise unknown_centre(statistic)
        self.statistic = statistic

    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "1 M D"]:
        """Return the centre in original units."""
        return CENTRES[self.statistic](scaler, distribution)[None]

    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a description such as "median of Cd"."""
        return f"{self.statistic} of {name}"


class StandardDeviation(Statistic):
    """The standard deviation of each output."""

    suffix: ClassVar[str] = "_std"

    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "1 M D"]:
        """Return the standard deviations in original units."""
        return scaler.std(distribution)[None]

    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a description such as "standard deviation of Cd"."""
        return f"standard deviation of {name}"


class Quantiles(Statistic):
    """The quantiles of each output for given probabilities."""

    suffix: ClassVar[str] = "_quantiles"
    axis: ClassVar[str | None] = "quantile"

    def __init__(self, q: Any, parameter: str = "quantiles") -> None:
        self.q = np.atleast_1d(np.asarray(q, dtype=float))
        self.n_values = len(self.q)
        if self.q.ndim > 1 or not ((self.q > 0) & (self.q < 1)).all():
            raise ValueError(f"{parameter}={q!r}; expected probabilities between 0 and 1.")

    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "k M D"]:
        """Return the quantiles in original units."""
        return scaler.quantiles(distribution, self.q)

    def columns(self, name: str, d: int) -> list[str]:
        """Return a name such as Cd_q0.95 for each probability."""
        return [f"{name}_q{p:g}" for p in self.q]

    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a description such as "quantiles of Cd"."""
        return f"quantiles of {name}"

    def coordinate(self) -> dict[str, Any]:
        """Return the coordinate along the axis of probabilities."""
        attributes = {"long_name": "probability to be below", "units": "1"}
        return {"quantile": (("quantile",), self.q, attributes)}


class Exceedance(Statistic):
    """The probability that each output exceeds its threshold; NaN stands for no threshold."""

    suffix: ClassVar[str] = "_exceedance"

    def __init__(self, thresholds: Float[Array, " D"]) -> None:
        self.thresholds = thresholds

    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "1 M D"]:
        """Return the probability of exceedance for each output."""
        return scaler.exceedance(distribution, self.thresholds)[None]

    def applies_to(self, d: int) -> bool:
        """Tell whether output d has a threshold."""
        return not np.isnan(self.thresholds[d])

    def columns(self, name: str, d: int) -> list[str]:
        """Return a name such as Cd_above_0.8."""
        return [f"{name}_above_{self.thresholds[d]:g}"]

    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a description with the threshold and its unit."""
        threshold = f"{self.thresholds[d]:g} {units.get(name, '')}".strip()
        return f"probability that {name} is above {threshold}"

    def unit(self, name: str, units: Mapping[str, str]) -> str | None:
        """Return the unit of a probability."""
        return "1"


def threshold_per_output(
    given: Any, outputs: Sequence[str], parameter: str = "exceedance"
) -> Float[Array, " D"]:
    """Return a threshold for each output; NaN for outputs that are missing from a dict.

    `parameter` is the name of the parameter in error messages.

    >>> threshold_per_output({"Cd": 0.8}, ["Cd", "Zn"])
    array([0.8, nan])
    """
    if isinstance(given, Mapping):
        given = with_string_keys(given, parameter)
        unknown = [name for name in given if name not in outputs]
        if unknown or not given:
            raise ValueError(
                f"{parameter} has thresholds for {unknown}; expected names of outputs, which are "
                f"{list(outputs)}."
            )
        given = [given.get(name, np.nan) for name in outputs]
    thresholds = np.asarray(given, dtype=float)
    if thresholds.shape not in ((), (len(outputs),)):
        raise ValueError(
            f"{parameter} has shape {thresholds.shape}; expected one threshold for all outputs, or "
            f"{len(outputs)}: one for each."
        )
    return np.broadcast_to(thresholds, (len(outputs),))
