"""Step 1: the kernel and the noise of every task, each learned from its own readings.

Who learns is a plug-in of one method (`LatentLearner`): exactly, from batches, by inducing points,
from the variogram, or another library's.
"""

from emgpr.latents.auto import choose_learner
from emgpr.latents.borrowed import Borrowed, Lenders, borrow_latents, is_lent
from emgpr.latents.choice import choose_kernels
from emgpr.latents.contract import check_learner
from emgpr.latents.exact import Exact
from emgpr.latents.fit import LEARNERS, fit_latents
from emgpr.latents.latent import Latent
from emgpr.latents.learner import LatentLearner
from emgpr.latents.poe import PoE
from emgpr.latents.prior import noise_prior, variances
from emgpr.latents.search import Search, is_length_scale, search_space
from emgpr.latents.sparse import DTC, FITC, PITC, VFE
from emgpr.latents.variogram import Variogram

__all__ = [
    "DTC",
    "FITC",
    "LEARNERS",
    "PITC",
    "VFE",
    "Borrowed",
    "Exact",
    "Latent",
    "LatentLearner",
    "Lenders",
    "PoE",
    "Search",
    "Variogram",
    "borrow_latents",
    "check_learner",
    "choose_kernels",
    "choose_learner",
    "fit_latents",
    "is_length_scale",
    "is_lent",
    "noise_prior",
    "search_space",
    "variances",
]
