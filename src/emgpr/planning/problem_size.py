"""The size of a fit: the members and their readings, and the time and memory that they need."""

from typing import Any

import numpy as np

from emgpr.fitting.defaults import FitSettings, ResolvedParams
from emgpr.latents import Work
from emgpr.latents.starts import SUBSAMPLE_SITES
from emgpr.observations import Observations
from emgpr.planning.speed import MachineSpeed

BYTES_PER_ENTRY = 8.0
MATRICES_IN_MEMORY = 4.0  # n × n matrices in memory at the same time, for a member's n readings
KERNEL_MATRICES_IN_MEMORY = 6.0  # n × n matrices in memory in step 1, for an output with n sites
STARTS_AT_ONCE = 5  # searches for each output that run together on the subsample of step 1


class Workload:
    """The settings, table and machine of a fit, and the problem sizes that follow from them."""

    def __init__(
        self,
        settings: FitSettings,
        observations: Observations,
        params: ResolvedParams,
        speed: MachineSpeed,
        device: str,
        n_processes: int,
    ) -> None:
        self.settings, self.observations, self.params = settings, observations, params
        self.speed, self.device, self.n_processes = speed, device, n_processes
        self.counts = observations.observed.sum(axis=1)  # readings of each output
        self.max_count = int(self.counts.max())
        N, size = observations.n_sites, params.batch_size
        n_batches = 1 if size is None else max(1, N // size)
        self.n_members = min(n_batches, params.n_members or n_batches)
        self.member_sites = -(-N // n_batches)
        self.member_readings = max(1, round(self.member_sites / N * observations.n_readings))

    def site_passes(self, n: float) -> float:
        """Return the seconds for n passes over all sites, proportional to N log N."""
        N = self.observations.n_sites
        return n * self.speed.value * N * np.log2(N + 1)

    def table_bytes(self, n_copies: float) -> float:
        """Return the number of bytes for copies of the table."""
        P, D = self.observations.x.shape[1], self.observations.n_outputs
        return BYTES_PER_ENTRY * n_copies * self.observations.n_sites * (P + D)

    def work_seconds(self, work: Work) -> float | None:
        """Return the seconds that a learner needs, or None if this is unknown."""
        return None if work.parts is None else sum(map(self.speed.evaluations, work.parts))

    def work_bytes(self, work: Work) -> float:
        """Return the number of bytes that a learner needs."""
        matrices = (self._kernel_bytes(n, count) for n, count in work.kernel_matrices)
        return BYTES_PER_ENTRY * work.array_entries + sum(matrices)

    def _kernel_bytes(self, n: int, count: int) -> float:
        """Return the bytes that all processes need for searches with n × n kernel matrices."""
        subsample = KERNEL_MATRICES_IN_MEMORY * SUBSAMPLE_SITES**2 * STARTS_AT_ONCE
        # For each further kernel matrix, one matrix of distances is kept.
        matrices = KERNEL_MATRICES_IN_MEMORY + count - 1
        return BYTES_PER_ENTRY * max(
            matrices * n**2 * self.n_processes, subsample * self.observations.n_outputs
        )


def learner_work(learner: Any, n: int) -> Work:
    """Return the work that a learner needs for n readings; its time can be unknown."""
    if hasattr(learner, "work"):
        return learner.work(n)
    return Work(f"user-defined learner {type(learner).__name__}", n, 1, 1, None)
