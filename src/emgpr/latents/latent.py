"""What step 1 finds of a task."""

from dataclasses import dataclass

from sklearn.gaussian_process.kernels import Kernel

NOISE_BOUNDS = (1e-8, 1e2)  # relative to the variance of a standardised output


@dataclass(frozen=True)
class Latent:
    """A fitted kernel, the noise variance beside it, and how the search for them ended."""

    kernel: Kernel
    noise: float
    log_likelihood: float
    noise_bounds: tuple[float, float] = NOISE_BOUNDS
    n_iter: int = 0
    trouble: str = ""  # empty when it converged inside its bounds
    n_readings: int | None = None  # that the likelihood is of; None: all
