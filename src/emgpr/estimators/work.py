"""What a model has to do with a table, counted: sizes, and seconds of what is done with them.

Nearly all of the time goes into evaluating likelihoods, each a factor and an inverse of a matrix
over the readings it is of and the kernels' values for their sites. Of these, sizes are known
before a fit; how often each is evaluated, before its search ends, is what it was on the Jura and
AMSU-A data and on simulated tables, where numbers were between half and two and a half times those
below. Beyond 10⁵ places, what looks at every place counts too: checks, units, k-d trees.
"""

from typing import Any

import numpy as np

from emgpr.estimators.plan import Speed, Step
from emgpr.estimators.settings import Settled
from emgpr.latents.starts import SOME
from emgpr.observations import Observations

Array = np.ndarray

CLIMB = 14  # evaluations of a task alone, on all its sites,
STARTS = 20  # after those on some of them

FACTOR = 1.2  # of the time of a factor and an inverse alone
VALUES = 6.0  # passes over the kernels' values, as of making one
CALL = 1e-3  # seconds of Python for an evaluation
LOOKS = 700.0  # of a kernel's value: what is done with a place before step 1, by log₂ of all,
TREE = 30.0  # and to put it into a tree

SQUARE = 8.0  # bytes of each entry of a matrix
MATRICES = 4.0  # of all readings at once
KERNEL_MATRICES = 6.0  # of a task alone, of its sites
COPIES = 5.0  # of the table: as it came, checked, standardised


class Work:
    """A model, a table, and what the one has to do with the other."""

    def __init__(
        self,
        model: Any,
        seen: Observations,
        settled: Settled,
        speed: Speed,
        device: str,
        workers: int,
    ) -> None:
        self.model, self.seen, self.settled = model, seen, settled
        self.speed, self.device, self.workers = speed, device, workers
        self.counts = seen.seen.sum(axis=1)
        N, size = seen.n_sites, settled.batch_size
        dealt = 1 if size is None else max(1, N // size)
        self.L = min(dealt, settled.n_members or dealt)
        self.sites = -(-N // dealt)
        share = self.sites / N
        self.readings = max(1, round(share * seen.n_readings))  # of a member

    def evaluation(self, n: float, pairs: float) -> float:
        """Seconds of a likelihood of n readings, with so many values of kernels."""
        factoring = FACTOR * self.speed.factoring(n)
        return CALL + factoring + VALUES * pairs * self.speed.value

    def alone(self, n: float) -> float:
        """Seconds of the search for one kernel of one task, by the likelihood of n readings."""
        return self.starts(n) + CLIMB * self.evaluation(n, n**2)

    def starts(self, n: float) -> float:
        """Seconds of finding where such a search begins."""
        some = min(n, SOME)
        return STARTS * self.evaluation(some, some**2)

    def sorting(self, passes: float) -> float:
        """Seconds of so many passes over all places, each as long as there are more of them."""
        N = self.seen.n_sites
        return passes * self.speed.value * N * np.log2(N + 1)

    def table(self) -> Step:
        """What looks at every place."""
        P, D = self.seen.x.shape[1], self.seen.n_tasks
        memory = COPIES * SQUARE * self.seen.n_sites * (P + D)
        seconds = self.sorting(LOOKS)
        return Step("table", "checked, sorted", self.seen.n_readings, 0, 0, 1, seconds, memory)

    def kernel_bytes(self, n: float, at_once: int = 1) -> float:
        """Of searches of tasks alone, over n readings; distances of several batches are kept."""
        some = SQUARE * KERNEL_MATRICES * SOME**2 * 5 * self.seen.n_tasks
        return max((KERNEL_MATRICES + at_once - 1) * SQUARE * n**2 * self.workers, some)
