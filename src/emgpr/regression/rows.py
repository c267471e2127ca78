"""The rows of a regression: locations, and values of the outputs that are known there."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray


@dataclass(frozen=True)
class RegressionRows:
    """Locations, and values of the known outputs at these locations, divided by √(their number).

    Locations are in units of the region's extent. `imputed` is the mean variance of the values of a
    row: zero if all of them were measured. Leading axes index several sets of rows.
    """

    x: Float[Array, "*b n P"]
    z: Float[Array, "*b n k"]
    imputed: Float[Array, "*b n"]

    @classmethod
    def build(
        cls,
        x: Float[Array, "n P"],
        known: Float[Array, "n k"],
        variances: Float[Array, "n k"] | None = None,
    ) -> "RegressionRows":
        """Create rows from the standardised known outputs and the variances of imputed values."""
        imputed = np.zeros(len(x)) if variances is None else variances.mean(axis=1)
        return cls(x, known / np.sqrt(known.shape[1]), imputed)

    def __len__(self) -> int:
        return self.x.shape[-2]

    def at(self, rows: Int[Array, "*b m"] | Bool[Array, " n"]) -> "RegressionRows":
        """Return some of the rows, or a batch of them for an array of row numbers."""
        return RegressionRows(self.x[rows], self.z[rows], self.imputed[rows])

    def each(self) -> "RegressionRows":
        """Return a batch of sets with one row each."""
        return RegressionRows(self.x[:, None], self.z[:, None], self.imputed[:, None])
