"""Two nested structures for a single output with many readings.

With one structure, the likelihood of many readings is decided by short distances. If the output
also varies over long distances, the range is then too short, and predictions in wide gaps return to
the mean. The sum of a smooth process of short range and a rough one of long range describes both.
"""

from collections.abc import Callable

import numpy as np

from emgpr.fitting.defaults import FitSettings
from emgpr.observations import Observations
from emgpr.weights import RefinedModel, nested_structures

MIN_READINGS = 1000  # with fewer, one structure is fitted


def tries_nested_structures(observations: Observations, settings: FitSettings) -> bool:
    """Tell whether two structures are tried: for one output whose kernel is chosen by step 1."""
    automatic = settings.chooses_kernel and settings.n_latents is None
    enough = observations.n_readings >= MIN_READINGS and not observations.constant.any()
    return automatic and enough and observations.n_outputs == 1


def better_of_nested_structures(
    one: RefinedModel, observations: Observations, optimise: Callable[..., RefinedModel]
) -> RefinedModel:
    """Return the model with one or with two structures, whichever has the better likelihood.

    Two structures must increase the log-likelihood by ½ log n for each further parameter (Schwarz's
    criterion).
    """
    start = nested_structures(one.parameters)
    if start is None:
        return one
    two = optimise({"nested structures": start}, latent_numbers=None)
    penalty = 0.5 * (start.kernels[0].n_dims + 1) * np.log(observations.n_readings)
    gain = two.history[-1].log_likelihood - one.history[-1].log_likelihood
    return two if gain > penalty else one
