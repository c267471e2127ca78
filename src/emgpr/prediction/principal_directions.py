"""The few directions in the space of parameters that matter for predictions.

The posterior covariance of the parameters is approximated by C = (F + Λ)⁻¹, where F is the
information matrix, including the curvature of the priors, at the optimum. The diagonal matrix Λ is
a weak prior: the readings may determine some parameters, or combinations of them, hardly or not at
all, and the posterior mean is linear in the parameters only close to the optimum.

Let J be the derivatives of the posterior means at some locations with respect to all parameters,
divided by the standard deviations of the signals. With the singular value decomposition
J C^½ = U S Vᵀ, the directions are the columns of C^½ V with the largest singular values. The
weights are determined only up to a rotation, which changes no prediction. Such changes have
singular values of zero. The inflation of variances is computed at the same locations, from the
derivatives of the variances with respect to all parameters.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import block_diag

from emgpr.arrays import eigh, svd
from emgpr.kernels import distance_scales
from emgpr.noise import NoiseParameters
from emgpr.observations import Observations
from emgpr.prediction.exact import LMCModel
from emgpr.prediction.neighbours import differentiate_group
from emgpr.prediction.parameter_uncertainty import (
    ParameterBasis,
    ParameterDirections,
    parameters_of,
)

Array = np.ndarray

# Standard deviations in Λ, of log hyper-parameters and noise parameters, and of the weights of
# standardised outputs.
LOG_PRIOR_STD, WEIGHT_PRIOR_STD = 1.0, 1.0
MAX_LOG_VARIANCE = 1.0  # largest posterior variance of the logarithm of a variance
EXPLAINED = 0.99  # share of each output's variance due to the parameters that is explained
MAX_DIRECTIONS = 20
N_SITES = 50  # sites at which the derivatives are computed, in addition to as many other locations
N_NEIGHBOURS = 16  # readings of each output that these predictions are conditioned on
MIN_STD = 1e-3  # smallest standard deviation of a signal that derivatives are divided by
# Smallest variance of a signal, relative to its prior variance, that derivatives of variances are
# divided by: smaller ones are differences of nearly equal numbers, and rounding errors matter.
MIN_VARIANCE_SHARE = 1e-2


def principal_directions(
    information: Float[Array, "p p"],
    model: LMCModel,
    noise: NoiseParameters,
    observations: Observations,
    *,
    free: Bool[Array, " p"] | None = None,
    mean_covariance: Float[Array, "D D"] | None = None,
    max_directions: int = MAX_DIRECTIONS,
    device: str = "cpu",
) -> ParameterDirections:
    """Return the directions that explain most of the uncertainty of predictions.

    The parameters are the log hyper-parameters of all kernels, the noise parameters and the weights
    of a model with one member, in this order. Parameters that are not `free` are known. The means
    of the outputs are known unless `mean_covariance`, their posterior covariance, is given.
    """
    scale = distance_scales(model.kernels, observations.x.shape[1])
    x = locations_of_derivatives(observations, scale)
    every = every_direction(
        information, model, noise, observations, x, scale, free, mean_covariance, device
    )
    return every.leading(min(every.enough(), max_directions), model, noise)


class EveryDirection(NamedTuple):
    """All directions C^½ V, in the order of their singular values."""

    values: Float[Array, " r"]
    explained: Float[Array, "D r"]  # of each output's variance due to the parameters
    changes: Float[Array, "r p"]  # of the parameters, then of the means
    inflation: Float[Array, " D"]

    def enough(self) -> int:
        """Return the number of directions that explain the variance of every output."""
        if not self.values.any():
            return 0
        # For each output, since one with little signal could dominate the sum over all outputs.
        share = np.cumsum(self.explained, axis=1)
        return int((share < EXPLAINED * share[:, -1:]).sum(axis=1).max()) + 1

    def leading(self, r: int, model: LMCModel, noise: NoiseParameters) -> ParameterDirections:
        """Return the first r directions."""
        (W,), D = model.weights, len(model.noise)
        first = sum(model.n_dims)
        last = self.changes.shape[1] - D
        theta, nu, of_W, mean = np.split(
            self.changes[:r], [first, first + noise.size, last], axis=1
        )
        half = 0.5 * np.tensordot(nu, noise.derivatives(noise.vector(model.noise)), axes=1)
        of_noise = half + np.swapaxes(half, 1, 2)  # exactly symmetric, whatever the rounding errors
        return ParameterDirections(theta, of_W.reshape(r, *W.shape), of_noise, mean, self.inflation)


def every_direction(
    information: Float[Array, "p p"],
    model: LMCModel,
    noise: NoiseParameters,
    observations: Observations,
    x: Float[Array, "M P"],
    scale: Float[Array, " P"],
    free: Bool[Array, " p"] | None,
    mean_covariance: Float[Array, "D D"] | None,
    device: str,
) -> EveryDirection:
    """Return all directions, and the inflation of variances, computed at locations x."""
    J, of_variances = _relative_derivatives(model, noise, observations, x, scale, device)
    D = len(model.noise)
    V = np.zeros((D, D)) if mean_covariance is None else mean_covariance
    root = _covariance_root(information, model.weights[0].size, free)
    of_log_variances = ((of_variances @ root) ** 2).sum(axis=-1)
    inflation = np.exp(np.minimum(of_log_variances, MAX_LOG_VARIANCE)).mean(axis=0)
    root = block_diag(root, _root(V))
    U, values, Vt = svd(J.reshape(-1, len(root)) @ root)
    # The sign of a direction is arbitrary; it must not depend on the decomposition.
    Vt = Vt * np.where((U**3).sum(axis=0) < 0, -1.0, 1.0)[:, None]
    explained = ((U * values).reshape(*J.shape[:2], -1) ** 2).sum(axis=0)
    return EveryDirection(values, explained, Vt @ root, inflation)


def _root(covariance: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """Return the symmetric root of a semidefinite matrix."""
    values, vectors = eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _covariance_root(
    information: Float[Array, "p p"], n_weights: int, free: Bool[Array, " p"] | None
) -> Float[Array, "p p"]:
    """Return the symmetric root of (F + Λ)⁻¹, with zeros for parameters that are not free."""
    p = len(information)
    std = np.repeat([LOG_PRIOR_STD, WEIGHT_PRIOR_STD], [p - n_weights, n_weights])
    at = np.arange(p) if free is None else np.flatnonzero(free)
    values, vectors = eigh(information[np.ix_(at, at)] + np.diag(std[at] ** -2.0))
    values = np.maximum(values, min(LOG_PRIOR_STD, WEIGHT_PRIOR_STD) ** -2.0)
    root = np.zeros((p, p))
    root[np.ix_(at, at)] = (vectors / np.sqrt(values)) @ vectors.T
    return root


def _relative_derivatives(
    model: LMCModel,
    noise: NoiseParameters,
    observations: Observations,
    x: Float[Array, "M P"],
    scale: Float[Array, " P"],
    device: str,
) -> tuple[Float[Array, "M D r"], Float[Array, "M D p"]]:
    """Return the derivatives of predicted means and of log variances of the signals at x.

    Those of the means are relative to the standard deviations. Their last D parameters are the
    means of the outputs, on which the variances do not depend.
    """
    (W,), D = model.weights, len(model.noise)
    basis = noise.derivatives(noise.vector(model.noise))
    t, c = sum(model.n_dims), len(basis)
    weights = t + c + np.arange(W.size).reshape(W.shape)
    J, of_variances = np.zeros((2, len(x), D, t + c + W.size + D))
    for group in model.coupled_outputs():
        q, d = group.latents, group.outputs
        at = np.ix_(q, d)
        own = parameters_of(model.n_dims, q)
        changes = ParameterBasis(len(own), W[at], basis[:, d[:, None], d])
        find = partial(
            differentiate_group, observations, x, scale, N_NEIGHBOURS, group, changes,
            other_sites=True, device=device,
        )  # fmt: skip
        cov, slopes = find()
        variance = np.maximum(np.einsum("mdd->md", cov), MIN_STD**2)[..., None]
        means = t + c + W.size + d
        columns = np.concatenate([own, t + np.arange(c), weights[at].ravel(), means])
        J[:, d[:, None], columns] = slopes / np.sqrt(variance)
        if group.kernels:
            prior = np.einsum("mdd->md", group.prior_covariance(x)[0])[..., None]
            variance = np.maximum(variance, MIN_VARIANCE_SHARE * prior)
            of_variances[:, d[:, None], columns] = find(of_variances=True)[1] / variance
    return J, of_variances[..., : t + c + W.size]


def locations_of_derivatives(
    observations: Observations, scale: Float[Array, " P"]
) -> Float[Array, "M P"]:
    """Return sites that are spread over the region, and points halfway to the nearest site."""
    sites = observations.spread_order(scale)[:N_SITES]
    tree = observations.tree(scale)
    _, nearest = tree.query(tree.data[sites], k=[min(2, tree.n)])
    # Not from x, which is rounded: the readings at a site are recognised by its exact location.
    at, near = observations.x[sites], observations.x[nearest[:, 0]]
    return np.concatenate([at, 0.5 * (at + near)])
