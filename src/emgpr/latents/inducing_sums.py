"""Inducing-point likelihoods as sums over parts of the sites (Gal, van der Wilk & Rasmussen 2014).

With LLᵀ = K_mm, Φ = K_nm L⁻ᵀ, B = I + ΦᵀΛ⁻¹Φ and a = B⁻¹ΦᵀΛ⁻¹y, the inverse of C = Q + Λ is
not needed: γ = C⁻¹y = Λ⁻¹(y − Φa) and C⁻¹Φ = Λ⁻¹ΦB⁻¹. An evaluation has two rounds. In the first
round, every part contributes a term to ΦᵀΛ⁻¹Φ, to ΦᵀΛ⁻¹y and to the log-likelihood; in the second
round, a term to the gradient, using the pullbacks of the kernels (see `emgpr.kernels`). The parts
can be evaluated by different workers. A worker needs only the sites of its part, the m × m matrices
of the inducing points, and the arrays of one block of sites at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, cholesky, diagonal, namespace, to_device_of, to_numpy
from emgpr.checkpoint import NO_CHECKPOINT
from emgpr.covariance.lmc import LOG_2PI
from emgpr.kernels import Pairs, Pullback, evaluate_kernel
from emgpr.latents.residual_covariance import ResidualCovariance, SiteBlock, Solved
from emgpr.parallel import Execution, parallel_map, uses_workers

# Added to the diagonal of K_mm, relative to its mean: K_mm is nearly singular for smooth kernels.
RELATIVE_JITTER = 1e-8

Part = Sequence[tuple[Float[Array, "_ P"], Float[Array, " _"]]]  # blocks of sites and readings
Fit = tuple[float, Float[np.ndarray, " p"]]  # a log-likelihood and its gradient
Result = TypeVar("Result", bound=tuple)


@dataclass(frozen=True)
class InducingPoints:
    """The m inducing points, with the kernel and the noise variance for which K_mm = LLᵀ."""

    kernel: Kernel
    theta: Float[Array, " t"]
    noise: float
    x: Float[Array, "m P"]
    L_inverse: Float[Array, "m m"]

    def block(self, x: Float[Array, "c P"]) -> SiteBlock:
        """Return the rows of Φ for a block of sites."""
        cross, pull = evaluate_kernel(self.kernel, self.theta, Pairs(x, self.x))
        return SiteBlock(self.kernel, self.theta, self.noise, x, cross @ self.L_inverse.T, pull)


class InnerMatrix(NamedTuple):
    """The factor of K_mm, and the pullback of K_mm."""

    points: InducingPoints
    L: Float[Array, "m m"]
    pull: Pullback


def factorise_inner(
    kernel: Kernel, params: Float[np.ndarray, " p"], x: Float[Array, "m P"]
) -> InnerMatrix | None:
    """Factorise K_mm; return None if this is impossible.

    `params` are the log hyper-parameters of the kernel, followed by the log noise variance.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> inner = factorise_inner(RBF(), np.zeros(2), np.array([[0.0], [1.0]]))
    >>> (inner.L @ inner.L.T).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    xp, theta = namespace(x), to_device_of(params[:-1], x)
    K, pull_K = evaluate_kernel(kernel, theta, Pairs(x))
    K = K + 0.0  # a copy, because the array of a constant kernel is read-only
    on_diagonal = diagonal(K)
    on_diagonal += RELATIVE_JITTER * xp.mean(on_diagonal)
    factor = cholesky(K)
    if bool(xp.isnan(factor.jitter)):
        return None

    def pull(of_K: Float[Array, "m m"]) -> Float[Array, " t"]:
        diagonal(of_K)[...] += RELATIVE_JITTER * xp.mean(diagonal(of_K))
        return pull_K(of_K)

    L_inverse = factor.half_solve(to_device_of(np.eye(len(K)), x))
    points = InducingPoints(kernel, theta, float(np.exp(params[-1])), x, L_inverse)
    return InnerMatrix(points, xp.tril(factor.lower), pull)


class LikelihoodSums(NamedTuple):
    """Sums of the first round over the sites of a part."""

    B: Float[Array, "m m"]  # ΦᵀΛ⁻¹Φ
    b: Float[Array, " m"]  # ΦᵀΛ⁻¹y
    value: float  # −½ (yᵀΛ⁻¹y + log |Λ| + n log 2π), plus penalties


class Combined(NamedTuple):
    """The result of the first round."""

    value: float  # the log-likelihood
    a: Float[Array, "m 1"]
    B_inverse: Float[Array, "m m"]


class GradientSums(NamedTuple):
    """Sums of the second round over the sites of a part."""

    of_inner: Float[Array, "m m"]
    of_theta: Float[np.ndarray, " t"]
    of_noise: float


