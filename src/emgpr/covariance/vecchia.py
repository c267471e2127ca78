"""Vecchia's approximation of the likelihood of a linear model of coregionalisation.

The sites are put in an order, and the readings at each site are conditioned on the readings at a
few of its nearest earlier sites:

    log p(y) ≈ Σ_i log p(y_i | y_nb(i))

With all earlier sites as neighbours, this is the exact likelihood. A block contains the readings of
the neighbours, followed by the readings of the site. Let L be the Cholesky factor of the covariance
of a block, z = L⁻¹y, and let U be the columns of L⁻ᵀ that belong to the site. Then

    log p(y_i | y_nb(i)) = −½ |z_i|² − log |L_ii| − ½ n_i log 2π

Its derivative with respect to the covariance is ½ (α αᵀ − α' α'ᵀ − U Uᵀ), where α = L⁻ᵀ z and
α' = α − U z_i, which is the same vector for the neighbours alone. This matrix, which has rank
D + 2, is not formed: its factor F = [α, α', U] is multiplied by kernel matrices and weights.

The information matrix of the parameters is the sum over blocks of ⟨t_a, t_b⟩ over the rows of the
neighbours, plus ½ ⟨t_a, t_b⟩ over the rows of the site, where t_a = L⁻¹ ∂_a cov (α − α'). It is
positive semidefinite, and its expectation is the Fisher information of the conditional
distributions.

The covariance is quadratic in the weights, B_q = W_q W_qᵀ. Minus the second derivative of the
log-likelihood therefore also contains −2 ∂ log p / ∂B_q for each column of W_q. It is large for
columns that are small, or zero, because the readings show no more signal of this kind, which the
information matrix does not see. At a maximum over B_q of any rank, this term is semidefinite; its
positive part, added to the information matrix, gives the curvature that a search needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from emgpr.arrays import Array, CholeskyFactor, cholesky, diagonal, eigh, namespace, zeros
from emgpr.covariance.lmc import LOG_2PI, coregionalization
from emgpr.observations import Observations


@dataclass(frozen=True)
class BlockLikelihood:
    """The log-likelihood of the last site of each block given its other sites.

    The derivatives with respect to weights and noise are sums over all blocks. The derivative with
    respect to K_q is valid only for symmetric changes of K_q.
    """

    value: Float[Array, " b"]
    of_weights: Float[Array, "Q D k"]
    of_noise: Float[Array, "D D"]
    of_kernels: Float[Array, "b Q s s"]
    factor: CholeskyFactor  # of the covariance of each block
    rows: Float[Array, "b s D r"]  # F = [α, α', U], the factor of the derivative


def block_log_likelihood(
    blocks: Observations,
    W: Float[Array, "Q D k"],
    noise: Float[Array, "D D"],
    K: Float[Array, "b Q s s"],
) -> BlockLikelihood:
    """Return the log-likelihood of each block's last site given its other sites, and gradients."""
    xp = namespace(K)
    (b, Q, s, _), (D, k) = K.shape, W.shape[-2:]
    first = (s - 1) * D  # rows of the neighbours
    L = cholesky(partial(_block_covariance, blocks, W, noise, K))
    z = L.half_solve(xp.matrix_transpose(blocks.y).reshape(b, s * D, 1))
    z_site = z[:, first:]
    right = zeros(K, b, s * D, D + 1)
    right[..., :1] = z
    diagonal(right[:, first:, 1:])[...] = 1.0
    solved = L.back_solve(right)
    alpha, U = solved[..., :1], solved[..., 1:]
    F = xp.concat([alpha, alpha - U @ z_site, U], axis=-1).reshape(b, s, D, D + 2)
    if not blocks.complete:
        F *= xp.matrix_transpose(blocks.observed)[..., None]
    logs = xp.sum(xp.log(diagonal(L.lower[:, first:, first:])), axis=-1)
    n_readings = xp.sum(blocks.observed[..., -1], axis=-1, dtype=K.dtype)
    value = -0.5 * (xp.sum(z_site**2, axis=(-2, -1)) + LOG_2PI * n_readings) - logs
    value = xp.where(xp.isnan(L.jitter), -float("inf"), value)

    signed = _signed(F)
    Wt = xp.matrix_transpose(W).reshape(Q * k, D)
    P, signed_P = (
        xp.moveaxis((Wt @ part).reshape(b, s, Q, k * (D + 2)), 2, 1) for part in (F, signed)
    )
    of_K = signed_P @ xp.matrix_transpose(P)
    KP = xp.moveaxis((K @ signed_P).reshape(b, Q, s, k, D + 2), (1, 3), (3, 4))  # b s r Q k
    rows, signed_rows = (xp.moveaxis(part, 2, 3).reshape(-1, D) for part in (F, signed))
    of_W = 2.0 * (xp.matrix_transpose(KP.reshape(-1, Q * k)) @ rows)
    of_noise = xp.matrix_transpose(signed_rows) @ rows
    of_W = xp.matrix_transpose(of_W.reshape(Q, k, D))
    return BlockLikelihood(value, of_W, of_noise, of_K, L, F)


