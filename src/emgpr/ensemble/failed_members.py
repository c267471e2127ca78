"""Handling of ensemble members that could not be fitted."""

import re

import numpy as np
from jaxtyping import Int

from emgpr.arrays import NumericalError
from emgpr.user_warnings import warn
from emgpr.weights import FittedWeights

Array = np.ndarray
Batches = list[Int[Array, " _"]]

FAILED_MEMBERS = re.compile(r"\d+ of \d+ members failed")  # the beginning of the warning
UNKNOWN_REASON = "the likelihood could not be evaluated"


class EnsembleWarning(UserWarning):
    """Warning that ensemble members could not be fitted; the message says how many and why."""


def drop_failed_members(
    batches: Batches, members: FittedWeights, n_all: int
) -> tuple[Batches, FittedWeights]:
    """Return the batches and weights of fitted members; raise if over half of all failed."""
    succeeded = members.succeeded
    n = int(succeeded.sum())
    if 2 * n < n_all:
        what = "The weights" if n_all == 1 else f"The weights of {n_all - n} of {n_all} members"
        raise NumericalError(
            f"{what} could not be fitted in two attempts ({members.message or UNKNOWN_REASON}); at "
            "least half of the members must succeed. Try fewer processes (n_jobs) if memory is "
            "short, larger batches (batch_size), or a kernel with other bounds."
        )
    if n == len(batches):
        return batches, members
    kept = [batch for batch, success in zip(batches, succeeded, strict=True) if success]
    return kept, members.select(succeeded)


def warn_failed_members(n: int, n_all: int, reason: str) -> None:
    """Warn that the ensemble consists of only n of the `n_all` members."""
    warn(
        f"{n_all - n} of {n_all} members failed twice and are left out "
        f"({reason or UNKNOWN_REASON}); the other {n} form the ensemble. Try fewer processes "
        "(n_jobs) if memory is short, or larger batches (batch_size).",
        EnsembleWarning,
    )
