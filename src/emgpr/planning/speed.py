"""The measured speed of this machine, and the time that elementary operations take on it.

Almost all of the time of a fit is spent on likelihoods: each evaluation factorises and inverts the
covariance of the readings, and computes kernel values between their sites.
"""

from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from emgpr.arrays import cholesky, namespace, to_device, to_numpy
from emgpr.latents import Evaluations

# Number of rows of the matrix that is timed. On the CPU, this takes 0.1 s in total; a GPU is not
# fully used by smaller matrices.
MATRIX_SIDE, MATRIX_SIDE_ON_DEVICE = 700, 3000
REPETITIONS = 5  # the fastest is used, because the others were delayed by other processes
OPERATIONS_PER_ENTRY = 530.0  # floating-point operations that take as long as access to an entry
LIKELIHOOD_TIME = 1.2  # time of a likelihood, relative to factorising and inverting its matrix
LIKELIHOOD_PASSES = 6.0  # passes over the kernel values, each as slow as computing them
SECONDS_PER_CALL = 1e-3  # Python overhead of an evaluation


class MachineSpeed(NamedTuple):
    """Floating-point operations per second in factorisations, and seconds per kernel value."""

    operations: float
    value: float

    def factorisation(self, n: float) -> float:
        """Return the seconds for factorising and inverting an n × n matrix."""
        return (n**3 + OPERATIONS_PER_ENTRY * n**2) / self.operations

    def likelihood(self, n: float, n_values: float) -> float:
        """Return the seconds for the likelihood of n readings, with `n_values` kernel values."""
        factorisation = LIKELIHOOD_TIME * self.factorisation(n)
        return SECONDS_PER_CALL + factorisation + LIKELIHOOD_PASSES * n_values * self.value

    def evaluations(self, part: Evaluations) -> float:
        """Return the seconds for a number of evaluations of a learner's objective."""
        n_values = part.likelihoods * part.n_readings**2 + part.kernel_values
        each = (
            part.calls * SECONDS_PER_CALL
            + part.likelihoods * LIKELIHOOD_TIME * self.factorisation(part.n_readings)
            + part.blocks * self.factorisation(part.block_size)
            + part.operations / self.operations
            + LIKELIHOOD_PASSES * n_values * self.value
        )
        return part.times * each


def measure_speed(device: str) -> MachineSpeed:
    """Measure how fast the device computes, factorises and inverts a kernel matrix."""
    n = MATRIX_SIDE_ON_DEVICE if device.startswith("cuda") else MATRIX_SIDE
    x = np.linspace(0.0, 1.0, n)[:, None]
    distances = to_device(np.abs(x - x.T), device)
    xp = namespace(distances)
    factorising, evaluating = [], []
    for _ in range(REPETITIONS):
        start = _times(device)
        K = xp.exp(-10.0 * distances)
        float(to_numpy(K[0, 0]))  # wait until the GPU has finished
        between = _times(device)
        inverse = cholesky(K).inverse_triangle()
        float(to_numpy(inverse[0, 0]))
        evaluating.append((between - start).min())
        factorising.append((_times(device) - between).min())
    operations = MachineSpeed(1.0, 0.0).factorisation(n)
    return MachineSpeed(operations / min(factorising), min(evaluating) / n**2)


def _times(device: str) -> Float[np.ndarray, " 2"]:
    """Return the times of two clocks; the shorter duration is that without other processes.

    If other processes use the CPU, the processor time of a single thread is shorter than the
    elapsed time. The processor time of several threads is longer.
    """
    elapsed = perf_counter()
    return np.array([elapsed, process_time() if device == "cpu" else elapsed])
