"""n_latents="auto": latents that do no work are switched off, one after another.

The latent with the least share of any output's variance is taken away and the rest learned on
from where they were. If readings, each site left out in turn, are then no less likely, beyond
two standard errors, the smaller model is kept and the next latent tried.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from emgpr.covariance.dense import coregionalization
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.prediction import held_out
from emgpr.weights import Mixture, Refined

Array = np.ndarray
Relearn = Callable[[Mixture, Float[Array, "L Q D k"]], Refined]

MOST = 2000  # readings on which the criterion is worked out


def switch_off(
    seen: Observations, learned: Refined, relearn: Relearn, *, device: str = "cpu"
) -> Refined:
    """The smallest of a falling series of models that predicts as well as the one before it."""
    share = min(1.0, MOST / max(1, seen.n_readings))
    sites = np.random.default_rng(0).permutation(seen.n_sites)[: max(2, int(share * seen.n_sites))]
    some = seen.at(np.sort(sites))
    density = _density(some, learned, device)
    while len(learned.mixture.kernels) > 1:
        mixture, W = learned.mixture, learned.members.W
        work = variance_shares(mixture.kernels, W, mixture.noise, seen.x)[:, :-1]
        kept = np.arange(len(mixture.kernels)) != work.max(axis=0).argmin()
        fewer = replace(
            mixture,
            kernels=tuple(np.array(mixture.kernels, dtype=object)[kept]),
            W=mixture.W[kept],
            free=None if mixture.free is None else mixture.free[kept],
        )
        relearned = relearn(fewer, W[:, kept])
        without = _density(some, relearned, device)
        loss = paired_difference(density, without)
        if loss.mean > 2 * loss.standard_error:
            break
        learned, density = relearned, without
    return learned


def variance_shares(
    kernels: tuple | list,
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    x: Float[Array, "N P"],
) -> Float[Array, "D Qn"]:
    """Share of each output's variance that comes from each latent, and last from its noise."""
    B = np.einsum("lqdd->dq", coregionalization(W)) / len(W)
    spread = np.array([kernel.diag(x).mean() for kernel in kernels])
    parts = np.column_stack([B * spread, np.diagonal(noise)])
    return parts / parts.sum(axis=1, keepdims=True)


def _density(seen: Observations, learned: Refined, device: str) -> Float[Array, " N"]:
    """Log density of the readings of every site, given those of all others."""
    mixture, W = learned.mixture, learned.members.W
    sets = np.tile(np.arange(seen.n_sites), (seen.n_tasks, 1))
    belief = held_out(seen, sets, mixture.kernels, W, mixture.noise, device=device)
    var = np.einsum("lndd->lnd", belief.cov)
    each = -0.5 * ((seen.y.T - belief.mean) ** 2 / var + np.log(2 * np.pi * var))
    return np.nansum(logsumexp(each, axis=0) - np.log(len(each)), axis=1)
