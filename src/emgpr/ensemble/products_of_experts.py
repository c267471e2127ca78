"""Products of the members' Gaussians: products of experts and Bayesian committee machines.

All rules in this module are weighted products of the members' Gaussians N(m_l, C_l). They differ
only in the weights β_l. The result has the precision Λ and the mean m:

    Λ = Σ_l β_l C_l⁻¹ + β₀ C₀⁻¹,   Λ m = Σ_l β_l C_l⁻¹ m_l

Products of experts (poe, gpoe) omit the prior N(0, C₀), so that β₀ = 0; committee machines (bcm,
rbcm, grbcm) count it once, with β₀ = 1 − Σ_l β_l. (Tresp 2000; Cao & Fleet 2014; Deisenroth & Ng
2015; Liu, Cai, Wang & Ong 2018.)

Covariances are often singular: Q < D latent processes span only Q directions in output space, and a
reading without noise leaves no variance. Products are therefore formed in coordinates in which the
prior covariance is the identity. In directions without prior variance, the mean and variance of the
result are zero. If a member has more variance than the prior, the Λ of a committee machine could be
indefinite, so the variance of the result is limited to the prior variance in every direction.

The formulas do not hold for members with different weights W_q, because the priors of such members
differ. With few latent processes, the signals of each member are confined to a different line or
plane. Their product is confined to the point where these lines or planes intersect, the origin.
Therefore `rebase` first gives all members the same prior.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh
from emgpr.ensemble.base import Combined, Covariances, Means, Prior

Array = np.ndarray

MIN_PRIOR_VARIANCE = 1e-10  # directions with less are omitted; outputs are scaled to unit variance
MIN_MEMBER_VARIANCE = 1e-10  # relative to the prior, so that precisions stay finite
# A direction with less than this share of the largest variance of a member's own prior is omitted.
MIN_OWN_VARIANCE = 1e-6


def poe(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Product of experts, β_l = 1: combining L equal predictions divides their variance by L.

    >>> poe(np.ones((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[1.]]), array([[[0.5]]]))
    """
    return _product(means, covs, prior, np.ones_like)