@dataclass(frozen=True)
class PartTask:
    """The evaluation of one part, for a worker; `combined` is None in the first round."""

    points: InducingPoints
    residual: type[ResidualCovariance]
    part: Part
    combined: Combined | None = None


def likelihood_sums(task: PartTask) -> LikelihoodSums:
    """Return the sums of the first round over a part, one block of sites after another."""
    return reduce(_add, (_likelihood_terms(task, x, y) for x, y in task.part))


def _likelihood_terms(
    task: PartTask, x: Float[Array, "c P"], y: Float[Array, " c"]
) -> LikelihoodSums:
    block = task.points.block(x)
    residual = task.residual(block)
    S = residual.solve(block.features)
    misfit = float(y @ residual.solve(y[:, None])[:, 0] + residual.logdet())
    value = residual.penalty - 0.5 * (misfit + len(y) * LOG_2PI)
    return LikelihoodSums(block.features.T @ S, S.T @ y, value)


def combine(sums: LikelihoodSums) -> Combined | None:
    """Return the log-likelihood from the sums over all sites; None if B has no Cholesky factor."""
    xp = namespace(sums.B)
    B = sums.B + to_device_of(np.eye(len(sums.B)), sums.B)
    factor = cholesky(B)
    if bool(xp.isnan(factor.jitter)):
        return None
    a = factor.solve(sums.b[:, None])
    value = sums.value + 0.5 * float(sums.b @ a[:, 0] - factor.logdet())
    return Combined(value, a, factor.inverse())


def gradient_sums(task: PartTask) -> GradientSums:
    """Return the sums of the second round over a part, one block of sites after another."""
    return reduce(_add, (_gradient_terms(task, x, y) for x, y in task.part))


def _gradient_terms(task: PartTask, x: Float[Array, "c P"], y: Float[Array, " c"]) -> GradientSums:
    assert task.combined is not None
    _, a, B_inverse = task.combined
    block = task.points.block(x)
    residual = task.residual(block)
    S = residual.solve(block.features)
    gamma, SB = residual.solve(y[:, None] - block.features @ a), S @ B_inverse
    found = residual.gradient(Solved(gamma, S, SB))
    # T = G Φ L⁻¹, where G is the derivative with respect to Q, including that through Λ.
    T = (0.5 * (gamma @ a.T - SB) + found.along_features) @ task.points.L_inverse
    of_theta = to_numpy(block.pull(2 * T)) + found.of_theta
    return GradientSums(block.features.T @ T, of_theta, found.of_noise)


def _add(one: Result, other: Result) -> Result:
    return type(one)(*(a + b for a, b in zip(one, other, strict=True)))


def log_likelihoods_of_parts(
    inner: Sequence[InnerMatrix | None],
    parts: Sequence[Sequence[Part]],
    residual: type[ResidualCovariance],
    execution: Execution,
) -> list[Fit | None]:
    """Return the log-likelihood of each problem and its gradient; None if it is not defined.

    `inner[i]` and `parts[i]` are those of problem i. The parts of all problems are evaluated
    together, by the workers of `execution` if it has any. Their sums are added in a fixed order, so
    that the result does not depend on the number of workers.
    """
    tasks = {
        i: [PartTask(matrix.points, residual, part) for part in parts[i]]
        for i, matrix in enumerate(inner)
        if matrix is not None
    }
    found = {i: combine(sums) for i, sums in _sum(likelihood_sums, tasks, execution)}
    tasks = {
        i: [replace(task, combined=found[i]) for task in tasks[i]]
        for i in tasks
        if found[i] is not None
    }
    fits: list[Fit | None] = [None] * len(inner)
    for i, sums in _sum(gradient_sums, tasks, execution):
        fits[i] = _gradient(inner[i], found[i], sums)
    return fits


def _gradient(inner: InnerMatrix | None, combined: Combined | None, sums: GradientSums) -> Fit:
    """Return a log-likelihood and its gradient from the sums of both rounds."""
    assert inner is not None
    assert combined is not None
    of_theta = sums.of_theta + to_numpy(inner.pull(-inner.points.L_inverse.T @ sums.of_inner))
    return combined.value, np.append(of_theta, sums.of_noise * inner.points.noise)


def _sum(
    function: Callable[[PartTask], Result], tasks: dict[int, list[PartTask]], execution: Execution
) -> Iterator[tuple[int, Result]]:
    """Yield the sum of a function over the parts of each problem."""
    listed = [task for of_problem in tasks.values() for task in of_problem]
    if len(listed) > 1 and uses_workers(execution):
        quiet = replace(execution.quiet(), checkpoint=NO_CHECKPOINT)
        results = iter(parallel_map(function, listed, quiet))
    else:
        results = map(function, listed)
    for i, of_problem in tasks.items():
        yield i, reduce(_add, islice(results, len(of_problem)))
