"""Starting points of the joint optimisation: two steps, principal components, one kernel.

The likelihood has several maxima, and which starting point leads to the best one differs from table
to table:

- "two steps": the kernels and noise of step 1, and initial weights without transfer.
- "principal components": latent processes are the principal components of the outputs. Most of the
  variance is signal. The longest length-scales belong to the leading components.
- "one kernel": principal components that all have the same kernel, so that the covariance of the
  outputs is the same at all distances (an intrinsic model). A third of the variance is noise.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern

from emgpr.arrays import eigh
from emgpr.latents import half_correlation
from emgpr.observations import Observations
from emgpr.weights.initial import output_correlation
from emgpr.weights.parameters import LMCParameters

Array = np.ndarray

SIGNAL_SHARE, SIGNAL_SHARE_ONE_KERNEL = 0.9, 0.7  # of the variance, at the starting points
MIN_EIGENVALUE = 1e-3  # of the correlation matrix of the outputs
SMALL_SHARE = 0.1  # of further weights that repeat a component, relative to the component
# Two nested structures: their ranges relative to that of one structure, their kernels and their
# shares of the variance, at the starting point.
NESTED = ((0.5, Matern(nu=1.5)), (5.0, Matern(nu=0.5)))
NESTED_SHARES = (0.3, 0.7)


def starting_points(
    start: LMCParameters, observations: Observations, *, correlated: bool, own_kernels: bool
) -> dict[str, LMCParameters]:
    """Return the starting points; `start` is the first of them.

    With `own_kernels`, the user set the kernels of all latent processes, which are not exchanged.
    """
    points = {"two steps": start}
    if np.count_nonzero(~observations.constant) < 2:
        return points
    Q = len(start.kernels)
    # Longest length-scales first; kernels with other hyper-parameters keep their order.
    level = [float(np.mean(kernel.theta)) if kernel.n_dims else 0.0 for kernel in start.kernels]
    order = np.arange(Q) if own_kernels else np.argsort(-np.array(level), kind="stable")
    kernels = tuple(start.kernels[q] for q in order)
    components = replace(start, kernels=kernels)
    points["principal components"] = _from_components(
        components, observations, SIGNAL_SHARE, correlated
    )
    if not own_kernels and Q > 1:
        one = replace(start, kernels=(kernels[Q // 2],) * Q)
        points["one kernel"] = _from_components(
            one, observations, SIGNAL_SHARE_ONE_KERNEL, correlated
        )
    return points


def nested_structures(parameters: LMCParameters) -> LMCParameters | None:
    """Divide the process of a single output into one with a shorter and one with a longer range.

    Their sum is a nested covariance model: smooth at short, rough at long distances. Return None if
    the kernel is not one of the automatic choice.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> one = LMCParameters((RBF(1.0),), np.eye(1), np.ones((1, 1, 1)), np.ones((1, 2)))
    >>> [round(kernel.length_scale, 2) for kernel in nested_structures(one).kernels]
    [0.61, 8.49]
    """
    (kernel,), kernels = parameters.kernels, []
    for factor, structure in NESTED:
        given, own = half_correlation(kernel), half_correlation(structure)
        if given is None or own is None:
            return None
        scale = factor * given / own * kernel.length_scale
        kernels.append(clone(structure).set_params(length_scale=scale))
    W = np.concatenate([np.sqrt(share) * parameters.W for share in NESTED_SHARES])
    return replace(parameters, kernels=tuple(kernels), W=W, free=None)


def _from_components(
    start: LMCParameters, observations: Observations, share: float, correlated: bool
) -> LMCParameters:
    """Return parameters whose weights are principal components of the outputs."""
    (Q, D, k), constant = start.W.shape, observations.constant
    values, vectors = eigh(output_correlation(observations))
    values, vectors = np.maximum(values[::-1], MIN_EIGENVALUE), vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary; choose the one with a positive sum.
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
    components = (vectors * np.sqrt(share * values)).T
    W = start.W.copy()
    for q in range(Q):
        for j in range(k):
            c = j * Q + q
            factor = 1.0 if c < D else SMALL_SHARE
            W[q, :, j] = factor * components[(c + c // D) % D]
    if start.free is not None:
        W = np.where(_optimised_columns(start.free, constant)[:, None, :], W, start.W)
        W = np.where(constant[:, None], 0.0, W)
    noise = (1 - share) * (vectors * values) @ vectors.T
    if not correlated:
        noise = np.diag(np.diagonal(noise))
    fixed = constant[:, None] | constant[None, :]
    return replace(start, W=W, noise=np.where(fixed, start.noise, noise))


def _optimised_columns(
    free: Bool[Array, "Q D k"], constant: Bool[Array, " D"]
) -> Bool[Array, "Q k"]:
    """Mark the columns of weights that are optimised for every output that varies."""
    return np.asarray(free[:, ~constant].all(axis=1))