def gpoe(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Generalised product of experts, β_l = 1/L: combining equal predictions keeps their variance.

    Weights proportional to the members' information gains, with a sum of 1, would be undefined far
    from the data (0/0). Near the data, they would be almost equal, because all members predict from
    the same readings.

    >>> gpoe(np.ones((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[1.]]), array([[[1.]]]))
    """
    return _product(means, covs, prior, lambda gain: np.full_like(gain, 1 / len(gain)))


def bcm(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Bayesian committee machine, β_l = 1: exact if batches are independent given the signals.

    In this example, two members each have one reading of value 1, and the variances of signal and
    noise are 1:

    >>> bcm(np.full((2, 1, 1), 0.5), np.full((2, 1, 1, 1), 0.5), np.ones((1, 1, 1)))[1]
    array([[[0.33333333]]])
    """
    return _product(means, covs, prior, np.ones_like, committee=True)


def rbcm(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Robust Bayesian committee machine: β_l = ½ log(det C₀ / det C_l), at least 0.

    β_l is the information gain of member l. If no member gains information, the result is the
    prior:

    >>> rbcm(np.zeros((2, 1, 1)), np.ones((2, 1, 1, 1)), np.ones((1, 1, 1)))
    (array([[0.]]), array([[[1.]]]))
    """
    return _product(means, covs, prior, np.asarray, committee=True)


def grbcm(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Generalised robust committee machine: the prediction of member 0 is the prior of the others.

    Members 1, 2 and so on should be conditioned on the data of member 0, the communication expert,
    in addition to their own. The weights are β₁ = 1 and β_l = ½ log(det C₀ / det C_l) for l > 1, so
    that the combination of two members is the prediction of member 1.
    """
    if len(means) == 1:
        return means[0].copy(), covs[0].copy()
    shift, cov = _product(
        means[1:] - means[0],
        covs[1:],
        covs[0] + MIN_MEMBER_VARIANCE * prior,
        lambda gain: np.concatenate([np.ones_like(gain[:1]), gain[1:]]),
        committee=True,
    )
    return means[0] + shift, cov


def rebase(
    means: Means, covs: Covariances, priors: Covariances, prior: Prior
) -> tuple[Means, Covariances]:
    """Return what the members would predict with `prior` in place of their own `priors`.

    The data contribute the precision J_l = C_l⁻¹ − P_l⁻¹ to member l, where P_l is its prior
    covariance. The result is C = (prior⁻¹ + J_l)⁻¹ and m = C C_l⁻¹ m_l. In directions in which P_l
    has no variance, J_l is zero.

    In this example, one reading of value 1 has noise of variance 1, and the prior variance is
    changed from 1 to 2:

    >>> half, one = np.full((1, 1, 1, 1), 0.5), np.ones((1, 1, 1, 1))
    >>> rebase(half[0], half, one, 2 * one[0])
    (array([[[0.66666667]]]), array([[[[0.66666667]]]]))
    """
    scale = _standard_deviations(prior)
    s, U = eigh(priors / (scale * _T(scale)))
    # Rounding errors of the covariance are divided by s² in J_l, so s must not be tiny.
    used = s > MIN_OWN_VARIANCE * s[..., -1:]
    root = np.sqrt(np.where(used, s, np.inf))
    A = U / root[..., None, :] / scale  # P_l⁻¹ = A Aᵀ
    c, V = eigh(_T(A) @ covs @ A + ~used[..., None] * np.eye(s.shape[-1]))
    c = np.clip(c, MIN_MEMBER_VARIANCE, 1.0)[..., None, :]
    A = A @ V  # now C_l⁻¹ = A diag(1/c) Aᵀ too
    T, _, _ = _whitening(prior)
    projected = _T(T) @ A
    J = (projected * (1 / c - 1)) @ _T(projected)
    information = (projected / c) @ (_T(A) @ means[..., None])
    return _from_precision(T, np.eye(s.shape[-1]) + J, information, min_precision=1.0)


def _product(
    means: Means,
    covs: Covariances,
    prior: Prior,
    weigh: Callable[[Float[Array, "L M"]], Float[Array, "L M"]],
    committee: bool = False,
) -> Combined:
    """Return the weighted product; `weigh` computes β from the members' information gains."""
    if len(means) == 1:  # weights other than 1, as in rbcm, would change an exact result
        return means[0].copy(), covs[0].copy()
    T, inverse, unused = _whitening(prior)
    c, V = eigh(inverse @ covs @ _T(inverse) + unused)
    c = np.maximum(c, MIN_MEMBER_VARIANCE)
    beta = weigh(np.maximum(-0.5 * np.log(c).sum(-1), 0.0))[..., None, None]
    weighted = beta * ((V / c[..., None, :]) @ _T(V))
    precision = weighted.sum(axis=0)
    if committee:
        precision += (1 - beta.sum(axis=0)) * np.eye(c.shape[-1])
    information = (weighted @ inverse @ means[..., None]).sum(axis=0)
    return _from_precision(T, precision, information, min_precision=1.0 if committee else 0.0)


def _whitening(prior: Prior) -> tuple[Prior, Prior, Prior]:
    """Return T with T Tᵀ = prior, its inverse, and a diagonal matrix that marks unused directions.

    Outputs are scaled to unit variance first, so that the thresholds do not depend on their units.
    """
    scale = _standard_deviations(prior)
    s, U = eigh(prior / (scale * _T(scale)))
    used = s > MIN_PRIOR_VARIANCE
    root = np.sqrt(np.where(used, s, 1.0))
    T = scale * U * (used * root)[:, None, :]
    inverse = _T(U * (used / root)[:, None, :] / scale)
    return T, inverse, ~used[..., None] * np.eye(s.shape[-1])


def _standard_deviations(cov: Prior) -> Float[Array, "M D 1"]:
    variance = np.einsum("mdd->md", cov)[..., None]
    return np.asarray(np.sqrt(np.where(variance > 0, variance, 1.0)))


def _from_precision(
    T: Prior,
    precision: Float[Array, "*l M D D"],
    information: Float[Array, "*l M D 1"],
    min_precision: float,
) -> tuple[Float[Array, "*l M D"], Float[Array, "*l M D D"]]:
    """Return mean and covariance of T z from the precision of z and its product with the mean."""
    p, V = eigh(precision)
    V = V / np.sqrt(np.maximum(p, min_precision))[..., None, :]
    root = T @ V
    return (root @ (_T(V) @ information))[..., 0], root @ _T(root)


def _T(A: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return np.swapaxes(A, -1, -2)
