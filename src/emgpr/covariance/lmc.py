"""Dense covariance, likelihood and gradients of a linear model of coregionalisation.

The largest array is the covariance of all readings, with n = D·N rows and columns. It is formed
once, and is overwritten first with its Cholesky factor and then with its inverse. For a single
table, only the lower triangle is formed. Other arrays of that size are computed in panels, each of
which contains the rows for a few outputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import (
    Array,
    CholeskyFactor,
    cholesky,
    diagonal,
    empty,
    namespace,
    panel_size,
    to_device_of,
    to_numpy,
    zeros,
)
from emgpr.observations import Observations

LOG_2PI = float(np.log(2 * np.pi))


def coregionalization(W: Float[Array, "*b Q D k"]) -> Float[Array, "*b Q D D"]:
    """Return the coregionalisation matrices B_q = W_q W_qᵀ."""
    return W @ namespace(W).matrix_transpose(W)


def variance_shares(
    kernels: Sequence[Kernel],
    W: Float[np.ndarray, "L Q D k"],
    noise: Float[np.ndarray, "D D"],
    x: Float[np.ndarray, "N P"],
) -> Float[np.ndarray, "D Qn"]:
    """Return the fractions of each output's variance due to the latents and, last, due to noise."""
    B = np.einsum("lqdd->dq", coregionalization(W)) / len(W)
    variance = np.array([kernel.diag(x).mean() for kernel in kernels])
    parts = np.column_stack([B * variance, np.diagonal(noise)])
    return parts / parts.sum(axis=1, keepdims=True)


def cross_covariance(
    B: Float[Array, "*b Q D D"], K: Float[Array, "*c Q N M"]
) -> Float[Array, "*d D N D M"]:
    """Return Σ_q B_q ⊗ K_q, the covariance of all outputs between two sets of sites."""
    xp = namespace(K)
    *_, D, _ = B.shape
    *_, Q, N, M = K.shape
    batch = np.broadcast_shapes(B.shape[:-3], K.shape[:-3])
    flat_K = K.reshape(*K.shape[:-3], Q, N * M)

    def panel(outputs: slice) -> Array:  # (*d, l, N, D, M)
        mixed = xp.matrix_transpose(_flatten_pairs(B[..., outputs, :])) @ flat_K
        return xp.moveaxis(mixed.reshape(*batch, -1, D, N, M), -2, -3)

    first, *others = _output_slices(D, int(np.prod(batch)) * N * D * M, panel_size(K))
    if not others:
        return panel(first)
    cov = empty(K, *batch, D, N, D, M)
    for outputs in (first, *others):
        cov[..., outputs, :, :, :] = panel(outputs)
    return cov


def prior_covariance(
    B: Float[Array, "*b Q D D"], diagonals: Float[Array, "*c Q M"]
) -> Float[Array, "*d M D D"]:
    """Return the prior covariance Σ_q B_q k_q(x, x) of the outputs' signals at each location."""
    return np.einsum("...qlm,...qi->...ilm", B, diagonals)


