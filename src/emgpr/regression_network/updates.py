"""Updates of the two blocks of the variational approximation, with their parameters.

The bound on the log-likelihood is

    E log p(y | f, W) − KL[q(f) ‖ p(f)] − KL[q(W) ‖ p(W)]

Given q(W), the best q(f) is Gaussian, and the bound with this q(f) inserted is a function of the
length-scales of the nodes and of the noise (the collapsed bound), which L-BFGS maximises. The same
holds for q(W), the prior of the weights and the noise. Since q is optimal, the gradient of a
collapsed bound is its derivative with q held fixed.

Multiplying a node by c and dividing its weights by c does not change the signals. The factors c of
all nodes are therefore parameters of the update of the weights; otherwise, convergence is slow. No
update decreases the bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from emgpr.regression_network.nodes import NodePosterior
from emgpr.regression_network.problem import (
    NOISE_BOUNDS,
    VARIANCE_BOUNDS,
    NetworkParameters,
    NetworkProblem,
)
from emgpr.regression_network.terms import (
    Moments,
    log_density_of_zero_signal,
    node_terms,
    squared_errors,
    weight_terms,
)
from emgpr.regression_network.weights import WeightBasis, WeightPosterior

Array = np.ndarray
Objective = Callable[[Float[Array, " p"]], tuple[float, Float[Array, " p"]]]

MAX_FACTOR = 3.0  # largest factor by which a node is multiplied in one update


@dataclass(frozen=True)
class NetworkState:
    """Parameters, moments of both blocks at the sites, and the bound.

    `weights` are the optimal weights given `given`, moments of the nodes, and the parameters.
    """

    parameters: NetworkParameters
    weights: Moments
    weight_divergence: float
    given: Moments
    nodes: Moments
    node_divergence: float
    roughness: Float[Array, " Q"]
    bound: float


def node_posterior(
    problem: NetworkProblem, parameters: NetworkParameters, weights: Moments
) -> NodePosterior:
    """Return the optimal posterior of the nodes given the moments of the weights."""
    K, _ = problem.node_covariances(parameters.length_scales)
    terms = node_terms(problem.observations, weights, parameters.noise)
    return NodePosterior.solve(K, terms)


def weight_posterior(
    problem: NetworkProblem, parameters: NetworkParameters, nodes: Moments
) -> WeightPosterior:
    """Return the optimal posterior of the weights given the moments of the nodes."""
    kernel = problem.kernels.of_weights(parameters.weight_length_scale)
    basis = WeightBasis.build(kernel, problem.observations.x)
    terms = weight_terms(problem.observations, nodes, parameters.noise)
    return WeightPosterior.solve(basis, parameters.weight_variance, terms)


def node_objective(problem: NetworkProblem, state: NetworkState) -> Objective:
    """Return the collapsed bound of the nodes as a function of log length-scales and log noise."""
    table, Q = problem.observations, len(state.parameters.length_scales)

    def bound(theta: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        noise = _noise(problem, theta[Q:])
        K, pullback = problem.node_covariances(np.exp(theta[:Q]))
        found = NodePosterior.solve(K, node_terms(table, state.weights, noise))
        value = log_density_of_zero_signal(table, noise) + found.log_z - state.weight_divergence
        of_noise = _noise_gradient(problem, noise, found.moments, state.weights)
        return value, np.concatenate([pullback(found.gradients())[:, 0], of_noise])

    return bound


def weight_objective(
    problem: NetworkProblem, state: NetworkState, *, free_length_scale: bool
) -> Objective:
    """Return the collapsed bound of the weights as a function of their parameters.

    These are the logarithms of the factors of the nodes, of the noise, of the prior variances of
    the weights and, last, if it is free, of the length-scale of the weights.
    """
    table, N = problem.observations, problem.observations.n_sites
    Q, n_noise = len(state.roughness), len(_log_noise(problem, state.parameters))
    fixed = state.parameters.weight_length_scale
    held = None
    if not free_length_scale:
        held = WeightBasis.build(problem.kernels.of_weights(fixed), table.x)

    def bound(theta: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        factors, noise = np.exp(theta[:Q]), _noise(problem, theta[Q : Q + n_noise])
        variance = _variance(problem, theta[Q + n_noise : len(theta) - free_length_scale], Q)
        nodes = state.nodes.scaled(factors)
        scale = float(np.exp(theta[-1])) if free_length_scale else fixed
        basis = held or WeightBasis.build(problem.kernels.of_weights(scale), table.x)
        found = WeightPosterior.solve(basis, variance, weight_terms(table, nodes, noise))
        change = 0.5 * (factors**2 - 1) * state.roughness - N * theta[:Q]
        value = log_density_of_zero_signal(table, noise) + found.log_z
        value -= state.node_divergence + float(change.sum())
        excess = found.squares() - basis.phi.shape[1]
        gradient = [
            excess.sum(axis=0) - factors**2 * state.roughness + N,
            _noise_gradient(problem, noise, nodes, found.moments),
            0.5 * (excess.sum(keepdims=True) if problem.equal_variances else excess).ravel(),
        ]
        if free_length_scale:
            slope = problem.weight_scale_gradient(scale, found.gradient())
            gradient.append(np.array([slope]))
        return value, np.concatenate(gradient)

    return bound


def update_nodes(
    problem: NetworkProblem, state: NetworkState, max_iter: int, *, hold: bool = False
) -> NetworkState:
    """Update the nodes, their length-scales and, unless `hold`, the noise; not the weights."""
    parameters, Q = state.parameters, len(state.parameters.length_scales)
    start = np.concatenate([np.log(parameters.length_scales), _log_noise(problem, parameters)])
    bounds = [*[problem.node_bounds] * Q, *_noise_bounds(problem, start[Q:], hold)]
    theta = _maximise(node_objective(problem, state), start, np.array(bounds), max_iter)
    noise = _noise(problem, theta[Q:])
    parameters = replace(parameters, length_scales=np.exp(theta[:Q]), noise=noise)
    found = node_posterior(problem, parameters, state.weights)
    value = log_density_of_zero_signal(problem.observations, noise) + found.log_z
    return replace(
        state,
        parameters=parameters,
        nodes=found.moments,
        node_divergence=found.divergence(),
        roughness=found.roughness(),
        bound=value - state.weight_divergence,
    )


def update_weights(
    problem: NetworkProblem, state: NetworkState, max_iter: int, *, hold: bool = False
) -> NetworkState:
    """Update the weights, their prior and the noise; not the nodes, except for factors.

    If `hold`, the length-scale of the weights and the noise are held fixed.
    """
    parameters, Q = state.parameters, len(state.roughness)
    free = not (hold or parameters.constant_weights)
    log_noise = _log_noise(problem, parameters)
    last = [np.log(parameters.weight_length_scale)] if free else []
    variances = np.log(parameters.weight_variance).ravel()
    variances = variances[: 1 if problem.equal_variances else None]
    start = np.concatenate([np.zeros(Q), log_noise, variances, last])
    bounds = [
        *[np.log([1 / MAX_FACTOR, MAX_FACTOR])] * Q,
        *_noise_bounds(problem, log_noise, hold),
        *[np.log(VARIANCE_BOUNDS)] * len(variances),
        *[problem.weight_bounds] * len(last),
    ]
    objective = weight_objective(problem, state, free_length_scale=free)
    theta = _maximise(objective, start, np.array(bounds), max_iter)
    given = state.nodes.scaled(np.exp(theta[:Q]))
    parameters = replace(
        parameters,
        noise=_noise(problem, theta[Q : Q + len(log_noise)]),
        weight_variance=_variance(problem, theta[Q + len(log_noise) : len(theta) - free], Q),
        weight_length_scale=float(np.exp(theta[-1])) if free else parameters.weight_length_scale,
    )
    found = weight_posterior(problem, parameters, given)
    return replace(
        state,
        parameters=parameters,
        weights=found.moments,
        weight_divergence=found.divergence(),
        given=given,
        bound=objective(theta)[0],
    )


def _maximise(
    objective: Objective, start: Float[Array, " p"], bounds: Float[Array, "p 2"], max_iter: int
) -> Float[Array, " p"]:
    """Return a point at which the objective is not lower than at the start."""
    start = np.clip(start, *bounds.T)
    if max_iter == 0:
        return start

    def negative(theta: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        value, gradient = objective(theta)
        return -value, -gradient

    found = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter}
    )
    theta: Array = found.x
    return theta


def _log_noise(problem: NetworkProblem, parameters: NetworkParameters) -> Float[Array, " n"]:
    return np.log(parameters.noise[: 1 if problem.equal_noise else None])


def _noise_bounds(
    problem: NetworkProblem, log_noise: Float[Array, " n"], hold: bool
) -> list[Float[Array, " 2"]]:
    """Return bounds of the log noise; that of outputs with a single reading is held at 1."""
    if hold:
        return [np.full(2, value) for value in log_noise]
    single = [False] if problem.equal_noise else problem.n_readings == 1
    return [np.zeros(2) if alone else np.log(NOISE_BOUNDS) for alone in single]


def _noise(problem: NetworkProblem, log_noise: Float[Array, " n"]) -> Float[Array, " D"]:
    return np.exp(log_noise) * np.ones(problem.observations.n_outputs)


def _variance(
    problem: NetworkProblem, log_variances: Float[Array, " n"], Q: int
) -> Float[Array, "D Q"]:
    D = problem.observations.n_outputs
    shape = (1, 1) if problem.equal_variances else (D, Q)
    return np.exp(log_variances.reshape(shape)) * np.ones((D, Q))


def _noise_gradient(
    problem: NetworkProblem, noise: Float[Array, " D"], nodes: Moments, weights: Moments
) -> Float[Array, " n"]:
    """Return the derivative of the bound with respect to the logarithm of the noise."""
    errors = squared_errors(problem.observations, nodes, weights)
    gradient = 0.5 * (errors / noise - problem.n_readings)
    return gradient.sum(keepdims=True) if problem.equal_noise else gradient
