"""Beliefs of the members about the D outputs of a site, joined into one.

A rule takes the members' means and covariances of the signals, and what was believed
before any data (mean zero, covariance `prior`), and gives one mean and covariance a site.
All work on the D×D covariances, so that the outputs of a site stay coherent.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from emgpr.ensemble.products import bcm, gpoe, grbcm, poe, rbcm, rebase
from emgpr.ensemble.transport import barycenter

Array = np.ndarray
Rule = Callable[[Array, Array, Array], tuple[Array, Array]]


def mixture(
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"] | None = None,
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """The mean of the members (the paper's), with the covariance of their mixture.

    cov = mean of the covariances + covariance of the means: members that
    disagree are as uncertain as their spread. The prior has no say in it.

    >>> mixture(np.array([[[-1.0]], [[1.0]]]), np.full((2, 1, 1, 1), 0.5))
    (array([[0.]]), array([[[1.5]]]))
    """
    mean = means.mean(axis=0)
    apart = means - mean
    spread = np.einsum("lmi,lmj->mij", apart, apart) / len(means)
    return mean, covs.mean(axis=0) + spread


def average(
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"] | None = None,
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """One Gaussian with the mean and covariance of the mixture: what the paper predicts."""
    return mixture(means, covs, prior)


RULES: dict[str, Rule] = {
    "mean": mixture,
    "average": average,
    "poe": poe,
    "gpoe": gpoe,
    "bcm": bcm,
    "rbcm": rbcm,
    "grbcm": grbcm,
    "barycenter": barycenter,
}


def join(
    rule: str | Rule,
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"] | Float[Array, "L M D D"],
) -> tuple[Float[Array, "C M D"], Float[Array, "C M D D"]]:
    """The joined belief as C equally likely Gaussians: the L members for "mean", else one.

    The rule is a name in `RULES`, or a function that passes `check_rule`. Where members
    have priors of their own, as those with weights of their own do, give these: rules that
    ask for the prior then get the mean of them, and beliefs that
    `rebase` has put on it.

    >>> means, covs = np.array([[[-1.0]], [[1.0]]]), np.full((2, 1, 1, 1), 0.5)
    >>> join("mean", means, covs, np.ones((1, 1, 1)))[0].ravel()
    array([-1.,  1.])
    >>> join("poe", means, covs, np.ones((1, 1, 1)))[1].ravel()
    array([0.25])
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(
                f"There is no rule {rule!r}; expected one of {', '.join(map(repr, RULES))}, "
                "or a function of (means, covs, prior)."
            )
        rule = RULES[rule]
    if rule is mixture:
        return means, covs
    if prior.ndim == 4:
        own, prior = prior, prior.mean(axis=0)
        if len(own) > 1 and rule not in (barycenter, average):
            means, covs = rebase(means, covs, own, prior)
    mean, cov = rule(means, covs, prior)
    return mean[None], cov[None]
