"""Locations in units of the extent of the region, and distances between them."""

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from emgpr.kernels import distance_scales
from emgpr.latents import nearest_pairs
from emgpr.neighbours import extents
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
    table = posterior.observations
    unit = distance_scales(posterior.independent.kernels[d : d + 1], table.x.shape[1])

    def extent() -> float:
        return float(np.linalg.norm(extents(table.x[:n_sites] / unit)))

    return unit * (table.cached_for_sites(("extent", tuple(unit), n_sites), extent) or 1.0)


def reading_tree(posterior: LMCPosterior, d: int, n_sites: int) -> KDTree:
    """Return the k-d tree of the sites where output d was measured, in units of output d."""
    table = posterior.observations
    return table.tree(location_unit(posterior, d, n_sites), table.observed[d])


def typical_spacing(tree: KDTree) -> float:
    """Return the median distance between a location and the nearest different location.

    It is 0 if there is only one location. If there are many, a sample of them is used.

    >>> typical_spacing(KDTree(np.array([[0.0], [0.0], [3.0], [3.0], [5.0]])))
    2.0
    """
    locations, nearest = nearest_pairs(tree.data, tree)
    if not len(locations):
        return 0.0
    return float(np.median(np.linalg.norm(locations - nearest, axis=1)))
