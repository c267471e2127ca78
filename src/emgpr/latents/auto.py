"""latent_learner="auto": exact while that is affordable, then from batches."""

from typing import Any

from emgpr.latents.poe import PoE
from emgpr.observations import Observations

AFFORDABLE = 2000  # readings of an output


def choose_learner(given: Any, seen: Observations) -> tuple[Any, str]:
    """Who does step 1, and what should be said of that: nothing if it was given, or is exact."""
    if not (isinstance(given, str) and given == "auto"):
        return given, ""
    most = int(seen.seen.sum(axis=1).max())
    if most <= AFFORDABLE:
        return "exact", ""
    return "poe", (
        f'latent_learner="auto": the likelihood of {most} readings of an output takes too long in '
        f"step 1; kernels and noise are learned from {PoE.n_batches} batches of some "
        f'{PoE.batch_size} of them. Set latent_learner="poe" to accept this, or "exact".'
    )
