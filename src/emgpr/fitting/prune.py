"""Removal of unnecessary latent processes, for n_latents="auto".

The least important process is removed, and the model is refitted. This is repeated until a removal
would decrease the leave-one-site-out log density of the readings by more than two standard errors.
The importance of a process is its largest share of the variance of any output.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from emgpr.covariance import variance_shares
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, leave_out
from emgpr.weights import LMCParameters, RefinedModel

Array = np.ndarray
Refit = Callable[[LMCParameters, Float[Array, "L Q D k"]], RefinedModel]

MAX_READINGS = 2000  # maximum number of readings used to compare two models


def prune_latents(
    observations: Observations, refined: RefinedModel, refit: Refit, *, device: str = "cpu"
) -> RefinedModel:
    """Remove latent processes as long as the smaller model predicts about equally well."""
    share = min(1.0, MAX_READINGS / max(1, observations.n_readings))
    n = max(2, int(share * observations.n_sites))
    sites = np.sort(np.random.default_rng(0).permutation(observations.n_sites)[:n])
    table = observations.at(sites)
    density = _log_density(table, refined, device)
    while len(refined.parameters.kernels) > 1:
        parameters, W = refined.parameters, refined.members.W
        shares = variance_shares(parameters.kernels, W, parameters.noise, observations.x)[:, :-1]
        kept = np.arange(len(parameters.kernels)) != shares.max(axis=0).argmin()
        reduced = replace(
            parameters,
            kernels=tuple(np.array(parameters.kernels, dtype=object)[kept]),
            W=parameters.W[kept],
            free=None if parameters.free is None else parameters.free[kept],
        )
        smaller = refit(reduced, W[:, kept])
        smaller_density = _log_density(table, smaller, device)
        loss = paired_difference(density, smaller_density)
        if loss.mean > 2 * loss.standard_error:
            break
        refined, density = smaller, smaller_density
    return refined


def _log_density(
    observations: Observations, refined: RefinedModel, device: str
) -> Float[Array, " N"]:
    """Return the log density of the readings at each site given the readings at all other sites."""
    parameters = refined.parameters
    model = LMCModel(tuple(parameters.kernels), refined.members.W, parameters.noise)
    sets = np.tile(np.arange(observations.n_sites), (observations.n_outputs, 1))
    predicted = leave_out(observations, sets, model, device=device)
    var = np.einsum("lndd->lnd", predicted.cov)
    density = -0.5 * ((observations.y.T - predicted.mean) ** 2 / var + np.log(2 * np.pi * var))
    return np.nansum(logsumexp(density, axis=0) - np.log(len(density)), axis=1)
