"""The likelihood of a model with Fourier features, computed from sums over the sites.

All latent processes share the same features, so the signal of each output is a combination of
features. The outputs' coefficients for feature j are β_j ~ N(0, P_j), independent between features,
where P_j = Σ_q s_q[j] W_q W_qᵀ = A_j A_jᵀ. With J features and weights of rank
k, there are J·min(D, Q·k) unknowns. Let t index the patterns (sets of sites at which the same
outputs were measured), let Σ_t be the noise covariance of these outputs and Π_t its inverse, and
let G_t = ΦᵀΦ over these sites. Then

    Λ = Σ_t Π_t ⊗ G_t,   η = Σ_t Π_t (yᵀΦ)_t,   B = I + AᵀΛA,   b = Aᵀη,   a = B⁻¹b
    log p(y) = −½ (Σ_t tr Π_t(yyᵀ)_t + N_t log|Σ_t| − bᵀa + log|B| + n log 2π)

and the posterior of β has mean Aa and covariance V = AB⁻¹Aᵀ. The derivatives are

    with respect to A_j:  (η − ΛAa)_j a_jᵀ − (ΛAB⁻¹)_jj,      to Λ:  −½ (V + Aa(Aa)ᵀ)

G_t is computed from the sums over the sites.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int

from emgpr.arrays import CholeskyFactor, cholesky, diagonal, inv
from emgpr.covariance.lmc import LOG_2PI
from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.grid import FourierSums

Array = np.ndarray
Precisions = Sequence[Float[Array, "_ _"]]

# A coefficient is left out of B if its prior variance times an upper bound on the information that
# the data contain about it is smaller than this.
MIN_INFORMATION = 1e-10


@dataclass(frozen=True)
class LogLikelihood:
    """log p(y) and its derivatives. If log p(y) is −inf, the derivatives are zero."""

    value: float
    of_weights: Float[Array, "Q D k"]
    of_noise: Float[Array, "D D"]
    of_log_variances: Float[Array, "Q K"]


@dataclass(frozen=True)
class PrecisionMatrix:
    """Cholesky factor of B, without coefficients about which the data have no information."""

    factor: CholeskyFactor
    kept: Int[Array, " n"]
    r: int
    J: int

    def solve(self, b: Float[Array, "r J m"]) -> Float[Array, "r J m"]:
        """Return B⁻¹b."""
        x = b.reshape(self.r * self.J, -1).copy()
        x[self.kept] = self.factor.solve(x[self.kept])
        return x.reshape(b.shape)

    def inverse(self) -> Float[Array, "r J r J"]:
        """Return B⁻¹."""
        full = np.eye(self.r * self.J)
        full[self.kept[:, None], self.kept] = self.factor.inverse()
        return full.reshape(self.r, self.J, self.r, self.J)

    def sample(self, n: int, rng: np.random.Generator) -> Float[Array, "r J n"]:
        """Draw n samples with covariance B⁻¹."""
        z = rng.normal(size=(self.r * self.J, n))
        z[self.kept] = self.factor.solve(np.tril(self.factor.lower) @ z[self.kept])
        return z.reshape(self.r, self.J, n)


@dataclass(frozen=True)
class CoefficientPosterior:
    """Posterior distribution of the outputs' coefficients β."""

    features: FourierFeatures
    mean: Float[Array, "D J"]
    A: Float[Array, "J D r"]
    B: PrecisionMatrix
    log_likelihood: float

    def on_grid(self) -> tuple[Complex[Array, "D *m"], Complex[Array, "pairs *n"]]:
        """Return the Fourier coefficients of the signals' means and covariances.

        Means have coefficients on the grid. Covariances have coefficients on the doubled grid, for
        pairs of outputs in the order of `pair_index`.
        """
        cov = _second_moments(self.features, self.A, self.B.inverse(), np.zeros_like(self.mean))
        return self.features.to_grid(self.mean), cov

    def sample(self, n: int, rng: np.random.Generator) -> Float[Array, "n D J"]:
        """Draw n samples of the coefficients."""
        return self.mean + np.einsum("jda,ajn->ndj", self.A, self.B.sample(n, rng))


class _Solution(NamedTuple):
    """Quantities needed for both likelihood and posterior, in the notation of this module."""

    precisions: list[Float[Array, "_ _"]]  # Π
    eta: Float[Array, "D J"]
    LA: Float[Array, "D J r J"]  # ΛA
    B: PrecisionMatrix
    a: Float[Array, "r J"]
    mean: Float[Array, "D J"]  # Aa
    log_likelihood: float


