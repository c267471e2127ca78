"""Length-scales of the input columns: one for all of them, or one for each."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.inputs import InputSpec
from emgpr.latents import Latent, is_length_scale, typical_distances
from emgpr.neighbours import extents
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, leave_out

Array = np.ndarray

MAX_ASPECT = 10.0  # largest ratio of the extents of two coordinates of one unit
# A column whose range is a smaller share of the distance between neighbours hardly changes it.
NEGLIGIBLE_RANGE = 0.1
MAX_LEFT_OUT = 400  # number of sites used to compare length-scales by cross-validation


def are_coordinates(inputs: InputSpec, x: Float[Array, "N p"]) -> bool:
    """Tell whether the inputs are only coordinates of one unit, which share a length-scale.

    These are one column, two columns with a reference system, or two columns of similar extents.
    Constant columns do not count.
    """
    if inputs.n_features == 2 and inputs.crs is not None:
        return True
    ranges = extents(x)
    ranges = ranges[ranges > 0]
    similar = len(ranges) == 2 and ranges.max() <= MAX_ASPECT * ranges.min()
    return len(ranges) < 2 or bool(similar)


def describe_ignored_columns(
    kernels: Sequence[Kernel], inputs: InputSpec, x: Float[Array, "N p"], *, automatic: bool
) -> str:
    """Return a warning about columns that have no effect because of their units, or "".

    With one length-scale for all columns, the column with the largest values dominates distances.
    `automatic` tells whether the estimator can choose kernels.
    """
    common = [
        parameter.n_elements == 1
        for kernel in kernels
        for parameter in kernel.hyperparameters
        if is_length_scale(kernel, parameter.name)
    ]
    if not common or not all(common) or x.shape[1] != inputs.n_features:
        return ""
    extents = np.ptp(x, axis=0)
    small = np.flatnonzero((extents > 0) & (extents < NEGLIGIBLE_RANGE * typical_distances(x)[0]))
    if not len(small):
        return ""
    names, largest = inputs.names, inputs.names[int(extents.argmax())]
    choice = 'kernel="auto", or ' if automatic else ""
    some = ", ".join(repr(names[p]) for p in small[:5])
    return (
        f"The kernel has one length-scale for all input columns. The values of {some} vary so much "
        f"less than those of {largest!r} that they have practically no effect on distances. "
        f"Set {choice}a kernel with one length-scale for each "
        f"column, such as RBF({[1] * len(names)}), or express the columns in comparable units."
    )


def left_out_log_density(observations: Observations, d: int, latent: Latent) -> Float[Array, " n"]:
    """Return the log density of each reading of output d, given its other readings."""
    table = observations.output(d).without_empty_sites()
    table = table.at(table.subsample(MAX_LEFT_OUT))
    model = LMCModel((latent.kernel,), np.ones((1, 1, 1, 1)), np.array([[latent.noise]]))
    left_out = leave_out(table, np.arange(table.n_sites)[None], model)
    mean, var = left_out.mean[0, :, 0], left_out.cov[0, :, 0, 0]
    return -0.5 * ((table.y[0] - mean) ** 2 / var + np.log(2 * np.pi * var))