def _signed(F: Float[Array, "b s D r"]) -> Float[Array, "b s D r"]:
    """Multiply the columns of F by their signs and by ½; the derivative is then F signedᵀ."""
    signed = 0.5 * F
    signed[..., 1:] *= -1.0
    return signed


def _block_covariance(
    blocks: Observations,
    W: Float[Array, "Q D k"],
    noise: Float[Array, "D D"],
    K: Float[Array, "b Q s s"],
) -> Float[Array, "b n n"]:
    """Return the covariance of each block, with its readings in order of site, then output."""
    xp = namespace(K)
    (b, Q, s, _), D = K.shape, len(noise)
    B = coregionalization(W).reshape(Q, D * D)
    mixed = (xp.matrix_transpose(K.reshape(b, Q, s * s)) @ B).reshape(b, s, s, D, D)
    within_site = diagonal(mixed, 1, 2)  # b D D s
    within_site += noise[..., None]
    cov = xp.moveaxis(mixed, 2, 3).reshape(b, s * D, s * D)
    if not blocks.complete:
        observed = xp.matrix_transpose(blocks.observed).reshape(b, s * D)
        cov *= observed[:, :, None]
        cov *= observed[:, None, :]
        diagonal(cov)[~observed] = 1.0
    return cov


def block_information(
    fit: BlockLikelihood,
    blocks: Observations,
    W: Float[Array, "Q D k"],
    K: Float[Array, "b Q s s"],
    of_kernels: Sequence[tuple[int, Float[Array, "b s s"]]],
    of_noise: Float[Array, "c D D"],
) -> Float[Array, "p p"]:
    """Return the information matrix of kernel parameters, noise parameters and weights.

    `of_kernels` contains a latent process q and the derivative of K_q for each kernel parameter,
    and `of_noise` contains the derivative of Σ with respect to each noise parameter.
    """
    xp = namespace(K)
    (b, Q, s, _), (D, k) = K.shape, W.shape[-2:]
    V, B, c = fit.rows[..., 0] - fit.rows[..., 1], coregionalization(W), len(of_noise)
    p = len(of_kernels) + c + Q * D * k
    right = zeros(K, b, s, D, p)  # ∂_a cov (α − α')
    for a, (q, dK) in enumerate(of_kernels):
        right[..., a] = dK @ V @ B[q]
    at = len(of_kernels)
    flat = xp.moveaxis(of_noise, 0, 2).reshape(D, D * c)
    right[..., at : at + c] = (V @ flat).reshape(b, s, D, c)
    # ∂B_q/∂w_q[d] has w_q in row d and in column d.
    KV = xp.moveaxis(K @ V[:, None], 1, 2)  # b s Q D
    of_weights = zeros(K, b, s, D, Q, D, k)
    of_weights += KV[:, :, None, :, :, None] * xp.moveaxis(W, 1, 0)[:, :, None, :]
    same = diagonal(of_weights, 2, 4)  # b s Q k D
    same += (KV[..., None, :] @ W)[:, :, :, 0, :, None]
    right[..., at + c :] = of_weights.reshape(b, s, D, -1)
    if not blocks.complete:
        right *= xp.matrix_transpose(blocks.observed)[..., None]
    t = fit.factor.half_solve(right.reshape(b, s * D, p))
    t[:, (s - 1) * D :] *= np.sqrt(0.5)
    t = t.reshape(-1, p)
    return xp.matrix_transpose(t) @ t


def derivative_by_coregionalization(
    fit: BlockLikelihood, K: Float[Array, "b Q s s"]
) -> Float[Array, "Q D D"]:
    """Return the derivative of the log-likelihood by each B_q = W_q W_qᵀ, summed over blocks."""
    xp, F = namespace(K), fit.rows
    (b, s, D, r), Q = F.shape, K.shape[1]
    KF = (K @ _signed(F).reshape(b, 1, s, D * r)).reshape(b, Q, s, D, r)
    left = xp.moveaxis(KF, (1, 3), (0, 1)).reshape(Q * D, -1)
    of_B = (left @ xp.moveaxis(F, 2, 0).reshape(D, -1).T).reshape(Q, D, D)
    return 0.5 * (of_B + xp.matrix_transpose(of_B))


def add_weight_curvature(
    information: Float[np.ndarray, "p p"], of_B: Float[np.ndarray, "Q D D"], k: int
) -> Float[np.ndarray, "p p"]:
    """Add the positive part of −2 ∂ log p / ∂B_q to the information of each column of W_q.

    The weights are the last parameters, in the order (q, d, column).
    """
    Q, D, _ = of_B.shape
    values, vectors = eigh(-2.0 * of_B)
    curvature = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    total, n = information.copy(), Q * D * k
    of_weights = total[-n:, -n:].reshape(Q, D, k, Q, D, k)
    q, j = np.divmod(np.arange(Q * k), k)
    of_weights[q, :, j, q, :, j] += curvature[q]
    total[-n:, -n:] = of_weights.reshape(n, n)
    return total
