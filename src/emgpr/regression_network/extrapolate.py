"""Extrapolation of the updates, which otherwise converge slowly if there is little noise.

Two iterations lead from the state s₀ to s₁ and s₂. With r = s₁ − s₀ and v = s₂ − 2 s₁ + s₀, the
extrapolated state is s₀ + 2 α r + α² v with α = |r| / |v| (the third scheme of Varadhan & Roland,
2008). It is used only if its bound is higher, so that the bound never decreases.

The vector s contains the logarithms of the parameters, and the means and Cholesky factors of the
moments of the nodes from which the weights are computed. Every such vector is a valid state.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from emgpr.arrays import cholesky
from emgpr.regression_network.problem import NetworkParameters, NetworkProblem
from emgpr.regression_network.terms import Moments
from emgpr.regression_network.updates import NetworkState, update_nodes, weight_posterior

Array = np.ndarray

MAX_STEP = 30.0  # largest α
MIN_VARIANCE = 1e-12  # of a node, so that its logarithm exists


def extrapolate(
    problem: NetworkProblem, first: NetworkState, second: NetworkState, third: NetworkState
) -> NetworkState:
    """Return the extrapolation of three successive states if its bound is higher than the third."""
    s0, s1, s2 = (as_vector(state) for state in (first, second, third))
    r, v = s1 - s0, s2 - 2 * s1 + s0
    curvature = float(np.linalg.norm(v))
    if curvature == 0:
        return third
    step = min(float(np.linalg.norm(r)) / curvature, MAX_STEP)
    if step <= 1:  # the updates themselves go as far
        return third
    found = from_vector(problem, third, s0 + 2 * step * r + step**2 * v)
    return found if found.bound > third.bound else third


def as_vector(state: NetworkState) -> Float[Array, " p"]:
    """Return the parameters and the moments of a state as a vector without constraints."""
    parameters, Q = state.parameters, state.given.mean.shape[1]
    lower = np.tril(cholesky(state.given.cov + MIN_VARIANCE * np.eye(Q)).lower)
    diagonal = np.arange(Q)
    lower[:, diagonal, diagonal] = np.log(lower[:, diagonal, diagonal])
    scale = parameters.weight_length_scale
    logs = [parameters.length_scales, parameters.weight_variance.ravel(), parameters.noise]
    logs.append(np.array([1.0 if np.isinf(scale) else scale]))
    return np.concatenate([np.log(np.concatenate(logs)), state.given.mean.ravel(), lower.ravel()])


def from_vector(
    problem: NetworkProblem, like: NetworkState, vector: Float[Array, " p"]
) -> NetworkState:
    """Return the state of a vector, whose nodes are optimal given its weights."""
    N, Q = like.given.mean.shape
    D = len(like.parameters.noise)
    sizes = np.cumsum([Q, D * Q, D, 1, N * Q])
    scales, variance, noise, weight_scale, mean, lower = np.split(vector, sizes)
    lower, diagonal = lower.reshape(N, Q, Q), np.arange(Q)
    lower[:, diagonal, diagonal] = np.exp(lower[:, diagonal, diagonal])
    constant = like.parameters.constant_weights
    parameters = NetworkParameters(
        np.exp(np.clip(scales, *problem.node_bounds)),
        np.inf if constant else float(np.exp(np.clip(weight_scale[0], *problem.weight_bounds))),
        np.exp(variance).reshape(D, Q),
        np.exp(noise),
    )
    given = Moments(mean.reshape(N, Q), lower @ np.swapaxes(lower, 1, 2))
    weights = weight_posterior(problem, parameters, given)
    state = replace(
        like,
        parameters=parameters,
        weights=weights.moments,
        weight_divergence=weights.divergence(),
        given=given,
    )
    return update_nodes(problem, state, 0)
