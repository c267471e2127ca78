"""Who does step 1: anything with one method."""

from dataclasses import fields
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents.latent import Latent

Array = np.ndarray


@runtime_checkable
class LatentLearner(Protocol):
    """Learns one task on its own: exactly, sparsely, or by another library.

    `emgpr.latents.check_learner` tells whether one of yours can be used.
    """

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Kernel and noise of standardised readings y at sites x.

        `kernel` is of the form that is asked for; its hyper-parameters say nothing unless they
        were set.
        """
        ...


def check_counts(learner: Any) -> None:
    """Raise if a setting of one of our learners is not a number of something."""
    for field in fields(learner):
        value, least = getattr(learner, field.name), 2 if field.name == "n_sites" else 1
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(
                f"{type(learner).__name__}: {field.name}={value!r}; expected a whole number of at "
                f"least {least}."
            )
