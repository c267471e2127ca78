"""Predictions of sets of readings from all other readings, given one inverse covariance.

If P is the inverse covariance of all readings and γ = P y, the readings in a set S have, given all
others, the mean y_S − P_SS⁻¹ γ_S and the covariance P_SS⁻¹.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import Array, inv, to_device_of, to_numpy
from emgpr.prediction.posterior import GaussianMixture


def sets_by_size(
    observed: Bool[np.ndarray, "D N"], sets: Int[np.ndarray, "D N"]
) -> Iterator[Int[np.ndarray, "m s"]]:
    """For each set size, yield an array with the positions of the readings of one set per row.

    Positions are those in the vector of readings, ordered by output and then by site. Readings with
    negative labels belong to no set.

    >>> sets = np.array([[0, 1, 2], [0, 1, 3]])
    >>> [S.tolist() for S in sets_by_size(np.ones((2, 3), bool), sets)]
    [[[2], [5]], [[0, 3], [1, 4]]]
    """
    rows = np.flatnonzero((observed & (sets >= 0)).reshape(-1))
    label = sets.reshape(-1)[rows]
    rows = rows[np.argsort(label, kind="stable")]
    size = np.unique(label, return_counts=True)[1]
    first = np.cumsum(size) - size
    for s in np.unique(size):
        yield rows[first[size == s][:, None] + np.arange(s)]


def write_left_out(
    result: GaussianMixture,
    member: int,
    y: Float[np.ndarray, "D N"],
    outputs: Int[np.ndarray, "m s"],
    sites: Int[np.ndarray, "m s"],
    P: Float[Array, "n n"],
    gamma: Float[Array, " n"],
    rows: Int[np.ndarray, "m s"],
) -> None:
    """Predict m sets of s readings, and write their means and covariances to `result`.

    `rows` are the rows of P and γ that belong to the readings of `outputs` at `sites`. Covariances
    of readings at different sites are not written.
    """
    at = to_device_of(rows, P)
    inner = inv(P[at[:, :, None], at[:, None, :]])
    shift = to_numpy(inner @ gamma[at][..., None])[..., 0]
    cov = to_numpy(inner)
    result.mean[member, sites, outputs] = y[outputs, sites] - shift
    pair = np.nonzero(sites[:, :, None] == sites[:, None, :])
    a, b = pair[:2], (pair[0], pair[2])
    result.cov[member, sites[a], outputs[a], outputs[b]] = cov[pair]
