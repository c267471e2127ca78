"""Locations in units of the extent of the region, and distances between them."""

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from emgpr.kernels import distance_scales
from emgpr.prediction import LMCPosterior

Array = np.ndarray


def scaled_locations(posterior: LMCPosterior, d: int, n_sites: int) -> Float[Array, "N P"]:
    """Return all sites in units of output d: relative to length-scales and to the extent."""
    return posterior.observations.x / location_unit(posterior, d, n_sites)


def location_unit(posterior: LMCPosterior, d: int, n_sites: int) -> Float[Array, " P"]:
    """Return the unit of each input for output d: its length-scales, if it has several.

    The first `n_sites` sites, those of training, have an extent of one.
    """
    assert posterior.independent is not None
    x = posterior.observations.x[:n_sites]
    unit = distance_scales(posterior.independent.kernels[d : d + 1], x.shape[1])
    extent = float(np.linalg.norm(np.ptp(x / unit, axis=0)))
    return unit * (extent or 1.0)


def typical_spacing(x: Float[Array, "n P"]) -> float:
    """Return the median distance between a location and the nearest different location.

    >>> typical_spacing(np.array([[0.0], [0.0], [3.0], [3.0], [5.0]]))
    2.0
    """
    different = np.unique(x, axis=0)
    k = min(2, len(different))
    return float(np.median(KDTree(different).query(different, k=[k])[0]))
