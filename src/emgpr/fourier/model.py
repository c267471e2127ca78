"""Linear model of coregionalisation with Fourier features, and the region where it is valid."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.covariance import coregionalization, variance_shares
from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.resolution import kernel_variances
from emgpr.row_numbers import rows_from_zero
from emgpr.weights import LMCParameters

Array = np.ndarray

MAX_INPUTS = 3  # The number of features grows exponentially with the number of inputs.
PADDING = 0.05  # width added on every side of the box, as a share of its extent
# Predictions are allowed outside the padded box up to this share of the gap to its nearest periodic
# copy, where covariances with the copy are still negligible.
ALLOWED_GAP = 0.25


@dataclass(frozen=True)
class FourierModel:
    """Parameters, features, and the box of kernel coordinates in which the model is valid."""

    parameters: LMCParameters
    features: FourierFeatures
    box: Float[Array, "2 P"]
    coordinate_names: tuple[str, ...]

    @cached_property
    def truncated_covariance(self) -> Float[Array, "D D"]:
        """The part of the outputs' covariance at a location that the features do not represent."""
        truncated = self.features.truncated_variances(self.parameters.kernels)
        return np.einsum("qde,q->de", coregionalization(self.parameters.W), truncated)

    @property
    def truncated_shares(self) -> Float[Array, " D"]:
        """Share of every output's variance that the features leave out."""
        parameters = self.parameters
        variances = kernel_variances(parameters.kernels, self.box.shape[1])
        signal = np.einsum("qdd,q->d", coregionalization(parameters.W), variances)
        return np.diagonal(self.truncated_covariance) / (signal + np.diagonal(parameters.noise))

    def check_region(self, x: Float[Array, "M P"]) -> None:
        """Raise ValueError if a location is so far outside the box that features repeat there."""
        low, high = pad(self.box)
        periods = np.array(self.features.grid.period) / max(self.features.strides)
        room = ALLOWED_GAP * (periods - (high - low))
        outside = (x < low - room) | (x > high + room)
        if not outside.any():
            return
        rows = np.flatnonzero(outside.any(axis=1))
        p = int(np.argmax(outside[rows[0]]))
        names = self.coordinate_names
        what = f"column {names[p]!r}" if len(names) == x.shape[1] else f"coordinate {p}"
        raise ValueError(
            f"{len(rows)} of {len(x)} locations are too far outside the box of the model. The "
            f"first is {rows_from_zero(rows[:1])}, where {what} is {x[rows[0], p]:g}; in the box, "
            f"it ranges from {self.box[0, p]:g} to {self.box[1, p]:g}. Leave these locations out, "
            "or fit with a box=(lows, highs) that contains all locations."
        )


def check_box(box: Any, corners: Float[Array, "2 P"]) -> Float[Array, "2 P"]:
    """Return the corners of the given box, or of the data if `box` is "auto"."""
    P = corners.shape[1]
    if P > MAX_INPUTS:
        raise ValueError(
            f"The model would have {P} input columns; expected at most {MAX_INPUTS}, because the "
            "number of Fourier features grows exponentially with the number of columns. Use EMGPR, "
            "or fewer columns."
        )
    if not isinstance(box, str):
        corners = np.array(box, dtype=float)
        if corners.shape != (2, P):
            raise ValueError(
                f"box has shape {corners.shape}; expected (2, {P}): the lowest and the highest "
                "value of each input."
            )
    for p, (low, high) in enumerate(corners.T):
        if not (low < high and np.isfinite(high - low)):
            raise ValueError(
                f"Input {p} ranges from {low:g} to {high:g}; expected a range of positive length. "
                "Remove an input that is constant, or pass box=(lows, highs) if it will vary in "
                "later chunks."
            )
    return corners


def pad(box: Float[Array, "2 P"]) -> Float[Array, "2 P"]:
    """Extend a box on every side by `PADDING` times its extent."""
    padding = PADDING * np.ptp(box, axis=0)
    return box + np.stack([-padding, padding])


def latent_shares(parameters: LMCParameters, n_inputs: int) -> Float[Array, "D Q"]:
    """Return the share of every output's variance that comes from each latent process."""
    origin = np.zeros((1, n_inputs))
    return variance_shares(parameters.kernels, parameters.W[None], parameters.noise, origin)[:, :-1]
