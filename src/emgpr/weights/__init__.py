"""Step 2: how every task hears every latent process, given the processes; and the joint ascent."""

from emgpr.weights.fit import FittedWeights, fit_weights, without_transfer
from emgpr.weights.refine import refine_jointly
from emgpr.weights.start import Mixture, arrange, with_own_parts

__all__ = [
    "FittedWeights",
    "Mixture",
    "arrange",
    "fit_weights",
    "refine_jointly",
    "with_own_parts",
    "without_transfer",
]