def observation_covariance(
    table: Observations,
    B: Float[Array, "*m Q D D"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
) -> Float[Array, "*b DN DN"]:
    """Return the covariance of the readings; missing readings have variance 1 and covariance 0."""
    cov = cross_covariance(B, K)
    within_site = diagonal(cov, -3, -1)
    within_site += noise[..., None]
    return table.decouple_missing(cov)


def dense_log_likelihood(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
    *,
    of_kernels: bool,
    information: bool = False,
) -> tuple[
    Float[Array, "*b"],
    Float[Array, "*b Q D D"],
    Float[Array, "*b D D"],
    Float[Array, "*b Q N N"] | None,
    Float[Array, "*b p p"] | None,
]:
    """Return the log-likelihood and its derivatives with respect to B_q and Σ.

    The derivative with respect to K_q and the information matrix of W are computed on request. All
    derivatives are computed from G = γγᵀ − cov⁻¹, where γ = cov⁻¹y, using a single product of
    matrices with the shapes (D², N²) and (N², Q). The derivatives of cov are not formed. Only the
    symmetric part of the derivative with respect to K_q is meaningful, because K_q is symmetric.
    """
    xp = namespace(K)
    *batch, Q, N, _ = K.shape
    B, D, single = coregionalization(W), noise.shape[-1], not batch
    panels = _row_panels(table)
    measured = None  # rows of the covariance that belong to readings; None if all rows do
    if single and not table.complete and panels[-1].rows.stop == D * N:
        (measured,) = xp.nonzero(table.observed.reshape(D * N))
    if single:
        y = (table.stacked if table.complete else table.y[table.observed])[:, None]
        L = cholesky(partial(_lower_triangle, panels, B, noise, K, measured))
    else:
        y = table.stacked[..., None]
        L = cholesky(partial(observation_covariance, table, B, noise, K))
    gamma = L.solve(y)
    value = -0.5 * (xp.sum(y * gamma, axis=(-2, -1)) + L.logdet() + _n_readings(table) * LOG_2PI)
    value = xp.where(xp.isnan(L.jitter), -float("inf"), value)

    info = _average_information(table, W, K, L, gamma) if information else None
    # From here on, G has the opposite sign: cov⁻¹ − γγᵀ. Its lower triangle is enough, because K
    # and B are symmetric.
    G = L.inverse_less_square(gamma)
    if measured is not None:
        G, of_readings = zeros(K, D * N, D * N), G
        G[measured[:, None], measured] = of_readings
    if not (single or table.complete):  # missing readings have a constant variance of 1
        diagonal(G)[~table.observed.reshape(*table.observed.shape[:-2], D * N)] = 0.0
    of_B, of_noise = zeros(K, *batch, Q, D, D), zeros(K, *batch, D, D)
    of_K = None
    for i, panel in enumerate(panels):
        M = _lower_half(G, panels[: i + 1], N)
        pair_shape = (panel.shape[0], panel.outputs.stop)
        within_site = xp.sum(M[..., panel.within_site], axis=-1)
        of_noise[panel.pairs] = -within_site.reshape(*batch, *pair_shape)
        per_latent = panel.site_rows(K).reshape(*batch, Q, -1) @ xp.matrix_transpose(M)
        of_B[panel.pairs] = -per_latent.reshape(*batch, Q, *pair_shape)
        if of_kernels:
            part = (-_flatten_pairs(B[panel.pairs]) @ M).reshape(*batch, Q, -1, N)
            of_K = panel.add_rows(part, of_K)
    return value, _symmetric(of_B), _symmetric(of_noise), of_K, info


def _average_information(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    K: Float[Array, "*b Q N N"],
    L: CholeskyFactor,
    gamma: Float[Array, "*b n 1"],
) -> Float[Array, "*b p p"]:
    """Return ½ γᵀ ∂ᵢcov cov⁻¹ ∂ⱼcov γ for every pair (i, j) of the p = Q·D·k weights.

    This average information is the mean of the observed and the expected information if cov is
    linear in the parameters. Computing it takes only one triangular solve for each parameter,
    fewer than computing the observed or the expected information.
    """
    xp = namespace(K)
    *batch, Q, D, k = W.shape
    N = K.shape[-1]
    only_readings = not (batch or table.complete)  # cov has no rows for missing readings
    if only_readings:
        by_output = zeros(K, D, N)
        by_output[table.observed] = gamma[:, 0]
    else:
        by_output = gamma.reshape(*batch, D, N)
    Wt, K_gamma = xp.matrix_transpose(W), by_output[..., None, :, :] @ K
    # w_q[d] changes the covariance of output d with all outputs: a row and a column of B_q.
    products = K_gamma[..., :, None, None, :] * Wt[..., None, :, :, None]  # Q d k D N
    same_output = diagonal(products, -4, -2)  # Q k N d
    same_output += (Wt @ K_gamma)[..., None]
    products = products.reshape(*batch, Q * D * k, D, N)
    if only_readings:
        products = products[:, table.observed]
    elif not table.complete:
        products = products * table.observed[..., None, :, :]
    half = L.half_solve(xp.matrix_transpose(products.reshape(*batch, Q * D * k, -1)))
    return 0.5 * xp.matrix_transpose(half) @ half


@dataclass(frozen=True)
class _RowPanel:
    """Rows for several outputs at all sites, or for one output at its measured sites."""

    outputs: slice
    sites: Int[Array, " m"] | None  # None means all sites
    rows: slice  # the panel's rows in the covariance
    within_site: Int[Array, " m"] | slice  # pairs of a site with itself, in an (m, N) array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of outputs, and number of sites for each output."""
        n_outputs = self.outputs.stop - self.outputs.start
        return n_outputs, (self.rows.stop - self.rows.start) // n_outputs

    @property
    def pairs(self) -> tuple:
        """Index into a (D, D) array: rows of the panel's outputs, columns up to its last output."""
        return ..., self.outputs, slice(self.outputs.stop)

    def site_rows(self, K: Float[Array, "*b N M"]) -> Float[Array, "*b m M"]:
        """Select the rows of the panel's sites from K, which has one row for every site."""
        return K if self.sites is None else K[..., self.sites, :]

    def add_rows(
        self, part: Float[Array, "*b m N"], total: Float[Array, "*b N N"] | None
    ) -> Float[Array, "*b N N"]:
        """Add `part` to the rows of the panel's sites in `total`; None means a total of zero."""
        if total is None:
            if self.sites is None:
                return part
            *batch, _, N = part.shape
            total = zeros(part, *batch, N, N)
        total[..., slice(None) if self.sites is None else self.sites, :] += part
        return total


def _row_panels(table: Observations) -> list[_RowPanel]:
    """Divide the rows of a covariance into panels.

    The covariance of a single large table has no rows for missing readings. In a batch of tables,
    and in a table that fits into one panel, missing readings keep their rows, because removing them
    would take longer.
    """
    *batch, D, N = table.observed.shape
    if batch or table.complete or panel_size(table.y) >= (D * N) ** 2:
        slices = _output_slices(D, int(np.prod(batch)) * N * D * N, panel_size(table.y))
        return [
            _RowPanel(
                outputs, None, slice(outputs.start * N, outputs.stop * N), slice(0, None, N + 1)
            )
            for outputs in slices
        ]
    panels, start = [], 0
    for d, observed in enumerate(to_numpy(table.observed)):
        (sites,) = np.nonzero(observed)
        rows = slice(start, start + len(sites))
        chosen = None if len(sites) == N else to_device_of(sites, table.y)
        within_site = to_device_of(np.arange(len(sites)) * N + sites, table.y)
        panels.append(_RowPanel(slice(d, d + 1), chosen, rows, within_site))
        start = rows.stop
    return panels


def _lower_triangle(
    panels: list[_RowPanel],
    B: Float[Array, "Q D D"],
    noise: Float[Array, "D D"],
    K: Float[Array, "Q N N"],
    measured: Int[Array, " m"] | None,
) -> Float[Array, "m m"]:
    """Return the lower triangle of a covariance, reduced to the rows in `measured` if given."""
    xp, (Q, _, N), n = namespace(K), K.shape, panels[-1].rows.stop
    cov = empty(K, n, n)
    for i, panel in enumerate(panels):
        mixed = _flatten_pairs(B[panel.pairs]).T @ panel.site_rows(K).reshape(Q, -1)
        mixed[:, panel.within_site] += noise[panel.pairs].reshape(-1, 1)
        mixed = mixed.reshape(panel.shape[0], panel.outputs.stop, panel.shape[1], N)
        for other in panels[: i + 1]:
            block = mixed[:, other.outputs]
            block = block if other.sites is None else block[..., other.sites]
            part = cov[panel.rows, other.rows].reshape(*panel.shape, *other.shape)  # a view of cov
            part[...] = xp.moveaxis(block, 1, 2)
    return cov if measured is None else cov[measured[:, None], measured]


def _lower_half(
    G: Float[Array, "*b n n"], panels: list[_RowPanel], N: int
) -> Float[Array, "*b output_pairs site_pairs"]:
    """Return the last panel's rows of the lower triangular matrix M for which M + Mᵀ = G."""
    xp, panel = namespace(G), panels[-1]
    *batch, _, _ = G.shape
    n_outputs, n_sites = panel.shape
    parts = []
    for other in panels:
        block = G[..., panel.rows, other.rows]
        if other is panel:
            block = xp.tril(block)
            diagonal(block)[...] *= 0.5
        block = xp.moveaxis(block.reshape(*batch, n_outputs, n_sites, *other.shape), -3, -2)
        if other.sites is not None:
            at_all_sites = zeros(G, n_outputs, other.shape[0], n_sites, N)
            at_all_sites[..., other.sites] = block
            block = at_all_sites
        parts.append(block)
    M = parts[0] if len(parts) == 1 else xp.concat(parts, axis=-3)
    return M.reshape(*batch, n_outputs * panel.outputs.stop, n_sites * N)


def _symmetric(A: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    """Return the symmetric part of A."""
    return 0.5 * (A + namespace(A).matrix_transpose(A))


def _output_slices(D: int, size_each: int, max_size: int) -> Iterator[slice]:
    """Divide D outputs of `size_each` elements each into slices of at most `max_size` elements."""
    step = max(1, max_size // max(size_each, 1))
    return (slice(start, min(start + step, D)) for start in range(0, D, step))


def _flatten_pairs(B: Float[Array, "*b Q l D"]) -> Float[Array, "*b Q lD"]:
    """Flatten the last two axes, so that each latent has a row with all pairs of outputs."""
    return B.reshape(*B.shape[:-2], B.shape[-2] * B.shape[-1])


def _n_readings(table: Observations) -> Float[Array, "*b"]:
    """Return the number of readings in each table of a batch."""
    xp = namespace(table.observed)
    return xp.sum(table.observed, axis=(-2, -1), dtype=table.y.dtype)
