"""Members that failed, and whether what is left is still an ensemble."""

import re

import numpy as np
from jaxtyping import Int

from emgpr.arrays import NumericalError
from emgpr.weights import FittedWeights

Array = np.ndarray
Parts = list[Int[Array, " _"]]

LEFT_BEHIND = re.compile(r"\d+ of \d+ members failed")  # as what is said of them begins
UNTOLD = "the likelihood could not be evaluated"


class EnsembleWarning(UserWarning):
    """Members of an ensemble failed and were left out; the message says how many, and why."""


def standing(parts: Parts, members: FittedWeights, L: int) -> tuple[Parts, FittedWeights]:
    """The parts and the members that did not fail; raises if fewer than half of L are left."""
    stands = members.stands
    n = int(stands.sum())
    if 2 * n < L:
        who = "The one set of weights" if L == 1 else f"{L - n} of {L} members"
        raise NumericalError(
            f"{who} could not be learned, tried twice ({members.trouble or UNTOLD}); half of an "
            "ensemble must stand. Try fewer processes (n_jobs) if memory is short, batches of more "
            "sites (batch_size), or a kernel with other bounds."
        )
    if n == len(parts):
        return parts, members
    return [part for part, fine in zip(parts, stands, strict=True) if fine], members.at(stands)


def left_behind(n: int, L: int, why: str) -> str:
    """What is said of an ensemble of which n members of L are left.

    >>> left_behind(3, 5, "MemoryError")[:62]
    '2 of 5 members failed twice and are left out (MemoryError); th'
    """
    return (
        f"{L - n} of {L} members failed twice and are left out ({why or UNTOLD}); the "
        f"other {n} are the ensemble. Try fewer processes (n_jobs) if memory is short, or batches "
        "of more sites (batch_size)."
    )
