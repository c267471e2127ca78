"""Descriptions of the approximations in a fit and in predictions; empty for an exact model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from emgpr.latents import LatentLearner, learners_per_output
from emgpr.prediction import LMCPosterior

Array = np.ndarray


def describe_learners(learners: Sequence[LatentLearner], n: int) -> str:
    """Describe the approximation in step 1 for an output with n readings."""
    found = (_describe_learner(learner, n) for learner in learners)
    return next(filter(None, found), "")


def _describe_learner(learner: Any, n: int) -> str:
    if hasattr(learner, "describe_approximation"):
        return learner.describe_approximation(n)
    name = type(learner).__name__
    return f"fitted by {name}; its distance from the maximum of the likelihood is unknown"


def describe_batches(n_members: int, n_sites: int, n_all: int) -> str:
    """Describe the approximation that results from fitting the members to batches of sites.

    >>> describe_batches(8, 500, 12000)
    'fitted to 8 batches of 500 sites, each independently; 4000 of 12000 sites'
    """
    if n_members == 1 and n_sites == n_all:
        return ""
    used = min(n_members * n_sites, n_all)
    share = f"{used} of {n_all}" if used < n_all else f"all {n_all}"
    if n_members == 1:
        return f"fitted to {share} sites"
    return f"fitted to {n_members} batches of {n_sites} sites, each independently; {share} sites"


def describe_vecchia(n_neighbours: int | None, n_sites: int) -> str:
    """Describe the approximation of the likelihood in the joint optimisation.

    >>> describe_vecchia(15, 600)
    'Vecchia, each site given 15 earlier sites'
    >>> describe_vecchia(15, 16), describe_vecchia(None, 600)
    ('', '')
    """
    if n_neighbours is None or n_neighbours >= n_sites - 1:
        return ""
    return f"Vecchia, each site given {n_neighbours} earlier sites"


def describe_conditioning(
    conditioning: Any, counts: Int[Array, " D"], *, surrounding: bool = False
) -> str:
    """Describe the approximation in predictions, given the number of readings of each output.

    >>> describe_conditioning(16, np.array([9000, 9000, 6000]))
    'from the 16 nearest readings of each output, of 24000 in total'
    >>> describe_conditioning(16, np.array([9000, 9000, 6000]), surrounding=True)
    'from 16 or more readings of each output in all directions, of 24000 in total'
    >>> describe_conditioning(16, np.array([16, 9])), describe_conditioning("all", np.array([9000]))
    ('', '')
    """
    if conditioning == "batch":
        return "each member predicts from the readings of its batch"
    if conditioning == "all" or conditioning >= counts.max():
        return ""
    if surrounding:
        return (
            f"from {conditioning} or more readings of each output in all directions, of "
            f"{counts.sum()} in total"
        )
    return f"from the {conditioning} nearest readings of each output, of {counts.sum()} in total"


def describe_approximations(
    posterior: LMCPosterior, learner: Any, n_neighbours: int | None = None
) -> tuple[str, ...]:
    """Return a description of the approximation in each step of a fitted model.

    `n_neighbours` is the number of neighbours in Vecchia's likelihood; None means exact.
    """
    observations, batches = posterior.observations, posterior.batches
    counts = observations.observed.sum(axis=1)
    learners = learners_per_output(learner, observations.n_outputs)
    found = {
        "step 1": describe_learners(learners, int(counts.max())),
        "weights": describe_batches(len(batches), max(map(len, batches)), observations.n_sites),
        "joint optimisation": describe_vecchia(n_neighbours, observations.n_sites),
        "prediction": describe_conditioning(
            posterior.conditioning, counts, surrounding=posterior.automatic
        ),
    }
    return tuple(f"{step}: {text}" for step, text in found.items() if text)
