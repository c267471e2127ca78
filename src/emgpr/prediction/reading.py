"""From the signals at a site to what an instrument would read there.

A reading is y = f + e. Of a sample whose outputs s were read and u were not,
e_u = A e_s + ε with A = Σ_us Σ_ss⁻¹, and e_s = y_s − f_s, so

    y_u = (f_u − A f_s) + A y_s + ε,   cov ε = Σ_uu − A Σ_su

which needs no more than the belief about the signals: what was read informs
through the noise too. Of an output that was read, another reading is
predicted, with noise of its own.
"""

import numpy as np
from jaxtyping import Float

from emgpr.prediction.condition import Belief

Array = np.ndarray


def informed(belief: Belief, noise: Float[Array, "D D"], sample: Float[Array, "M D"]) -> Belief:
    """The belief about the signals of each site, given what was read there, NaN where nothing was.

    >>> belief = Belief(np.zeros((1, 1, 2)), np.array([[[[1.0, 0.5], [0.5, 1.0]]]]))
    >>> told = informed(belief, np.eye(2), np.array([[2.0, np.nan]]))
    >>> told.mean[0, 0], told.cov[0, 0].diagonal()
    (array([1. , 0.5]), array([0.5  , 0.875]))
    """
    mean, cov = belief.mean.copy(), belief.cov.copy()
    read = ~np.isnan(sample)
    for pattern in np.unique(read, axis=0):
        s = np.flatnonzero(pattern)
        if not len(s):
            continue
        rows = np.flatnonzero((read == pattern).all(axis=1))
        cross = cov[:, rows][:, :, s]
        gain = np.linalg.solve(cross[..., s] + noise[np.ix_(s, s)], cross)
        told = sample[rows[:, None], s] - mean[:, rows[:, None], s]
        mean[:, rows] += np.einsum("lms,lmsd->lmd", told, gain)
        cov[:, rows] -= np.swapaxes(cross, -1, -2) @ gain
    return Belief(mean, cov)


def turned_to_readings(
    belief: Belief,
    prior: Float[Array, "*l M D D"],
    noise: Float[Array, "D D"],
    sample: Float[Array, "M D"] | None = None,
) -> tuple[Belief, Float[Array, "*l M D D"], Float[Array, "M D D"]]:
    """The belief about y without ε, its prior, and the covariance of ε, at each site.

    `sample` holds what was read of the very sample that is asked for, NaN where
    nothing was; None if it is another everywhere.

    >>> belief = Belief(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    >>> noise = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> sample = np.array([[2.0, np.nan]])
    >>> told, _, left = turned_to_readings(belief, np.eye(2)[None], noise, sample)
    >>> told.mean[0, 0], left[0].diagonal()
    (array([0., 1.]), array([1.  , 0.75]))
    """
    M, D = belief.mean.shape[1:]
    left = np.broadcast_to(noise, (M, D, D))
    joined = np.count_nonzero(noise - np.diag(np.diagonal(noise))) > 0
    if sample is None or not joined or not (~np.isnan(sample)).any():
        return belief, prior, left
    mean, cov, left = belief.mean.copy(), belief.cov.copy(), left.copy()
    prior = prior.copy()
    read = ~np.isnan(sample)
    for pattern in np.unique(read, axis=0):
        s, u = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        if not len(s) or not len(u):
            continue
        rows = np.flatnonzero((read == pattern).all(axis=1))
        A = np.linalg.solve(noise[np.ix_(s, s)], noise[np.ix_(s, u)]).T
        T = np.eye(D)
        T[np.ix_(u, s)] = -A
        mean[:, rows] = mean[:, rows] @ T.T
        mean[:, rows[:, None], u] += sample[rows[:, None], s] @ A.T
        cov[:, rows] = T @ cov[:, rows] @ T.T
        prior[..., rows, :, :] = T @ prior[..., rows, :, :] @ T.T
        own = np.zeros((D, D))
        own[np.ix_(s, s)] = noise[np.ix_(s, s)]
        own[np.ix_(u, u)] = noise[np.ix_(u, u)] - A @ noise[np.ix_(s, u)]
        left[rows] = own
    return Belief(mean, cov), prior, left
