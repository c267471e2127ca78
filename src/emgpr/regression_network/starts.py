"""Starting points of a fit: length-scales on a ladder, and weights from principal components.

The bound has several maxima. At each starting point, the weights are constant. They are the
principal components of the outputs; at all starting points except the first, these are rotated at
random. The length-scales of the nodes range from the distance between neighbouring sites to half
the extent of the region. This range is divided into equal intervals on the log scale, and each
length-scale is in each interval once.
"""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh
from emgpr.latents import typical_distances
from emgpr.observations import Observations
from emgpr.regression_network.problem import NetworkParameters, NetworkProblem
from emgpr.regression_network.terms import Moments
from emgpr.regression_network.updates import NetworkState, update_nodes
from emgpr.weights import output_correlation

Array = np.ndarray

SIGNAL_SHARE = 0.7  # of the variance of an output
MIN_EIGENVALUE = 0.05  # of the correlation of the outputs, so that no node has no weight
WEIGHT_VARIANCE = 0.01  # of q(W)
LONGEST = 0.5  # length-scale, relative to the extent


def starting_states(
    problem: NetworkProblem, Q: int, n: int, rng: np.random.Generator
) -> list[NetworkState]:
    """Return n starting points with Q nodes and constant weights."""
    table = problem.observations
    components = principal_components(table, Q) * np.sqrt(SIGNAL_SHARE)
    scales = length_scale_ladder(table.x, Q, n, rng)
    states = []
    for i in range(n):
        rotation = np.eye(Q) if i == 0 else np.linalg.qr(rng.normal(size=(Q, Q)))[0]
        states.append(starting_state(problem, components @ rotation, scales[i]))
    return states


def starting_state(
    problem: NetworkProblem, W: Float[Array, "D Q"], length_scales: Float[Array, " Q"]
) -> NetworkState:
    """Return the state with these weights, after an update of the nodes."""
    (D, Q), N = W.shape, problem.observations.n_sites
    noise = np.full(D, 1 - SIGNAL_SHARE)
    low, high = np.exp(problem.node_bounds)
    variance = max(float((W**2).mean()), WEIGHT_VARIANCE)
    parameters = NetworkParameters(
        np.clip(length_scales, low, high), np.inf, np.full((D, Q), variance), noise
    )
    cov = np.broadcast_to(WEIGHT_VARIANCE * np.eye(Q), (D, N, Q, Q))
    weights = Moments(np.tile(W[:, None], (1, N, 1)), cov)
    nothing = Moments(np.zeros((N, Q)), np.zeros((N, Q, Q)))
    state = NetworkState(
        parameters, weights, 0.0, nothing, nothing, 0.0, np.full(Q, float(N)), -np.inf
    )
    return update_nodes(problem, state, 0)


def length_scale_ladder(
    x: Float[Array, "N P"], Q: int, n: int, rng: np.random.Generator
) -> Float[Array, "n Q"]:
    """Return length-scales for n starting points; the first have equal steps on the log scale."""
    spacing, extent = typical_distances(x)
    short, long = np.log(spacing), np.log(max(spacing, LONGEST * extent))
    strata = rng.permuted(np.tile(np.arange(n), (Q, 1)), axis=1).T
    shares = (strata + rng.uniform(size=(n, Q))) / n
    shares[0] = (np.arange(Q) + 0.5) / Q
    return np.exp(short + shares * (long - short))


def principal_components(observations: Observations, Q: int) -> Float[Array, "D Q"]:
    """Return the first Q principal components of the outputs, again from the first if Q > D."""
    values, vectors = eigh(output_correlation(observations))
    values, vectors = np.maximum(values[::-1], MIN_EIGENVALUE), vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary; choose the one with a positive sum.
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
    components = (vectors * np.sqrt(values))[:, np.arange(Q) % len(values)]
    return np.where(observations.constant[:, None], 0.0, components)
