"""Step 2: how every task hears every latent process, given the processes; and the joint ascent."""

from emgpr.weights.align import aligned
from emgpr.weights.fit import FittedWeights, fit_weights, thinned, without_transfer
from emgpr.weights.refine import Refined, Stage, refine
from emgpr.weights.start import Mixture, apart, arrange, silenced, with_own_parts

__all__ = [
    "FittedWeights",
    "Mixture",
    "Refined",
    "Stage",
    "aligned",
    "apart",
    "arrange",
    "fit_weights",
    "refine",
    "silenced",
    "thinned",
    "with_own_parts",
    "without_transfer",
]
