"""The covariance of every reading with every other: a sum of Kronecker products (eq. 3).

cov[(l, i), (m, j)] = Σ_q (W_q W_qᵀ)[l, m] k_q(x_i, x_j) + [i = j] Σ[l, m]

`dense` works on any table; `kronecker` on one latent process and complete tables,
with two small eigendecompositions in place of one large factor; `log_likelihood`
chooses between them. `span` serves step 2, where the kernels are held. `lattice`, `basis` and
`expansion` are the model in waves, for which sums over any number of sites are enough.
"""

from emgpr.covariance.basis import Basis
from emgpr.covariance.correlation import correlation_parts
from emgpr.covariance.dense import between_tasks, prior
from emgpr.covariance.expansion import Expansion, Posterior
from emgpr.covariance.lattice import Lattice, Sums, Term
from emgpr.covariance.likelihood import Likelihood, log_likelihood
from emgpr.covariance.resolution import Fineness, at_a_place, basis_for, basis_on
from emgpr.covariance.span import Span, log_likelihood_in_span, span_of
from emgpr.covariance.spectra import spectrum

__all__ = [
    "Basis",
    "Expansion",
    "Fineness",
    "Lattice",
    "Likelihood",
    "Posterior",
    "Span",
    "Sums",
    "Term",
    "at_a_place",
    "basis_for",
    "basis_on",
    "between_tasks",
    "correlation_parts",
    "log_likelihood",
    "log_likelihood_in_span",
    "prior",
    "span_of",
    "spectrum",
]
