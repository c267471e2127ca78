"""The directions of the parameters of a model of separate outputs.

Each output has its own kernel, noise, weight and mean, so that the information matrix F and the
derivatives J of `principal_directions` have a block for each output. The decompositions of F and J
are those of the blocks, and the cost is proportional to the number of outputs.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from emgpr.kernels import distance_scales
from emgpr.noise import NoiseParameters
from emgpr.observations import Observations
from emgpr.prediction.exact import LMCModel
from emgpr.prediction.parameter_uncertainty import ParameterDirections
from emgpr.prediction.principal_directions import (
    EveryDirection,
    every_direction,
    locations_of_derivatives,
)

Array = np.ndarray


def separate_directions(
    information: Sequence[Float[Array, "_ _"]],
    model: LMCModel,
    observations: Observations,
    *,
    mean_variances: Float[Array, " D"] | None = None,
    max_directions: int,
    device: str = "cpu",
) -> ParameterDirections:
    """Return the directions of a model in which latent process d is that of output d only.

    `information` has a matrix for each output, of the log hyper-parameters of its kernel, its noise
    variance and its weights. The directions are those of `principal_directions` for all outputs.
    Direction r of the result contains the r-th direction of every output.
    """
    scale = distance_scales(model.kernels, observations.x.shape[1])
    x, noise = locations_of_derivatives(observations, scale), NoiseParameters(1, correlated=False)
    V = np.zeros(len(model.noise)) if mean_variances is None else mean_variances
    parts = [model.separate_output(d) for d in range(len(model.noise))]
    found = [
        every_direction(
            of_output, part, noise, observations.select_outputs(np.array([d])), x, scale, None,
            V[d : d + 1, None], device,
        )
        for d, (of_output, part) in enumerate(zip(information, parts, strict=True))
    ]  # fmt: skip
    least = _least_value(found, max_directions)
    return _join(
        [
            every.leading(int((every.values >= least).sum()), part, noise)
            for every, part in zip(found, parts, strict=True)
        ]
    )


def _least_value(found: Sequence[EveryDirection], max_directions: int) -> float:
    """Return the smallest singular value of the directions that explain every output's variance.

    All directions of all outputs with larger values are used, but at most `max_directions`.
    """
    numbers = [every.enough() for every in found]
    needed = [every.values[r - 1] for every, r in zip(found, numbers, strict=True) if r]
    values = np.sort(np.concatenate([every.values for every in found]))[::-1]
    return float(max(min(needed, default=np.inf), values[:max_directions].min(initial=np.inf)))


def _join(parts: Sequence[ParameterDirections]) -> ParameterDirections:
    """Join the directions of separate outputs, with a kernel each."""
    D, r = len(parts), max(map(len, parts))
    n_dims = [part.theta.shape[1] for part in parts]
    theta, W = np.zeros((r, sum(n_dims))), np.zeros((r, D, D, parts[0].W.shape[-1]))
    noise, mean = np.zeros((r, D, D)), np.zeros((r, D))
    ends = np.cumsum(n_dims)
    for d, part in enumerate(parts):
        own = slice(None, len(part))
        theta[own, ends[d] - n_dims[d] : ends[d]] = part.theta
        W[own, d, d] = part.W[:, 0, 0]
        noise[own, d, d] = part.noise[:, 0, 0]
        mean[own, d] = part.mean[:, 0]
    return ParameterDirections(
        theta, W, noise, mean, np.concatenate([part.inflation for part in parts])
    )
