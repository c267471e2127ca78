"""Parameters of a linear model of coregionalisation, and the vector that is optimised."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents import SiteDistances, is_length_scale, search_space
from emgpr.noise import NoiseParameters
from emgpr.observations import Observations
from emgpr.optimize import OptimizeResult

Array = np.ndarray

# Lower bound on the variance of correlated noise, relative to its estimate in step 1. With nearly
# zero variance, correlated noise would let the readings of the other outputs at a site determine
# the reading of an output almost exactly.
MIN_CORRELATED_NOISE = 0.1


@dataclass(frozen=True)
class LMCParameters:
    """Kernels of the latent processes, noise covariance of the outputs, and weights."""

    kernels: tuple[Kernel, ...]
    noise: Float[Array, "D D"]
    W: Float[Array, "Q D k"]
    noise_bounds: Float[Array, "D 2"]
    free: Bool[Array, "Q D k"] | None = None  # weights that are optimised; None: all of them

    def mask_gradient(self, gradient: Float[Array, "*b Q D k"]) -> Float[Array, "*b Q D k"]:
        """Set the gradient with respect to fixed weights to zero."""
        return gradient if self.free is None else gradient * self.free


@dataclass(frozen=True)
class ParameterVector:
    """Conversion between parameters and the vector that is optimised, with bounds and names.

    The vector holds the log hyper-parameters of the kernels, the noise parameters and, if they are
    optimised too, the weights of every member. The weights have no bounds and no names.
    """

    start: LMCParameters  # provides all parameters that are not in the vector
    noise: NoiseParameters
    bounds: Float[Array, "p 2"]
    names: tuple[str, ...]
    listed: tuple[int, ...] = ()  # order of the parameters in messages; empty: that of the vector

    @classmethod
    def around(
        cls,
        start: LMCParameters,
        observations: Observations,
        distances: SiteDistances | None = None,
        *,
        correlated: bool,
        output_names: Sequence[str] | None = None,
        latent_numbers: Sequence[int] | Int[Array, " Q"] | None = None,
        output_columns: Sequence[int] | Int[Array, " D"] | None = None,
        min_length_factor: float = 1.0,
    ) -> "ParameterVector":
        """Create a vector with bounds set by the user or, by default, derived from `distances`.

        These are the distances between some sites or, by default, between all sites of the table.
        The lower bounds of length-scales are multiplied by `min_length_factor`. Messages refer to
        the latent processes by `latent_numbers`, and list the outputs in the order of
        `output_columns`, the columns of the user's table.
        """
        D = observations.n_outputs
        noise = NoiseParameters(D, correlated)
        if distances is None:
            distances = SiteDistances.in_table(observations)
        spaces = [
            search_space(kernel, None, distances, 1, np.random.default_rng(0))
            for kernel in start.kernels
        ]
        is_scale = [
            is_length_scale(kernel, name.partition("[")[0])
            for kernel, space in zip(start.kernels, spaces, strict=True)
            for name in space.names[:-1]
        ]
        low, high = np.concatenate([space.bounds[:-1] for space in spaces]).T
        low = np.where(is_scale, np.minimum(low + np.log(min_length_factor), high), low)
        noise_bounds = _noise_bounds(start, noise, observations.constant)
        bounds = np.concatenate([np.column_stack([low, high]), noise_bounds])
        numbers = range(len(spaces)) if latent_numbers is None else latent_numbers
        columns = range(D) if output_columns is None else output_columns
        numbered = [(q, n) for q, s in zip(numbers, spaces, strict=True) for n in s.names[:-1]]
        names = [
            *(f"latent {q}'s {name}" for q, name in numbered),
            *(f"the noise of output {name!r}" for name in output_names or range(D)),
        ]
        correlation = "a correlation between noises (set noise='independent' if sites are few)"
        n_correlations = noise.size - D
        names += [correlation] * n_correlations
        places = [*((0, q) for q, _ in numbered), *((1, column) for column in columns)]
        places += [(2, 0)] * n_correlations
        in_order = latent_numbers is None and output_columns is None
        listed = () if in_order else tuple(sorted(range(len(names)), key=lambda i: places[i]))
        return cls(start, noise, bounds, tuple(names), listed)

    @cached_property
    def kernel_sizes(self) -> tuple[int, ...]:
        """Number of log hyper-parameters of each kernel."""
        return tuple(kernel.n_dims for kernel in self.start.kernels)

    @property
    def n_kernel_parameters(self) -> int:
        """Number of log hyper-parameters of the kernels, which come first in the vector."""
        return sum(self.kernel_sizes)

    def pack(
        self, parameters: LMCParameters, W: Float[Array, "..."] | None = None
    ) -> Float[Array, " p"]:
        """Return the vector of the kernel and noise parameters and, if given, the weights."""
        thetas = [kernel.theta for kernel in parameters.kernels]
        weights = np.empty(0) if W is None else W.ravel()
        return np.concatenate([*thetas, self.noise.vector(parameters.noise), weights])

    def split(
        self, vector: Float[Array, " p"], W: Float[Array, "..."]
    ) -> tuple[list[Array], Float[Array, " n"], Float[Array, "..."]]:
        """Return the log hyper-parameters of each kernel, the noise parameters and the weights.

        `W` is returned as the weights if the vector contains none.
        """
        ends = np.cumsum([*self.kernel_sizes, self.noise.size])
        *thetas, noise, weights = np.split(vector, ends)
        return thetas, noise, weights.reshape(W.shape) if len(weights) else W

    def unpack(
        self, vector: Float[Array, " p"], W: Float[Array, "..."]
    ) -> tuple[LMCParameters, Float[Array, "..."]]:
        """Return the parameters and weights in a vector; if it contains no weights, return `W`."""
        thetas, noise, W = self.split(vector, W)
        pairs = zip(self.start.kernels, thetas, strict=True)
        kernels = tuple(kernel.clone_with_theta(theta) for kernel, theta in pairs)
        return replace(self.start, kernels=kernels, noise=self.noise.matrix(noise)), W

    def bounds_around(self, vector: Float[Array, " p"]) -> Float[Array, "p 2"]:
        """Return bounds for every element of a vector, extended to include that element.

        An initial value, such as the alpha of an external regressor, can lie outside its bounds.
        """
        n = len(self.bounds)
        low, high = np.full(len(vector), -np.inf), np.full(len(vector), np.inf)
        low[:n] = np.minimum(self.bounds[:, 0], vector[:n])
        high[:n] = np.maximum(self.bounds[:, 1], vector[:n])
        return np.column_stack([low, high])

    def describe_end(self, result: OptimizeResult, max_iter: int) -> str:
        """Describe why a search did not converge or which bounds it reached ("" if neither)."""
        parts = []
        if result.nonfinite[0]:
            parts.append(
                "the likelihood could not be evaluated near one point; the search continued from "
                "the best point found"
            )
        elif not result.converged[0]:
            parts.append(f"it did not converge within max_iter={max_iter}; increase max_iter")
        n = len(self.bounds)
        fixed = self.bounds[:, 0] == self.bounds[:, 1]
        at_bound = result.at_bound[0][:n] & ~fixed
        upper = result.x[0][:n] >= self.bounds.mean(axis=1)
        # If one of several length-scales is at its upper bound, its input column is irrelevant.
        per_column = [name.endswith("]") for name in self.names]
        at_bound &= ~(upper & per_column)
        ended = dict.fromkeys(self.names[i] for i in self.listed or range(n) if at_bound[i])
        if ended:
            parts.append(f"the search ended at a bound of {', '.join(ended)}")
        return "; ".join(parts)


def _noise_bounds(
    start: LMCParameters, noise: NoiseParameters, constant: Bool[Array, " D"]
) -> Float[Array, "p 2"]:
    """Return the bounds of the noise parameters; the noise of constant outputs is uncorrelated."""
    variances = start.noise_bounds.copy()
    if not noise.correlated:
        return noise.bounds(variances)
    low = np.minimum(MIN_CORRELATED_NOISE * np.diagonal(start.noise), variances[:, 1])
    variances[:, 0] = np.maximum(variances[:, 0], low)
    bounds = noise.bounds(variances)
    row, column = np.tril_indices(noise.D, -1)
    bounds[noise.D :][constant[row] | constant[column]] = 0.0
    return bounds
