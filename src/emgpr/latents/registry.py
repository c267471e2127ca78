"""Names of the learners for step 1. To add a learner, write its class and list it here."""

from emgpr.latents.base import BaseLearner
from emgpr.latents.exact import Exact
from emgpr.latents.product_of_experts import PoE
from emgpr.latents.sparse import DTC, FITC, PITC, VFE
from emgpr.latents.stochastic_variational import SVI
from emgpr.latents.variogram import Variogram
from emgpr.latents.vecchia import Vecchia

LEARNERS: dict[str, type[BaseLearner]] = {
    "exact": Exact,
    "vecchia": Vecchia,
    "poe": PoE,
    "dtc": DTC,
    "fitc": FITC,
    "pitc": PITC,
    "vfe": VFE,
    "svi": SVI,
    "variogram": Variogram,
}
