"""Mixtures of Gaussians whose weights differ between locations and outputs.

The component of each output is selected independently of the components of other outputs:

    P(c_d = c, c_e = c') = w_cd w_c'e,   d ≠ e

Components of different selections are independent, so that at a location

    mean_d = Σ_c w_cd m_cd
    cov_de = Σ_c w_cd w_ce C_cde                    if d and e are selected independently
    cov_de = Σ_c w_c (C_cde + δ_cd δ_ce)            if d and e have one selection, with weights w_c

where m_c and C_c are the mean and covariance of component c, and δ_cd = m_cd − mean_d. The last
line includes the variances (d = e).
"""

import numpy as np
from jaxtyping import Float, Int

from emgpr.ensemble.base import Combined, Covariances, Means

Array = np.ndarray


def weighted_mixture(
    means: Means, covs: Covariances, weights: Means, selection: Int[Array, " D"] | None = None
) -> Combined:
    """Return the mean and covariance of a mixture with weights for each location and output.

    Outputs with equal numbers in `selection` always have the same component; their weights must be
    equal. By default, the components of all outputs are selected independently.

    >>> means, covs = np.array([[[-1.0, -1.0]], [[1.0, 1.0]]]), np.full((2, 1, 2, 2), 0.5)
    >>> weighted_mixture(means, covs, np.full((2, 1, 2), 0.5))[1][0]
    array([[1.5 , 0.25],
           [0.25, 1.5 ]])
    >>> weighted_mixture(means, covs, np.full((2, 1, 2), 0.5), np.array([0, 0]))[1][0]
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    selection = np.arange(means.shape[-1]) if selection is None else selection
    same = selection[:, None] == selection
    mean = (weights * means).sum(axis=0)
    deviation = means - mean
    spread = np.einsum("cmd,cmd,cme->mde", weights, deviation, deviation)
    w = weights[..., :, None]
    pairs = np.where(same, w, w * weights[..., None, :])  # P(c_d = c_e = c)
    return mean, (pairs * covs).sum(axis=0) + np.where(same, spread, 0.0)


def replace_unused(values: Float[Array, "C *n"], weights: Float[Array, "C *n"]) -> Array:
    """Replace the values of components of weight zero by those of the likeliest component.

    No statistic of a mixture depends on components of weight zero. After the replacement, their
    values, which can be any numbers, cause no overflow either.

    >>> replace_unused(np.array([[2.0, 3.0], [4.0, 1e300]]), np.array([[0.1, 1.0], [0.9, 0.0]]))
    array([[2., 3.],
           [4., 3.]])
    """
    used = weights > 0
    if used.all():
        return values
    likeliest = weights.argmax(axis=0, keepdims=True)
    return np.where(used, values, np.take_along_axis(values, likeliest, axis=0))


def replace_unused_outputs(
    means: Means, covs: Covariances, weights: Means
) -> tuple[Means, Covariances]:
    """Replace the means and variances of outputs in components where they have weight zero.

    The covariances of these outputs with other outputs of the component become zero.
    """
    used = weights > 0
    if used.all():
        return means, covs
    variances = replace_unused(np.einsum("cmdd->cmd", covs), weights)
    covs = np.where(used[..., :, None] & used[..., None, :], covs, 0.0)
    np.einsum("cmdd->cmd", covs)[...] = variances
    return replace_unused(means, weights), covs
