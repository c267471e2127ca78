"""Rules that combine the members' predictions of the D outputs at each location.

A rule takes each member's mean and covariance of the signals, and the prior covariance of the
signals, whose prior mean is zero. It returns one mean and one covariance for each location. Rules
combine whole D×D covariance matrices, so that predictions of different outputs remain consistent.
"""

import numpy as np
from jaxtyping import Float

from emgpr.ensemble.averages import mixture
from emgpr.ensemble.base import Covariances, Means, Prior, Rule
from emgpr.ensemble.products_of_experts import rebase
from emgpr.ensemble.registry import RULES, WITHOUT_PRIOR

Array = np.ndarray


def keeps_members(rule: str | Rule) -> bool:
    """Tell whether a rule keeps the members as components of a mixture."""
    return rule == "mean" or rule is mixture


def join(
    rule: str | Rule,
    means: Means,
    covs: Covariances,
    prior: Prior | Covariances,
) -> tuple[Float[Array, "C M D"], Float[Array, "C M D D"]]:
    """Combine predictions into C equally likely Gaussians: C is L for "mean", and 1 otherwise.

    The rule is a name in `RULES` or a function that passes `check_rule`. Members with different
    weights have different priors, which are passed with the shape (L, M, D, D). The rule then
    receives the mean of these priors, and predictions that `rebase` has adapted to this mean.

    >>> means, covs = np.array([[[-1.0]], [[1.0]]]), np.full((2, 1, 1, 1), 0.5)
    >>> join("mean", means, covs, np.ones((1, 1, 1)))[0].ravel()
    array([-1.,  1.])
    >>> join("poe", means, covs, np.ones((1, 1, 1)))[1].ravel()
    array([0.25])
    """
    if isinstance(rule, str) and rule not in RULES:
        raise ValueError(
            f"There is no combination rule {rule!r}; expected one of "
            f"{', '.join(map(repr, RULES))}, or a function of (means, covs, prior)."
        )
    if keeps_members(rule):
        return means, covs
    function = RULES[rule] if isinstance(rule, str) else rule
    if prior.ndim == 4:
        priors, prior = prior, prior.mean(axis=0)
        if len(priors) > 1 and function not in WITHOUT_PRIOR:
            means, covs = rebase(means, covs, priors, prior)
    mean, cov = function(means, covs, prior)
    return mean[None], cov[None]
