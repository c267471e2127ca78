"""The covariance of every reading with every other: a sum of Kronecker products (eq. 3).

cov[(l, i), (m, j)] = Σ_q (W_q W_qᵀ)[l, m] k_q(x_i, x_j) + [i = j] Σ[l, m]

`dense` works on any table; `kronecker` on one latent process and a complete
table, with two small eigendecompositions in place of one large factor. Both
answer with the same `Likelihood`.
"""

from emgpr.covariance.dense import between_tasks, prior
from emgpr.covariance.likelihood import Likelihood, log_likelihood

__all__ = ["Likelihood", "between_tasks", "log_likelihood", "prior"]
