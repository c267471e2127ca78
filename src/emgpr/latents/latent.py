"""What step 1 finds of a task."""

from dataclasses import dataclass

from sklearn.gaussian_process.kernels import Kernel


@dataclass(frozen=True)
class Latent:
    """A fitted kernel, the noise variance beside it, and how the search for them ended."""

    kernel: Kernel
    noise: float
    log_likelihood: float
    n_iter: int = 0
    trouble: str = ""  # empty when it converged inside its bounds
