"""The model written in a basis, where all that it needs of a table are sums over places.

Latents that share their functions need not be told apart: outputs have coefficients
β_j ~ N(0, P_j), P_j = Σ_q s_q[j] W_q W_qᵀ = A_j A_jᵀ, independent from function to function, so
that R = J·min(D, Q·k) numbers are unknown. With places at which the same outputs were read as a
term t, Π_t the inverse of the noise of those outputs, and G_t = ΦᵀΦ over these places,

    Λ = Σ_t Π_t ⊗ G_t,   η = Σ_t Π_t (yᵀΦ)_t,   B = I + AᵀΛA,   b = Aᵀη,   a = B⁻¹b
    log p(y) = −½ (Σ_t tr Π_t(yyᵀ)_t + N_t log|Σ_t| − bᵀa + log|B| + n log 2π)

and given the readings, β has mean Aa and covariance V = AB⁻¹Aᵀ. The slopes are

    along A_j:  (η − ΛAa)_j a_jᵀ − (ΛAB⁻¹)_jj,      along Λ:  −½ (V + Aa(Aa)ᵀ)

and whatever is contracted with G_t is contracted with its waves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Complex, Float, Int

from emgpr.arrays import Factor, diagonal, factor
from emgpr.covariance.basis import Basis
from emgpr.covariance.dense import LOG_2PI
from emgpr.covariance.lattice import Sums

Array = np.ndarray

NOTHING = 1e-10  # variance of a coefficient times what the data can say of it


@dataclass(frozen=True)
class Slopes:
    """log p(y), and its derivatives; those of a value of −inf are zero."""

    value: float
    of_weights: Float[Array, "Q D k"]
    of_noise: Float[Array, "D D"]
    of_log_variances: Float[Array, "Q K"]


@dataclass(frozen=True)
class Normal:
    """B, factored without the rows of coefficients that are zero for all that data could say."""

    L: Factor
    kept: Int[Array, " n"]
    r: int
    J: int

    def solve(self, b: Float[Array, "r J m"]) -> Float[Array, "r J m"]:
        """B⁻¹b."""
        answer = b.reshape(self.r * self.J, -1).copy()
        answer[self.kept] = self.L.solve(answer[self.kept])
        return answer.reshape(b.shape)

    def inverse(self) -> Float[Array, "r J r J"]:
        """B⁻¹."""
        whole = np.eye(self.r * self.J)
        whole[self.kept[:, None], self.kept] = self.L.inverse()
        return whole.reshape(self.r, self.J, self.r, self.J)

    def half_draw(self, n: int, rng: np.random.Generator) -> Float[Array, "r J n"]:
        """Draws with covariance B⁻¹."""
        white = rng.normal(size=(self.r * self.J, n))
        white[self.kept] = self.L.solve(np.tril(self.L.lower) @ white[self.kept])
        return white.reshape(self.r, self.J, n)


@dataclass(frozen=True)
class Posterior:
    """What the readings say of the outputs' coefficients β."""

    basis: Basis
    mean: Float[Array, "D J"]
    A: Float[Array, "J D r"]
    B: Normal
    log_likelihood: float

    def mean_waves(self) -> Complex[Array, "D *m"]:
        """The expected signals, to be evaluated by the lattice."""
        return self.basis.packed(self.mean)

    def cov_waves(self) -> Complex[Array, "pairs *n"]:
        """Covariances of the signals at a place, to be evaluated by the doubled lattice.

        Of every two outputs, in the order of `np.tril_indices`.
        """
        return _contracted(self.basis, self.A, self.B.inverse(), np.zeros_like(self.mean))

    def draw(self, n: int, rng: np.random.Generator) -> Float[Array, "n D J"]:
        """Coefficients as they may be."""
        return self.mean + np.einsum("jda,ajn->ndj", self.A, self.B.half_draw(n, rng))


