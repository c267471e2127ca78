"""Initial parameters of step 2: Q latent processes and their weights, derived from step 1.

With as many latent processes as outputs, step 2 starts as in the paper from the model without
transfer, in which latent d belongs to output d only (w_d is the d-th unit vector). With fewer
latent processes, outputs with similar kernels share a latent process, and the principal components
of these outputs are its weights. With more latent processes, the additional ones have the same
kernels with other length-scales, and small weights.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import eigh
from emgpr.latents import Latent, is_length_scale
from emgpr.observations import Observations
from emgpr.weights.parameters import LMCParameters

Array = np.ndarray

SMALL_WEIGHT = 0.1  # not zero, because a weight of zero has no gradient and would stay zero


def initial_parameters(
    latents: Sequence[Latent],
    observations: Observations,
    n_latents: int,
    rank: int,
    *,
    own_kernels: bool = False,
) -> LMCParameters:
    """Return the Q kernels and the weights of rank k from which step 2 starts.

    The first D of `latents` were fitted to the D outputs in step 1. With `own_kernels`, the user
    set the kernels of all Q latent processes, so kernels are neither merged nor repeated. In this
    case, latent q starts with weights on the outputs d for which d mod Q = q. If Q > D, `latents`
    also contains the fits of the remaining kernels.
    """
    D = observations.n_outputs
    first = latents[:D]
    group = np.arange(D) % n_latents if own_kernels else _group_kernels(first, min(n_latents, D))
    correlation = output_correlation(observations)
    kernels, W = [], np.zeros((n_latents, D, rank))
    for q in range(n_latents):
        if q < D:
            outputs = np.flatnonzero(group == q).tolist()
            kernels.append(_shared_kernel([first[d].kernel for d in outputs]))
            values, vectors = eigh(correlation[np.ix_(outputs, outputs)])
            k = min(rank, len(outputs))
            leading = vectors[:, ::-1][:, :k] * np.sqrt(np.maximum(values[::-1][:k], 0.0))
            # The sign of an eigenvector is arbitrary; choose the one with a positive sum.
            leading *= np.where(leading.sum(0) < 0, -1.0, 1.0)
            # The leading components can be zero for an output uncorrelated with the others.
            leading[~leading.any(axis=1), 0] = SMALL_WEIGHT
            W[q, outputs, :k] = leading
        elif own_kernels:
            kernels.append(latents[q].kernel)
        else:
            cycle = q // D
            factor = 3.0 ** ((cycle + 1) // 2 * (-1) ** cycle)
            kernels.append(_rescale_kernel(first[q % D].kernel, factor))
        for j in range(rank):
            if not W[q, :, j].any():
                W[q, (q + j) % D, j] = SMALL_WEIGHT
    return LMCParameters(tuple(kernels), _noise(first), W, _noise_bounds(first))


def independent_parameters(latents: Sequence[Latent], D: int) -> LMCParameters:
    """Return the model without transfer, in which every output has a latent process of its own."""
    first = latents[:D]
    kernels = tuple(latent.kernel for latent in first)
    return LMCParameters(kernels, _noise(first), np.eye(D)[:, :, None], _noise_bounds(first))


def with_output_variances(start: LMCParameters) -> LMCParameters:
    """Extend B_q = W_q W_qᵀ to W_q W_qᵀ + diag(κ_q), as in intrinsic coregionalisation models.

    The added term is represented by D further columns of W_q that form a diagonal matrix.
    """
    Q, D, rank = start.W.shape
    identity = np.broadcast_to(np.eye(D), (Q, D, D))
    W = np.concatenate([start.W, np.sqrt(SMALL_WEIGHT) * identity], axis=-1)
    free = np.concatenate([np.ones((Q, D, rank), bool), identity > 0], axis=-1)
    return replace(start, W=W, free=free)


def decouple_constant_outputs(start: LMCParameters, constant: Bool[Array, " D"]) -> LMCParameters:
    """Fix the weights of constant outputs at zero and their noise at its initial value.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> latents = [Latent(RBF(), noise=0.1, log_likelihood=0.0)] * 2
    >>> start = independent_parameters(latents, 2)
    >>> decouple_constant_outputs(start, np.array([False, True])).W[..., 0]
    array([[1., 0.],
           [0., 0.]])
    """
    if not constant.any():
        return start
    varies = np.broadcast_to(~constant[:, None], start.W.shape)
    free = varies if start.free is None else start.free & varies
    variances = np.diagonal(start.noise)[:, None]
    bounds = np.where(constant[:, None], variances, start.noise_bounds)
    return replace(start, W=np.where(varies, start.W, 0.0), free=free, noise_bounds=bounds)


def _noise(latents: Sequence[Latent]) -> Float[Array, "D D"]:
    return np.diag([latent.noise for latent in latents])


def _noise_bounds(latents: Sequence[Latent]) -> Float[Array, "D 2"]:
    return np.array([latent.noise_bounds for latent in latents])


def _group_kernels(latents: Sequence[Latent], Q: int) -> Int[Array, " D"]:
    """Assign each output to one of Q groups with similar kernel hyper-parameters."""
    D = len(latents)
    if Q == D:
        return np.arange(D)
    sizes = {len(latent.kernel.theta) for latent in latents}
    if Q == 1 or sizes == {0} or len(sizes) > 1:  # the hyper-parameters cannot be clustered
        return np.arange(D) % Q
    theta = np.array([latent.kernel.theta for latent in latents])
    from sklearn.cluster import AgglomerativeClustering  # slow to import

    labels = AgglomerativeClustering(Q).fit_predict(theta)
    # Number the groups in the order of their first outputs, whatever labels the clustering chose.
    _, first = np.unique(labels, return_index=True)
    order = np.argsort(np.argsort(first))
    return order[labels]


def _shared_kernel(kernels: Sequence[Kernel]) -> Kernel:
    """Return a kernel of the most frequent form, with averaged log hyper-parameters."""
    forms = [repr(kernel.clone_with_theta(np.zeros_like(kernel.theta))) for kernel in kernels]
    commonest = max(forms, key=forms.count)
    alike = [kernel for kernel, form in zip(kernels, forms, strict=True) if form == commonest]
    return alike[0].clone_with_theta(np.mean([kernel.theta for kernel in alike], axis=0))


def _rescale_kernel(kernel: Kernel, factor: float) -> Kernel:
    """Multiply the length-scales of a kernel by a factor."""
    theta, at = kernel.theta.copy(), 0
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            if is_length_scale(kernel, parameter.name):
                theta[at : at + parameter.n_elements] += np.log(factor)
            at += parameter.n_elements
    return kernel.clone_with_theta(theta)


def output_correlation(observations: Observations) -> Float[Array, "D D"]:
    """Return the correlation of each pair of outputs over the sites where both were measured."""
    observed, y = observations.observed, observations.y
    both = observed.astype(float) @ observed.T
    power = (y**2) @ observed.T.astype(float)  # sum of squares of output l where m was measured too
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(both >= 3, y @ y.T / np.sqrt(power * power.T), 0.0)
    correlation = np.clip(np.nan_to_num(correlation), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