class FourierLikelihood:
    """The likelihood of a table for given features, computed from its Fourier sums."""

    def __init__(self, sums: FourierSums, features: FourierFeatures, n_outputs: int) -> None:
        self.features, self.D = features, n_outputs
        self.n_readings = sums.n_readings
        self.outputs = [np.array(outputs) for outputs in sums.patterns]
        patterns = sums.patterns.values()
        self.n_sites = [pattern.n_sites for pattern in patterns]
        self.products = [pattern.products for pattern in patterns]
        self.projected = [features.project(pattern.readings) for pattern in patterns]
        sites = np.stack([pattern.sites for pattern in patterns])
        self.sites = sites.reshape(len(sites), -1).view(float)  # real and imaginary parts

    def log_likelihood(
        self, W: Float[Array, "Q D k"], noise: Float[Array, "D D"], s: Float[Array, "Q K"]
    ) -> LogLikelihood:
        """Return log p(y) and its gradients, or −inf if B has no Cholesky factor."""
        roots = _roots(W, s)
        A, rotation = _with_fewest_columns(roots)
        precisions, eta, LA, B, a, mean, value = self._solve(A, noise)
        if np.isnan(B.factor.jitter):
            return LogLikelihood(-np.inf, np.zeros_like(W), np.zeros_like(noise), np.zeros_like(s))
        J, D, r = A.shape
        residual = eta - (LA.reshape(D * J, r * J) @ a.ravel()).reshape(D, J)
        inverse = B.inverse()

        of_A = np.einsum("dj,aj->jda", residual, a)
        for d, p in np.ndindex(D, r):
            for q in range(r):
                of_A[:, d, p] -= np.einsum("ji,ji->j", LA[d, :, q], inverse[p, :, q])
        of_A = of_A[: J // 2] + of_A[J // 2 :]  # sum over the cosine and sine at each frequency
        of_roots = (of_A if rotation is None else of_A @ rotation).reshape(roots.shape)
        of_weights = np.einsum("wdqk,qw->qdk", of_roots, np.sqrt(s))
        of_log_variances = 0.5 * np.einsum("wdqk,wdqk->qw", of_roots, roots)

        moments = _second_moments(self.features, A, inverse, mean).conj()
        moments = moments.reshape(-1, self.sites.shape[1] // 2)
        # These are the sums of the elements of (V + Aa(Aa)ᵀ) ∘ G for every pattern.
        spreads = moments.view(float) @ self.sites.T
        of_noise = np.zeros_like(noise)
        for t, (outputs, precision) in enumerate(zip(self.outputs, precisions, strict=True)):
            at = np.ix_(outputs, outputs)
            explained = mean[outputs] @ self.projected[t].T
            spread = spreads[pair_index(D)[at], t]
            of_precision = 0.5 * (explained + explained.T - self.products[t] - spread)
            of_noise[at] -= precision @ of_precision @ precision + 0.5 * self.n_sites[t] * precision
        return LogLikelihood(value, of_weights, of_noise, of_log_variances)

    def posterior(
        self, W: Float[Array, "Q D k"], noise: Float[Array, "D D"], s: Float[Array, "Q K"]
    ) -> CoefficientPosterior:
        """Return the posterior distribution of the coefficients."""
        A, _ = _with_fewest_columns(_roots(W, s))
        *_, B, _, mean, value = self._solve(A, noise)
        B.factor.checked(f"precision of the {len(B.kept)} coefficients")
        return CoefficientPosterior(self.features, mean, A, B, value)

    def _solve(self, A: Float[Array, "J D r"], noise: Float[Array, "D D"]) -> _Solution:
        precisions = [inv(noise[np.ix_(outputs, outputs)]) for outputs in self.outputs]
        eta = np.zeros((self.D, len(A)))
        patterns = zip(self.outputs, precisions, self.projected, strict=True)
        for outputs, precision, projected in patterns:
            eta[outputs] += precision @ projected
        LA = self._multiply(precisions, A)
        B = self._precision_matrix(precisions, A, LA)
        b = np.einsum("jda,dj->aj", A, eta)
        a = B.solve(b[..., None])[..., 0]
        value = float(np.vdot(a, b)) - float(B.factor.logdet())
        for precision, products, n in zip(precisions, self.products, self.n_sites, strict=True):
            value -= float(np.vdot(products, precision))
            value += n * float(np.linalg.slogdet(precision)[1])
        value = 0.5 * (value - self.n_readings * LOG_2PI)
        return _Solution(precisions, eta, LA, B, a, np.einsum("jda,aj->dj", A, a), value)

    def _precision_matrix(
        self, precisions: Precisions, A: Float[Array, "J D r"], LA: Float[Array, "D J r J"]
    ) -> PrecisionMatrix:
        """Return B = I + AᵀΛA."""
        max_information = np.zeros(self.D)  # that the data have about a coefficient of each output
        for outputs, precision, n in zip(self.outputs, precisions, self.n_sites, strict=True):
            max_information[outputs] += 2 * n * np.diagonal(precision)
        kept = np.flatnonzero(np.einsum("jda,d->aj", A**2, max_information) > MIN_INFORMATION)
        kept = kept if len(kept) else np.zeros(1, int)  # A Cholesky factor needs at least one row.
        J, _, r = A.shape
        return PrecisionMatrix(cholesky(partial(_lower_triangle, A, LA, kept)), kept, r, J)

    def _multiply(
        self, precisions: Precisions, A: Float[Array, "J D r"]
    ) -> Float[Array, "D J r J"]:
        """Return ΛA. To save memory, Λ is formed for one pair of outputs at a time."""
        J, D, r = A.shape
        weights = np.zeros((len(precisions), D, D))
        for weight, outputs, precision in zip(weights, self.outputs, precisions, strict=True):
            weight[np.ix_(outputs, outputs)] = precision
        row, column = np.tril_indices(D)
        pairs = weights[:, row, column].T
        sums = (pairs @ self.sites).view(complex)
        LA = np.zeros((D, J, r, J))
        for pair, (d, e) in enumerate(zip(row, column, strict=True)):
            if not pairs[pair].any():
                continue
            G = self.features.gram(sums[pair].reshape(self.features.grid.doubled.shape))
            for q in range(r):
                LA[d, :, q] += G * A[:, e, q]
                if d != e:
                    LA[e, :, q] += G.T * A[:, d, q]
        return LA


def pair_index(D: int) -> Int[Array, "D D"]:
    """Return the position of every pair of D outputs in the order of `np.tril_indices`.

    >>> pair_index(3)
    array([[0, 1, 3],
           [1, 2, 4],
           [3, 4, 5]])
    """
    row, column = np.tril_indices(D)
    index = np.empty((D, D), int)
    index[row, column] = index[column, row] = np.arange(len(row))
    return index


def _roots(W: Float[Array, "Q D k"], s: Float[Array, "Q K"]) -> Float[Array, "K D Q k"]:
    """Return, for every frequency, a square root of P_j with Q·k columns."""
    return np.einsum("qdk,qw->wdqk", W, np.sqrt(s))


def _with_fewest_columns(
    roots: Float[Array, "K D Q k"],
) -> tuple[Float[Array, "J D r"], Float[Array, "K r Qk"] | None]:
    """Return a square root A_j with at most D columns for every feature.

    Also return rotations such that roots = A_j · rotation, or None if no rotation was needed.
    """
    K, D, Q, k = roots.shape
    columns = roots.reshape(K, D, Q * k)
    if Q * k <= D:
        return np.concatenate([columns, columns]), None
    rotation, triangle = np.linalg.qr(np.swapaxes(columns, 1, 2))
    A = np.swapaxes(triangle, 1, 2)
    return np.concatenate([A, A]), np.swapaxes(rotation, 1, 2)


def _lower_triangle(
    A: Float[Array, "J D r"], LA: Float[Array, "D J r J"], kept: Int[Array, " n"]
) -> Float[Array, "n n"]:
    """Return the lower triangle of B, restricted to the kept rows and columns."""
    J, D, r = A.shape
    B = np.zeros((r, J, r, J))
    for p, q in zip(*np.tril_indices(r), strict=True):
        for d in range(D):
            B[p, :, q] += A[:, d, p, None] * LA[d, :, q]
    full = B.reshape(r * J, r * J)
    variances = diagonal(full)
    variances += 1.0
    return full if len(kept) == len(full) else full[kept[:, None], kept]


def _second_moments(
    features: FourierFeatures,
    A: Float[Array, "J D r"],
    inverse: Float[Array, "r J r J"],
    mean: Float[Array, "D J"],
) -> Complex[Array, "pairs *n"]:
    """Apply `gram_adjoint` to V + mmᵀ for every pair of outputs, where m is the mean of β."""
    D, r = A.shape[1:]
    moments = []
    for d in range(D):
        A_inverse = np.einsum("jp,pjqi->jqi", A[:, d], inverse, optimize=False)
        for e in range(d + 1):
            V = np.outer(mean[d], mean[e])
            for q in range(r):
                V += A_inverse[:, q] * A[:, e, q]
            moments.append(features.gram_adjoint(V))
    return np.stack(moments)
