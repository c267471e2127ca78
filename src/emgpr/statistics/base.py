"""The interface for statistics of a predictive distribution."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from emgpr.prediction import GaussianMixture
from emgpr.transforms import OutputScaler

Array = np.ndarray


class Statistic(ABC):
    """One or several values that summarise the distribution of every output at a location.

    In a map, the name of the variable is the name of the output followed by `suffix`. If there are
    several values, `axis` is the name of their dimension.
    """

    suffix: ClassVar[str]
    axis: ClassVar[str | None] = None
    n_values: int = 1  # number of values for each output

    @abstractmethod
    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "k M D"]:
        """Return the values at each location, in original units."""

    @abstractmethod
    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a short description of the values of output d."""

    def applies_to(self, d: int) -> bool:
        """Tell whether the statistic was requested for output d."""
        return True

    def columns(self, name: str, d: int) -> list[str]:
        """Return the column names of the statistic in a frame of predictions."""
        return [name + self.suffix]

    def unit(self, name: str, units: Mapping[str, str]) -> str | None:
        """Return the unit of the values, by default that of the output; None if unknown."""
        return units.get(name)

    def coordinate(self) -> dict[str, Any]:
        """Return the coordinate along `axis`, in the form that xarray expects."""
        return {}
