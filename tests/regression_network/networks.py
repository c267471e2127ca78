"""Networks with known parameters, tables drawn at random, and states after some updates."""

from dataclasses import replace

import numpy as np

from emgpr.observations import Observations
from emgpr.regression_network.problem import NetworkProblem
from emgpr.regression_network.starts import starting_state
from emgpr.regression_network.updates import update_nodes, update_weights


def some_table(rng, *, N=14, D=3, missing=0.2) -> Observations:
    x, y = rng.uniform(size=(N, 2)), rng.normal(size=(N, D))
    y[:, 1:] += y[:, :1]
    y[rng.uniform(size=y.shape) < missing] = np.nan
    y[0] = 0.5
    return Observations.from_table(x, y)


def some_state(rng, problem: NetworkProblem, *, Q=2, scale=0.7, rounds=1):
    """Return a state after updates without a search for parameters."""
    W = rng.normal(size=(problem.observations.n_outputs, Q))
    state = starting_state(problem, W, rng.uniform(0.2, 0.6, Q))
    state = replace(state, parameters=replace(state.parameters, weight_length_scale=scale))
    for _ in range(rounds):
        state = update_nodes(problem, update_weights(problem, state, 2, hold=True), 2)
    return state
