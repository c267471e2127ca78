"""Products of the members' Gaussians: experts (poe, gpoe) and committees (bcm, rbcm, grbcm).

    Λ = Σ_l β_l C_l⁻¹ + β₀ C₀⁻¹,   Λ m = Σ_l β_l C_l⁻¹ m_l

The rules differ in the weights β_l alone. Experts leave the prior N(0, C₀) to their
members, β₀ = 0; committees count it once, β₀ = 1 − Σ_l β_l. (Tresp 2000; Cao & Fleet
2014; Deisenroth & Ng 2015; Liu, Cai, Wang & Ong 2018.)

Covariances are often singular: Q < D latents span Q directions of the outputs, and a
reading without noise leaves no doubt. So products are formed in coordinates in which the
prior is I. Directions with no prior (below `RANGE` of an output's variance) are left out:
there the answer is zero, for sure. In the others no member is surer than `SUREST` of the
prior. Members less sure than the prior could turn Λ negative in a committee: a committee
is as sure as its prior, or surer, in every direction.

Members with weights of their own have priors of their own, and all this is wrong for them:
with few latents each is sure of another line or plane, and their product is sure of 0,
where these meet. `rebase` gives them one prior first.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Array = np.ndarray

RANGE = 1e-10
SUREST = 1e-10
HEARD = 1e-6


def poe(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"], prior: Float[Array, "M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """Product of experts, β_l = 1: L members that agree are L times as sure, data or none.

    >>> poe(np.ones((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[1.]]), array([[[0.5]]]))
    """
    return _product(means, covs, prior, np.ones_like)


def gpoe(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"], prior: Float[Array, "M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """Generalised product of experts, β_l = 1/L: members that agree are as sure as one.

    Not what each has learned over the sum of that: far from the data it is 0/0, and near
    it members that see the same readings, as ours do, have learned about the same.

    >>> gpoe(np.ones((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[1.]]), array([[[1.]]]))
    """
    return _product(means, covs, prior, lambda learned: np.full_like(learned, 1 / len(learned)))


def bcm(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"], prior: Float[Array, "M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """Bayesian committee machine, β_l = 1: exact for members whose data are independent.

    Two readings of a signal of variance 1, each with noise of variance 1 and value 1:

    >>> bcm(np.full((2, 1, 1), 0.5), np.full((2, 1, 1, 1), 0.5), np.ones((1, 1, 1)))[1]
    array([[[0.33333333]]])
    """
    return _product(means, covs, prior, np.ones_like, committee=True)


def rbcm(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"], prior: Float[Array, "M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """Robust committee: β_l = ½ log(det C₀ / det C_l), what a member has learned, or 0 if less.

    Members that learned nothing leave the prior as it was:

    >>> rbcm(np.zeros((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[0.]]), array([[[1.]]]))
    """
    return _product(means, covs, prior, np.asarray, committee=True)


def grbcm(
    means: Float[Array, "L M D"], covs: Float[Array, "L M D D"], prior: Float[Array, "M D D"]
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """Generalised robust committee: what member 0 believes takes the place of the prior.

    Members 1, 2, … should know all that member 0, the communication expert, knows, and
    their own data. β₁ = 1, the others ½ log(det C₀ / det C_l): with two members it is
    member 1.
    """
    if len(means) == 1:
        return means[0].copy(), covs[0].copy()
    shift, cov = _product(
        means[1:] - means[0],
        covs[1:],
        covs[0] + SUREST * prior,
        lambda learned: np.concatenate([np.ones_like(learned[:1]), learned[1:]]),
        committee=True,
    )
    return means[0] + shift, cov


def rebase(
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    own: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"],
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
    """What each member would believe, had it started from `prior` and not from its own.

    J_l = C_l⁻¹ − P_l⁻¹ is what the data told member l; then C = (prior⁻¹ + J_l)⁻¹ and
    m = C C_l⁻¹ m_l. Across the directions that member l hears (in outputs of unit variance)
    the data told it nothing.

    A reading of 1 with noise of variance 1, seen from a prior of variance 1, and then of 2:

    >>> half, one = np.full((1, 1, 1, 1), 0.5), np.ones((1, 1, 1, 1))
    >>> rebase(half[0], half, one, 2 * one[0])
    (array([[[0.66666667]]]), array([[[[0.66666667]]]]))
    """
    scale = _deviations(prior)
    s, U = np.linalg.eigh(own / (scale * _T(scale)))
    # What the data told is a difference, and its rounding is that of the covariance over s².
    used = s > HEARD * s[..., -1:]
    root = np.sqrt(np.where(used, s, np.inf))
    away = U / root[..., None, :] / scale  # P_l⁻¹ = away awayᵀ
    k, V = np.linalg.eigh(_T(away) @ covs @ away + ~used[..., None] * np.eye(s.shape[-1]))
    k = np.clip(k, SUREST, 1.0)[..., None, :]
    away = away @ V
    forth, _, _ = _coordinates(prior)
    seen = _T(forth) @ away
    told = (seen * (1 / k - 1)) @ _T(seen)
    information = (seen / k) @ (_T(away) @ means[..., None])
    return _belief(forth, np.eye(s.shape[-1]) + told, information, least=1.0)


def _product(
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"],
    weigh: Callable[[Float[Array, "L M"]], Float[Array, "L M"]],
    committee: bool = False,
) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
    """The product, its weights β a function of what each member has learned."""
    if len(means) == 1:  # no one to join: rbcm's weight would spoil what is exact
        return means[0].copy(), covs[0].copy()
    forth, back, without = _coordinates(prior)
    c, V = np.linalg.eigh(back @ covs @ _T(back) + without)
    c = np.maximum(c, SUREST)
    beta = weigh(np.maximum(-0.5 * np.log(c).sum(-1), 0.0))[..., None, None]
    weighted = beta * ((V / c[..., None, :]) @ _T(V))
    precision = weighted.sum(axis=0)
    if committee:
        precision += (1 - beta.sum(axis=0)) * np.eye(c.shape[-1])
    information = (weighted @ back @ means[..., None]).sum(axis=0)
    return _belief(forth, precision, information, least=1.0 if committee else 0.0)


def _coordinates(
    prior: Float[Array, "M D D"],
) -> tuple[Float[Array, "M D D"], Float[Array, "M D D"], Float[Array, "M D D"]]:
    """T with T Tᵀ = prior, T⁻¹, and ones for the coordinates that are not in use.

    Outputs first take unit variance, so that their units do not decide what is small.
    """
    scale = _deviations(prior)
    s, U = np.linalg.eigh(prior / (scale * _T(scale)))
    used = s > RANGE
    root = np.sqrt(np.where(used, s, 1.0))
    forth = scale * U * (used * root)[:, None, :]
    back = _T(U * (used / root)[:, None, :] / scale)
    return forth, back, ~used[..., None] * np.eye(s.shape[-1])


def _deviations(cov: Float[Array, "M D D"]) -> Float[Array, "M D 1"]:
    variance = np.einsum("mdd->md", cov)[..., None]
    return np.asarray(np.sqrt(np.where(variance > 0, variance, 1.0)))


def _belief(
    forth: Float[Array, "M D D"],
    precision: Float[Array, "*l M D D"],
    information: Float[Array, "*l M D 1"],
    least: float,
) -> tuple[Float[Array, "*l M D"], Float[Array, "*l M D D"]]:
    """Mean and covariance of T z, from the precision of z and precision times mean."""
    p, V = np.linalg.eigh(precision)
    V = V / np.sqrt(np.maximum(p, least))[..., None, :]
    root = forth @ V
    return (root @ (_T(V) @ information))[..., 0], root @ _T(root)


def _T(A: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return np.swapaxes(A, -1, -2)