class Expansion:
    """A table, of which the sums are left, in a basis."""

    def __init__(self, sums: Sums, basis: Basis, n_tasks: int) -> None:
        self.basis, self.D = basis, n_tasks
        self.outputs = [np.array(outputs) for outputs in sums.terms]
        terms = sums.terms.values()
        self.n_sites = [term.n_sites for term in terms]
        self.power = [term.power for term in terms]
        self.projected = [basis.projected(term.outputs) for term in terms]
        places = np.stack([term.places for term in terms])
        self.places = places.reshape(len(places), -1).view(float)  # real and imaginary parts
        self.n_readings = sums.n_readings

    def log_likelihood(
        self, W: Float[Array, "Q D k"], noise: Float[Array, "D D"], s: Float[Array, "Q K"]
    ) -> Slopes:
        """log p(y) and its gradients; −inf where B has no factor."""
        whole = _heard(W, s)
        A, turned = _root(whole)
        precisions = self._precisions(noise)
        eta, LA = self._eta(precisions), self._times_root(precisions, A)
        J, D, r = A.shape
        B = self._normal(precisions, A, LA)
        if np.isnan(B.L.jitter):
            return Slopes(-np.inf, np.zeros_like(W), np.zeros_like(noise), np.zeros_like(s))
        b = np.einsum("jda,dj->aj", A, eta)
        a = B.solve(b[..., None])[..., 0]
        value = self._value(precisions, float(np.vdot(a, b)) - float(B.L.logdet()))
        residual = eta - (LA.reshape(D * J, r * J) @ a.ravel()).reshape(D, J)
        inverse = B.inverse()

        of_A = np.einsum("dj,aj->jda", residual, a)
        for d, p in np.ndindex(D, r):
            for q in range(r):
                of_A[:, d, p] -= np.einsum("ji,ji->j", LA[d, :, q], inverse[p, :, q])
        of_A = of_A[: J // 2] + of_A[J // 2 :]  # a wave is a cosine and a sine
        of_whole = (of_A if turned is None else of_A @ turned).reshape(whole.shape)
        of_weights = np.einsum("wdqk,qw->qdk", of_whole, np.sqrt(s))
        of_log = 0.5 * np.einsum("wdqk,wdqk->qw", of_whole, whole)

        mean = np.einsum("jda,aj->dj", A, a)
        waves = (
            _contracted(self.basis, A, inverse, mean).conj().reshape(-1, self.places.shape[1] // 2)
        )
        spreads = waves.view(float) @ self.places.T  # V + mmᵀ contracted with G, for every term
        of_noise = np.zeros_like(noise)
        for t, (own, precision) in enumerate(zip(self.outputs, precisions, strict=True)):
            at = np.ix_(own, own)
            spread = _symmetric(spreads[:, t], D)[at]
            pulled = mean[own] @ self.projected[t].T
            of_precision = 0.5 * (pulled + pulled.T - self.power[t] - spread)
            of_noise[at] -= precision @ of_precision @ precision + 0.5 * self.n_sites[t] * precision
        return Slopes(value, of_weights, of_noise, of_log)

    def posterior(
        self, W: Float[Array, "Q D k"], noise: Float[Array, "D D"], s: Float[Array, "Q K"]
    ) -> Posterior:
        """What the readings say."""
        A, _ = _root(_heard(W, s))
        precisions = self._precisions(noise)
        B = self._normal(precisions, A, self._times_root(precisions, A))
        B.L.checked(f"precision of the {len(B.kept)} coefficients")
        b = np.einsum("jda,dj->aj", A, self._eta(precisions))
        a = B.solve(b[..., None])[..., 0]
        value = self._value(precisions, float(np.vdot(a, b)) - float(B.L.logdet()))
        return Posterior(self.basis, np.einsum("jda,aj->dj", A, a), A, B, value)

    def _normal(
        self,
        precisions: Sequence[Float[Array, "_ _"]],
        A: Float[Array, "J D r"],
        LA: Float[Array, "D J r J"],
    ) -> Normal:
        """B = I + AᵀΛA."""
        most = np.zeros(self.D)  # that the data can say of a coefficient of each output
        for own, precision, n in zip(self.outputs, precisions, self.n_sites, strict=True):
            most[own] += 2 * n * np.diagonal(precision)
        kept = np.flatnonzero(np.einsum("jda,d->aj", A**2, most) > NOTHING)
        kept = kept if len(kept) else np.zeros(1, int)  # where nothing is heard at all
        J, _, r = A.shape
        return Normal(factor(partial(_lower, A, LA, kept)), kept, r, J)

    def _value(self, precisions: Sequence[Float[Array, "_ _"]], explained: float) -> float:
        """log p(y), of which bᵀa − log|B| is known."""
        for precision, power, n in zip(precisions, self.power, self.n_sites, strict=True):
            explained -= float(np.vdot(power, precision))
            explained += n * float(np.linalg.slogdet(precision)[1])
        return 0.5 * (explained - self.n_readings * LOG_2PI)

    def _precisions(self, noise: Float[Array, "D D"]) -> list[Float[Array, "_ _"]]:
        """Π of every term."""
        return [np.linalg.inv(noise[np.ix_(own, own)]) for own in self.outputs]

    def _eta(self, precisions: Sequence[Float[Array, "_ _"]]) -> Float[Array, "D J"]:
        eta = np.zeros((self.D, 2 * len(self.basis.m)))
        for own, precision, projected in zip(self.outputs, precisions, self.projected, strict=True):
            eta[own] += precision @ projected
        return eta

    def _times_root(
        self, precisions: Sequence[Float[Array, "_ _"]], A: Float[Array, "J D r"]
    ) -> Float[Array, "D J r J"]:
        """ΛA. Λ is made of waves, for two outputs at a time, whatever the number of terms."""
        J, D, r = A.shape
        weights = np.zeros((len(precisions), D, D))
        for weight, own, precision in zip(weights, self.outputs, precisions, strict=True):
            weight[np.ix_(own, own)] = precision
        row, column = np.tril_indices(D)
        heard = weights[:, row, column].T
        waves = (heard @ self.places).view(complex)
        LA = np.zeros((D, J, r, J))
        for pair, (d, e) in enumerate(zip(row, column, strict=True)):
            if not heard[pair].any():
                continue
            G = self.basis.products(waves[pair].reshape(self.basis.lattice.doubled.shape))
            for q in range(r):
                LA[d, :, q] += G * A[:, e, q]
                if d != e:
                    LA[e, :, q] += G.T * A[:, d, q]
        return LA


def _heard(W: Float[Array, "Q D k"], s: Float[Array, "Q K"]) -> Float[Array, "K D Q k"]:
    """Of every wave: how the outputs hear it through every latent."""
    return np.einsum("qdk,qw->wdqk", W, np.sqrt(s))


def _root(
    whole: Float[Array, "K D Q k"],
) -> tuple[Float[Array, "J D r"], Float[Array, "K r Qk"] | None]:
    """A_j of every function with at most D columns, and what turns it to all columns, if fewer."""
    K, D, Q, k = whole.shape
    columns = whole.reshape(K, D, Q * k)
    if Q * k <= D:
        return np.concatenate([columns, columns]), None
    turned, root = np.linalg.qr(np.swapaxes(columns, 1, 2))
    A = np.swapaxes(root, 1, 2)
    return np.concatenate([A, A]), np.swapaxes(turned, 1, 2)


def _lower(
    A: Float[Array, "J D r"], LA: Float[Array, "D J r J"], kept: Int[Array, " n"]
) -> Float[Array, "n n"]:
    """The rows of B that are kept, on and below its diagonal."""
    J, D, r = A.shape
    B = np.zeros((r, J, r, J))
    for p, q in zip(*np.tril_indices(r), strict=True):
        for d in range(D):
            B[p, :, q] += A[:, d, p, None] * LA[d, :, q]
    whole = B.reshape(r * J, r * J)
    variances = diagonal(whole)
    variances += 1.0
    return whole if len(kept) == len(whole) else whole[kept[:, None], kept]


def _contracted(
    basis: Basis,
    A: Float[Array, "J D r"],
    inverse: Float[Array, "r J r J"],
    mean: Float[Array, "D J"],
) -> Complex[Array, "pairs *n"]:
    """V + mmᵀ of every two outputs as waves: with the sums of places, contracted with their G."""
    D, r = A.shape[1:]
    waves = []
    for d in range(D):
        own = np.einsum("jp,pjqi->jqi", A[:, d], inverse, optimize=False)
        for e in range(d + 1):
            V = np.outer(mean[d], mean[e])
            for q in range(r):
                V += own[:, q] * A[:, e, q]
            waves.append(basis.contracted(V))
    return np.stack(waves)


def _symmetric(pairs: Float[Array, " n"], D: int) -> Float[Array, "D D"]:
    """A matrix from what is on and below its diagonal."""
    whole = np.empty((D, D))
    row, column = np.tril_indices(D)
    whole[row, column] = whole[column, row] = pairs
    return whole
