"""Parameters of a Gaussian process regression network, and the problem that a fit solves."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import RBF

from emgpr.kernels import Pairs, Pullback, evaluate_kernel
from emgpr.latents import SiteDistances, search_space, typical_distances
from emgpr.observations import Observations

Array = np.ndarray

NOISE_BOUNDS = (1e-5, 10.0)  # noise variances of standardised outputs
VARIANCE_BOUNDS = (1e-4, 1e2)  # prior variance of the weights
# Bounds of the length-scale of the weights, relative to the extent of the region. Weights that
# change over shorter distances would represent the readings themselves.
WEIGHT_SCALE_BOUNDS = (0.05, 20.0)


@dataclass(frozen=True)
class NetworkParameters:
    """Length-scales of the nodes, prior of the weights, and noise variances.

    The length-scale of constant weights is infinite.
    """

    length_scales: Float[Array, " Q"]
    weight_length_scale: float
    weight_variance: Float[Array, "D Q"]
    noise: Float[Array, " D"]

    @property
    def constant_weights(self) -> bool:
        """Whether the weights are the same at all locations."""
        return bool(np.isinf(self.weight_length_scale))

    def select_outputs(self, which: Int[Array, " d"]) -> "NetworkParameters":
        """Return the parameters of these outputs, in this order."""
        variance, noise = self.weight_variance[which], self.noise[which]
        return replace(self, weight_variance=variance, noise=noise)


@dataclass(frozen=True)
class NetworkKernels:
    """Kernels of the nodes and of the weights, RBF or Matérn; only their form is used."""

    nodes: RBF = field(default_factory=RBF)
    weights: RBF = field(default_factory=RBF)

    def of_nodes(self, length_scales: Float[Array, " Q"]) -> list[RBF]:
        """Return the kernel of each node."""
        return [with_length_scale(self.nodes, float(scale)) for scale in length_scales]

    def of_weights(self, length_scale: float) -> RBF | None:
        """Return the kernel of the weights, None if they are constant."""
        return None if np.isinf(length_scale) else with_length_scale(self.weights, length_scale)


def with_length_scale(kernel: RBF, length_scale: float) -> RBF:
    """Return a kernel of the same form with this length-scale.

    >>> with_length_scale(RBF(1.0, "fixed"), 3.0).theta.round(3)
    array([1.099])
    """
    changed = kernel.get_params() | {"length_scale": length_scale}
    return type(kernel)(**changed | {"length_scale_bounds": (1e-5, 1e5)})


@dataclass(frozen=True)
class NetworkProblem:
    """Standardised readings, kernels and constraints of the parameters."""

    observations: Observations
    kernels: NetworkKernels = field(default_factory=NetworkKernels)
    equal_noise: bool = False
    equal_variances: bool = False  # of the weights

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs of sites."""
        return Pairs(self.observations.x)

    @cached_property
    def n_readings(self) -> Float[Array, " D"]:
        """Number of readings of each output."""
        return self.observations.observed.sum(axis=1).astype(float)

    @cached_property
    def node_bounds(self) -> Float[Array, " 2"]:
        """Bounds of the logarithm of the length-scales of the nodes."""
        kernel = self.kernels.nodes
        if kernel.hyperparameter_length_scale.fixed:
            return np.log(np.full(2, float(kernel.length_scale)))
        distances = SiteDistances.in_table(self.observations)
        space = search_space(kernel, None, distances, 1, np.random.default_rng(0))
        return space.bounds[0]

    @cached_property
    def weight_bounds(self) -> Float[Array, " 2"]:
        """Bounds of the logarithm of the length-scale of the weights."""
        kernel, extent = self.kernels.weights, typical_distances(self.observations.x)[1]
        if kernel.hyperparameter_length_scale.fixed:
            return np.log(np.full(2, float(kernel.length_scale)))
        if np.allclose(kernel.length_scale_bounds, type(kernel)().length_scale_bounds):
            return np.log(extent * np.array(WEIGHT_SCALE_BOUNDS))
        return np.log(np.array(kernel.length_scale_bounds, dtype=float))

    def node_covariances(
        self, length_scales: Float[Array, " Q"]
    ) -> tuple[Float[Array, "Q N N"], Pullback]:
        """Return the prior covariance of each node, and its pullback."""
        kernel = with_length_scale(self.kernels.nodes, 1.0)
        return evaluate_kernel(kernel, np.log(length_scales)[:, None], self.pairs)

    def weight_scale_gradient(self, length_scale: float, G: Float[Array, "N N"]) -> float:
        """Return the derivative with respect to the log length-scale of the weights.

        G is the derivative with respect to the kernel matrix of the weights.
        """
        kernel = with_length_scale(self.kernels.weights, length_scale)
        return float(evaluate_kernel(kernel, kernel.theta, self.pairs)[1](G)[0])
