"""Step 1, which fits a kernel and a noise variance to the readings of every output separately.

The fit is done by a learner, an object with a method `learn` (see `LatentLearner`). Learners can
use the exact likelihood, the likelihoods of batches, an inducing-point approximation (with all
readings or with mini-batches), the variogram, or another library.
"""

from emgpr.latents.base import (
    BaseLearner,
    Evaluations,
    Latent,
    LatentLearner,
    Work,
    check_settings,
)
from emgpr.latents.checks import check_learner
from emgpr.latents.exact import Exact
from emgpr.latents.external import Borrowed, ExternalLearners, fit_external_latents
from emgpr.latents.fit import (
    choose_learner,
    fit_latents,
    is_external,
    learner_by_name,
    learners_per_output,
)
from emgpr.latents.kernel_choice import (
    MAX_COLUMNS,
    choose_kernels,
    half_correlation,
    shares_length_scale,
)
from emgpr.latents.product_of_experts import PoE
from emgpr.latents.registry import LEARNERS
from emgpr.latents.search_end import describe_bound
from emgpr.latents.search_space import (
    SearchSpace,
    SiteDistances,
    column_scales,
    is_length_scale,
    nearest_pairs,
    search_space,
    typical_distances,
)
from emgpr.latents.sparse import DTC, FITC, PITC, VFE
from emgpr.latents.stochastic_variational import SVI
from emgpr.latents.variogram import Variogram
from emgpr.latents.vecchia import Vecchia

__all__ = [
    "DTC",
    "FITC",
    "LEARNERS",
    "MAX_COLUMNS",
    "PITC",
    "SVI",
    "VFE",
    "BaseLearner",
    "Borrowed",
    "Evaluations",
    "Exact",
    "ExternalLearners",
    "Latent",
    "LatentLearner",
    "PoE",
    "SearchSpace",
    "SiteDistances",
    "Variogram",
    "Vecchia",
    "Work",
    "check_learner",
    "check_settings",
    "choose_kernels",
    "choose_learner",
    "column_scales",
    "describe_bound",
    "fit_external_latents",
    "fit_latents",
    "half_correlation",
    "is_external",
    "is_length_scale",
    "learner_by_name",
    "learners_per_output",
    "nearest_pairs",
    "search_space",
    "shares_length_scale",
    "typical_distances",
]
