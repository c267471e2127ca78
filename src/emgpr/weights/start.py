"""From the tasks' own processes to Q latents and the first weights.

With as many latents as tasks the start is the paper's: latent d is task d's
process and w_d = δ_d, the no-transfer model. With fewer, tasks whose kernels
are alike share one, and hear it as their principal components do; with more,
processes are used again at other length-scales, and heard faintly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.latents import Latent, is_length_scale
from emgpr.observations import Observations

Array = np.ndarray

FAINT = 0.1  # a weight of exactly zero has no gradient and would stay zero


@dataclass(frozen=True)
class Mixture:
    """Kernels of the latents, noise of the tasks, and weights between them."""

    kernels: tuple[Kernel, ...]
    noise: Float[Array, "D D"]
    W: Float[Array, "Q D k"]
    noise_bounds: Float[Array, "D 2"]
    free: Bool[Array, "Q D k"] | None = None  # the weights that are learned; None is all of them

    def learned(self, of_weights: Float[Array, "*b Q D k"]) -> Float[Array, "*b Q D k"]:
        """The part of a gradient that weights may follow."""
        return of_weights if self.free is None else of_weights * self.free


def arrange(
    latents: Sequence[Latent],
    seen: Observations,
    n_latents: int,
    rank: int,
    *,
    own_kernels: bool = False,
) -> Mixture:
    """Q kernels and weights of rank k from which step 2 starts.

    The first D latents are the tasks'. With `own_kernels` each of the Q latents was given
    its kernel, so none are merged or stretched: latent q is heard by the tasks d = q mod Q,
    and those beyond D were learned too.
    """
    D = seen.n_tasks
    tasks = latents[:D]
    group = np.arange(D) % n_latents if own_kernels else _groups(tasks, min(n_latents, D))
    correlation = _correlation(seen)
    kernels, W = [], np.zeros((n_latents, D, rank))
    for q in range(n_latents):
        if q < D:
            members = np.flatnonzero(group == q).tolist()
            kernels.append(_shared([tasks[d].kernel for d in members]))
            values, vectors = np.linalg.eigh(correlation[np.ix_(members, members)])
            k = min(rank, len(members))
            leading = vectors[:, ::-1][:, :k] * np.sqrt(np.maximum(values[::-1][:k], 0.0))
            # The sign of an eigenvector is arbitrary; a task hears its own process positively.
            leading *= np.where(leading.sum(0) < 0, -1.0, 1.0)
            # Among unrelated tasks the leading component may leave one out; none is left deaf.
            leading[~leading.any(axis=1), 0] = FAINT
            W[q, members, :k] = leading
        elif own_kernels:
            kernels.append(latents[q].kernel)
        else:
            lap = q // D
            factor = 3.0 ** ((lap + 1) // 2 * (-1) ** lap)
            kernels.append(_stretched(tasks[q % D].kernel, factor))
        for j in range(rank):
            if not W[q, :, j].any():
                W[q, (q + j) % D, j] = FAINT
    return Mixture(
        tuple(kernels),
        np.diag([task.noise for task in tasks]),
        W,
        np.array([task.noise_bounds for task in tasks]),
    )


def apart(latents: Sequence[Latent], D: int) -> Mixture:
    """No transfer: every task hears its own process and no other."""
    tasks = latents[:D]
    return Mixture(
        tuple(task.kernel for task in tasks),
        np.diag([task.noise for task in tasks]),
        np.eye(D)[:, :, None],
        np.array([task.noise_bounds for task in tasks]),
    )


def with_own_parts(start: Mixture) -> Mixture:
    """B_q = W_q W_qᵀ + diag(κ_q): every task also hears a copy of each process of its own.

    Written as D more columns of W_q, of which only the diagonal is learned.
    """
    Q, D, rank = start.W.shape
    own = np.broadcast_to(np.eye(D), (Q, D, D))
    W = np.concatenate([start.W, np.sqrt(FAINT) * own], axis=-1)
    free = np.concatenate([np.ones((Q, D, rank), bool), own > 0], axis=-1)
    return replace(start, W=W, free=free)


def silenced(start: Mixture, silent: Bool[Array, " D"]) -> Mixture:
    """Tasks that never vary hear nothing, and their noise is held: there is nothing to learn.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> tasks = [Latent(RBF(), noise=0.1, log_likelihood=0.0)] * 2
    >>> silenced(apart(tasks, 2), np.array([False, True])).W[..., 0]
    array([[1., 0.],
           [0., 0.]])
    """
    if not silent.any():
        return start
    heard = np.broadcast_to(~silent[:, None], start.W.shape)
    free = heard if start.free is None else start.free & heard
    held = np.diagonal(start.noise)[:, None]
    bounds = np.where(silent[:, None], held, start.noise_bounds)
    return replace(start, W=np.where(heard, start.W, 0.0), free=free, noise_bounds=bounds)


def _groups(tasks: Sequence[Latent], Q: int) -> Int[Array, " D"]:
    """Which of the Q shared processes each task belongs to."""
    D = len(tasks)
    if Q == D:
        return np.arange(D)
    sizes = {len(task.kernel.theta) for task in tasks}
    if Q == 1 or sizes == {0} or len(sizes) > 1:  # nothing to tell the kernels apart by
        return np.arange(D) % Q
    theta = np.array([task.kernel.theta for task in tasks])
    from sklearn.cluster import AgglomerativeClustering  # slow to import

    labels = AgglomerativeClustering(Q).fit_predict(theta)
    # Number the groups in the order of their first task, whatever the clustering called them.
    _, first = np.unique(labels, return_index=True)
    order = np.argsort(np.argsort(first))
    return order[labels]


def _shared(kernels: Sequence[Kernel]) -> Kernel:
    """One kernel for several tasks: of the commonest form, the mean of log hyper-parameters."""
    forms = [repr(kernel.clone_with_theta(np.zeros_like(kernel.theta))) for kernel in kernels]
    commonest = max(forms, key=forms.count)
    alike = [kernel for kernel, form in zip(kernels, forms, strict=True) if form == commonest]
    return alike[0].clone_with_theta(np.mean([kernel.theta for kernel in alike], axis=0))


def _stretched(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with its length-scales multiplied."""
    theta, at = kernel.theta.copy(), 0
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            if is_length_scale(kernel, parameter.name):
                theta[at : at + parameter.n_elements] += np.log(factor)
            at += parameter.n_elements
    return kernel.clone_with_theta(theta)


def _correlation(seen: Observations) -> Float[Array, "D D"]:
    """Correlation of the outputs over the sites where both were measured."""
    both = seen.seen.astype(float) @ seen.seen.T
    product = seen.y @ seen.y.T
    power = (seen.y**2) @ seen.seen.T.astype(float)  # of task l where m was seen too
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(both >= 3, product / np.sqrt(power * power.T), 0.0)
    correlation = np.clip(np.nan_to_num(correlation), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
