"""Step 2: how every task hears every latent process, given the processes; and the joint ascent."""

from emgpr.weights.fit import FittedWeights, evaluate_weights, fit_weights
from emgpr.weights.refine import refine_jointly
from emgpr.weights.start import Mixture, arrange, with_own_parts

__all__ = [
    "FittedWeights",
    "Mixture",
    "arrange",
    "evaluate_weights",
    "fit_weights",
    "refine_jointly",
    "with_own_parts",
]
