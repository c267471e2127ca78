"""The covariance of every reading with every other: a sum of Kronecker products (eq. 3).

cov[(l, i), (m, j)] = Σ_q (W_q W_qᵀ)[l, m] k_q(x_i, x_j) + [i = j] Σ[l, m]

`dense` works on any table; `kronecker` on one latent process and complete tables,
with two small eigendecompositions in place of one large factor; `log_likelihood`
chooses between them. `span` serves step 2, where the kernels are held.
"""

from emgpr.covariance.correlation import correlation_parts
from emgpr.covariance.dense import between_tasks, prior
from emgpr.covariance.likelihood import Likelihood, log_likelihood
from emgpr.covariance.span import Span, log_likelihood_in_span, span_of

__all__ = [
    "Likelihood",
    "Span",
    "between_tasks",
    "correlation_parts",
    "log_likelihood",
    "log_likelihood_in_span",
    "prior",
    "span_of",
]
