"""The covariance of all readings, which is a sum of Kronecker products (eq. 3), and the likelihood.

cov[(l, i), (m, j)] = Σ_q (W_q W_qᵀ)[l, m] k_q(x_i, x_j) + [i = j] Σ[l, m]

The module `lmc` forms the whole covariance. The module `kronecker` applies if there is one latent
process and no reading is missing. It replaces the factorisation of one large matrix with the
eigendecompositions of two small ones. `log_likelihood` chooses between the two modules. The module
`low_rank` is used in step 2, in which the kernels are fixed. The modules `vecchia` and
`vecchia_table` approximate the likelihood at a cost that is proportional to the number of sites.
"""

from emgpr.covariance.likelihood import Likelihood, log_likelihood
from emgpr.covariance.lmc import (
    coregionalization,
    cross_covariance,
    prior_covariance,
    variance_shares,
)
from emgpr.covariance.low_rank import LowRankTable, low_rank_log_likelihood, low_rank_table
from emgpr.covariance.vecchia_table import VecchiaFit, VecchiaTable

__all__ = [
    "Likelihood",
    "LowRankTable",
    "VecchiaFit",
    "VecchiaTable",
    "coregionalization",
    "cross_covariance",
    "log_likelihood",
    "low_rank_log_likelihood",
    "low_rank_table",
    "prior_covariance",
    "variance_shares",
]
