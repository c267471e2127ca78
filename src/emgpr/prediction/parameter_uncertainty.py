"""The uncertainty of predictions that is due to the uncertainty of the parameters.

The parameters are the log hyper-parameters of the kernels, the weights and the noise covariance. If
their posterior covariance is C = Σ_r δ_r δ_rᵀ, with directions δ_r, then the posterior mean m(x) of
the signals has, to first order, the additional covariance

    J C Jᵀ = Σ_r ∂_r m(x) ∂_r m(x)ᵀ

where ∂_r is the derivative along δ_r. For the covariance K of the readings, γ = K⁻¹y and the cross-
covariance k(x) of the readings and the signals at x, this derivative is

    ∂_r m(x) = (∂_r k(x))ᵀ γ − k(x)ᵀ K⁻¹ ∂_rK γ
    ∂_rK = Σ_q (∂_rB_q ⊗ K_q + B_q ⊗ ∂_rK_q) + ∂_rΣ ⊗ I

The matrices ∂_rK are not formed. If predictions use all readings, K⁻¹ ∂_rK γ is computed once for
each direction, so that its cost is small compared with that of the variances. If they use
neighbours, ∂m is first computed with respect to the elements of B_q and Σ and to the parameters of
the kernels, and then multiplied by the directions.

The means of the outputs are parameters, too: readings are standardised by their averages. If the
mean of an output changes by β, then m(x) changes by β − k(x)ᵀK⁻¹(β ⊗ 1), so that the additional
covariance includes that of ordinary kriging.

With few readings, the posterior variance v(x) of a signal for fixed parameters is itself uncertain,
and a variance that is estimated too low by chance makes intervals too short. If log v has the
posterior variance τ², as for a variance estimated from 2/τ² independent squares, the expectation of
v is v / (1 − τ²), which is close to exp(τ²) v. The inflation of an output is the average of exp(τ²)
over locations. If readings with noise variance σ² are predicted, the same holds for v + σ². Its
logarithm has the variance τ² v² / (v + σ²)², so that v increases by about τ² v² / (v + σ²) only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, CholeskyFactor, diagonal, namespace, to_device, to_device_of, zeros
from emgpr.kernels import Pairs, evaluate_kernel, kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction.posterior import GaussianMixture

DIFFERENCE_STEP = 1e-7  # of log hyper-parameters; the error of forward differences is about 1e-7


@dataclass(frozen=True)
class ParameterDirections:
    """Directions δ_r of the parameters of a model with one member, such that C = Σ_r δ_r δ_rᵀ.

    Different groups of coupled outputs are independent: C has a block for each group, and δ_r
    contains the r-th direction of every group.
    """

    theta: Float[np.ndarray, "r t"]  # log hyper-parameters of all kernels
    W: Float[np.ndarray, "r Q D k"]
    noise: Float[np.ndarray, "r D D"]
    mean: Float[np.ndarray, "r D"]  # of each output
    inflation: Float[np.ndarray, " D"]  # of the variances of the signals, at least 1
    of_readings: bool = False  # whether readings are predicted, not signals

    def __len__(self) -> int:
        """Return the number of directions."""
        return len(self.theta)

    def perturb(
        self,
        drawn: Float[np.ndarray, "n M D"],
        signals: GaussianMixture,
        slopes: Float[np.ndarray, "M D r"],
        noise: Float[np.ndarray, "D D"],
        groups: Iterable[Int[np.ndarray, " d"]],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "n M D"]:
        """Add the uncertainty of the parameters to samples of signals for fixed parameters.

        `signals` is their distribution, and `slopes` contains the derivatives of their means.
        `groups` are the groups of coupled outputs.
        """
        factor = inflation_factors(self, signals.cov, noise)
        drawn = signals.mean + factor * (drawn - signals.mean)
        for d in groups:
            steps = rng.normal(size=(len(drawn), len(self)))
            drawn[..., d] += np.einsum("mdr,nr->nmd", slopes[:, d], steps)
        return drawn

    def restrict(
        self,
        n_dims: Sequence[int],
        W: Float[np.ndarray, "Q D k"],
        latents: Int[np.ndarray, " q"],
        outputs: Int[np.ndarray, " d"],
    ) -> "GroupDirections":
        """Return the changes of the parameters of these outputs along the directions.

        `n_dims` are the numbers of log hyper-parameters of the model's kernels, `W` are its
        weights, and `latents` are its latent processes with weights for these outputs.
        """
        theta = self.theta[:, parameters_of(n_dims, latents)]
        at = np.ix_(latents, outputs)
        half = self.W[:, latents[:, None], outputs] @ np.swapaxes(W[at], -1, -2)
        noise = self.noise[:, outputs[:, None], outputs]
        B = half + np.swapaxes(half, -1, -2)
        mean, inflation = self.mean[:, outputs], self.inflation[outputs]
        return GroupDirections(theta, B, noise, mean, inflation, self.of_readings)

    def reorder(
        self,
        kernels: Sequence[Kernel],
        latents: Int[np.ndarray, " Q"],
        outputs: Int[np.ndarray, " D"],
    ) -> "ParameterDirections":
        """Return the directions for latent processes and outputs in another order."""
        return ParameterDirections(
            self.theta[:, parameters_of([kernel.n_dims for kernel in kernels], latents)],
            self.W[:, latents][:, :, outputs],
            self.noise[:, outputs[:, None], outputs],
            self.mean[:, outputs],
            self.inflation[outputs],
            self.of_readings,
        )


@dataclass(frozen=True)
class GroupDirections:
    """The changes of the parameters, B_q and Σ of a group of outputs along r directions."""

    theta: Float[Array, "r t"]
    B: Float[Array, "r q d d"]
    noise: Float[Array, "r d d"]
    mean: Float[Array, "r d"]
    inflation: Float[Array, " d"]
    of_readings: bool = False

    def __len__(self) -> int:
        """Return the number of directions."""
        return len(self.theta)

    @property
    def of_prior(self) -> Float[Array, "d r"]:
        """The derivatives of the means of the outputs without any readings."""
        return self.mean.T

    def to(self, device: str) -> "GroupDirections":
        """Copy the arrays to a device."""
        parts = (self.theta, self.B, self.noise, self.mean, self.inflation)
        theta, B, noise, mean, inflation = (to_device(part, device) for part in parts)
        return GroupDirections(theta, B, noise, mean, inflation, self.of_readings)

    def increase(
        self,
        cov: Float[np.ndarray, "*b m d d"],
        slopes: Float[np.ndarray, "m d r"],
        noise: Float[np.ndarray, "d d"],
    ) -> Float[np.ndarray, "*b m d d"]:
        """Add the uncertainty of the parameters to covariances of signals for fixed parameters.

        `slopes` contains the derivatives of the means along the directions.
        """
        factor = inflation_factors(self, cov, noise)
        inflated = cov * (factor[..., :, None] * factor[..., None, :])
        return inflated + slopes @ np.swapaxes(slopes, -1, -2)

    def apply_to(self, jacobian: "Jacobian") -> Float[Array, "m d r"]:
        """Return the derivatives along the directions."""
        (m, D), r = jacobian.of_B.shape[:2], len(self.theta)
        pairs = (
            (jacobian.of_theta, self.theta),
            (jacobian.of_B, self.B),
            (jacobian.of_noise, self.noise),
            (jacobian.of_mean, self.mean),
        )
        found = zeros(jacobian.of_B, m * D, r)
        for part, change in pairs:
            n = prod(change.shape[1:])
            found += part.reshape(m * D, n) @ change.reshape(r, n).T
        return found.reshape(m, D, r)


@dataclass(frozen=True)
class ParameterBasis:
    """The changes of a group's model with each parameter: kernels, noise, weights, then means."""

    n_theta: int
    W: Float[Array, "q d k"]
    noise: Float[Array, "c d d"]  # ∂Σ/∂ν for each noise parameter ν

    def __len__(self) -> int:
        """Return the number of parameters."""
        return self.n_theta + len(self.noise) + prod(self.W.shape) + self.W.shape[1]

    @property
    def of_prior(self) -> Float[Array, "d p"]:
        """The derivatives of the means of the outputs without any readings."""
        D = self.W.shape[1]
        return np.eye(D, len(self), len(self) - D)

    def to(self, device: str) -> "ParameterBasis":
        """Copy the arrays to a device."""
        return ParameterBasis(
            self.n_theta, to_device(self.W, device), to_device(self.noise, device)
        )

    def apply_to(self, jacobian: "Jacobian") -> Float[Array, "m d p"]:
        """Return the derivatives with respect to all parameters."""
        xp, (m, D) = namespace(self.W), jacobian.of_B.shape[:2]
        symmetric = jacobian.of_B + xp.matrix_transpose(jacobian.of_B)
        of_W = (symmetric @ self.W).reshape(m, D, prod(self.W.shape))
        of_noise = xp.tensordot(jacobian.of_noise, self.noise, axes=([2, 3], [1, 2]))
        return xp.concat([jacobian.of_theta, of_noise, of_W, jacobian.of_mean], axis=-1)


Changes = GroupDirections | ParameterBasis


def for_readings(
    directions: ParameterDirections | None, include_noise: bool
) -> ParameterDirections | None:
    """Return the directions for predictions of readings or signals; None if there are none."""
    return None if directions is None else replace(directions, of_readings=include_noise)


def inflation_factors(
    directions: ParameterDirections | GroupDirections,
    cov: Float[np.ndarray, "*b m d d"],
    noise: Float[np.ndarray, "d d"],
) -> Float[np.ndarray, "*b m d"]:
    """Return the factors by which the standard deviations of the signals increase.

    `cov` contains the covariances of the signals for fixed parameters.
    """
    if not directions.of_readings:
        return np.broadcast_to(np.sqrt(directions.inflation), cov.shape[:-1])
    variance = np.maximum(diagonal(cov), np.finfo(float).tiny)
    ratio = np.diagonal(noise) / variance
    inflation = 1.0 + (directions.inflation - 1.0) / (1.0 + ratio)
    # The variance of a reading is at least that of its signal.
    return np.sqrt(np.maximum(inflation, directions.inflation - ratio))


def parameters_of(n_dims: Sequence[int], which: Int[np.ndarray, " q"]) -> Int[np.ndarray, " t"]:
    """Return the positions of the parameters of some kernels among those of all kernels.

    `n_dims` are the numbers of parameters of all kernels.

    >>> parameters_of([2, 1], np.array([1, 0]))
    array([2, 0, 1])
    """
    owner = np.repeat(np.arange(len(n_dims)), n_dims)
    return np.concatenate([np.arange(0), *(np.flatnonzero(owner == q) for q in which)])


def kernel_slopes(
    kernels: Sequence[Kernel],
    K: Float[Array, "*b q N M"],
    x: Float[Array, "*b N P"],
    z: Float[Array, "*b M P"] | None = None,
) -> Iterator[tuple[int, Float[Array, "*b N M"]]]:
    """Yield, for each log hyper-parameter, the number of its kernel and the derivative of k(x, z).

    `K` contains the matrices k_q(x, z), from which forward differences are computed.
    """
    pairs = Pairs(x, z)
    for q, kernel in enumerate(kernels):
        for j in range(kernel.n_dims):
            theta = kernel.theta.copy()
            theta[j] += DIFFERENCE_STEP
            changed, _ = evaluate_kernel(kernel, to_device_of(theta, x), pairs)
            yield q, (changed - K[..., q, :, :]) / DIFFERENCE_STEP


class MeanDerivative:
    """The derivatives of the posterior mean given all readings of a group of outputs."""

    def __init__(
        self,
        table: Observations,
        kernels: Sequence[Kernel],
        B: Float[Array, "q d d"],
        K: Float[Array, "q N N"],
        factor: CholeskyFactor,
        gamma: Float[Array, "dN 1"],
        directions: GroupDirections,
    ) -> None:
        xp, (D, N) = namespace(K), table.y.shape
        r = len(directions.theta)
        self.x, self.kernels, self.directions = table.x, kernels, directions
        by_output = gamma.reshape(D, N)
        mixed = B @ by_output  # the coefficients of k_q(X, x) in the mean
        change = xp.tensordot(directions.B, by_output @ K, axes=([1, 3], [0, 1]))
        change += directions.noise @ by_output
        change += directions.mean[:, :, None]
        for j, (q, slope) in enumerate(kernel_slopes(kernels, K, table.x)):
            change += directions.theta[:, j, None, None] * (mixed[q] @ slope)
        change *= table.observed
        change = xp.matrix_transpose(change.reshape(r, D * N))
        solved = xp.matrix_transpose(factor.solve(change)).reshape(r, 1, D, N)
        # Axes r, d, q, N, so that one matrix product with k_q(X, x) gives all derivatives.
        self.of_kernels = xp.moveaxis(directions.B @ by_output - B @ solved, 1, 2)
        self.of_slopes = mixed

    def at(self, x: Float[Array, "m P"], Kx: Float[Array, "q N m"]) -> Float[Array, "m d r"]:
        """Return the derivatives at x, given k_q(X, x)."""
        r, D, Q, N = self.of_kernels.shape
        found = self.of_kernels.reshape(r * D, Q * N) @ Kx.reshape(Q * N, -1)
        found = found.reshape(r, D, -1) + self.directions.mean[:, :, None]
        for j, (q, slope) in enumerate(kernel_slopes(self.kernels, Kx, self.x, x)):
            found += self.directions.theta[:, j, None, None] * (self.of_slopes[q] @ slope)
        return namespace(Kx).moveaxis(found, (0, 1, 2), (2, 1, 0))


@dataclass(frozen=True)
class Jacobian:
    """The derivatives of posterior means, or variances, of d outputs at m locations.

    The changes of B_q and Σ must be symmetric.
    """

    of_theta: Float[Array, "m d t"]
    of_B: Float[Array, "m d q d d"]
    of_noise: Float[Array, "m d d d"]
    of_mean: Float[Array, "m d d"]

    @classmethod
    def of_means(
        cls,
        tables: Observations,
        x: Float[Array, "m P"],
        kernels: Sequence[Kernel],
        B: Float[Array, "q d d"],
        K: Float[Array, "m q n n"],
        Kx: Float[Array, "m q n 1"],
        solved: Float[Array, "m dn e"],
    ) -> "Jacobian":
        """Return the derivatives of the means at x, given a table of readings for each location.

        `solved` contains K⁻¹ k(x) for each output and, in the last column, K⁻¹ y.
        """
        xp, (m, D, n) = namespace(K), tables.y.shape
        Q = len(kernels)
        solved = xp.matrix_transpose(solved)
        A, gamma = solved[:, :D].reshape(m, D * D, n), solved[:, D:].reshape(m, 1, D, n)
        products = xp.concat([gamma @ K, gamma], axis=1).reshape(m, (Q + 1) * D, n)
        of_cov = -(A @ xp.matrix_transpose(products)).reshape(m, D, D, Q + 1, D)
        of_cov = xp.moveaxis(of_cov, 2, 3)
        own = diagonal(of_cov[:, :, :Q], 1, 3)  # m q f d: B_q[d, f] in the cross-covariance
        own += gamma @ Kx
        of_theta = zeros(K, m, D, sum(kernel.n_dims for kernel in kernels))
        of_mean = xp.eye(D, dtype=K.dtype, device=K.device) - A.reshape(m, D, D, n).sum(-1)
        mixed, A = B @ gamma, A.reshape(m, D, D * n)
        slopes = kernel_slopes(kernels, K, tables.x)
        cross_slopes = kernel_slopes(kernels, Kx, tables.x, x[:, None])
        for j, ((q, slope), (_, cross)) in enumerate(zip(slopes, cross_slopes, strict=True)):
            change = (mixed[:, q] @ slope).reshape(m, D * n, 1)
            of_theta[..., j] = (mixed[:, q] @ cross - A @ change)[..., 0]
        return cls(of_theta, of_cov[:, :, :Q], of_cov[:, :, Q], of_mean)

    @classmethod
    def of_variances(
        cls,
        tables: Observations,
        x: Float[Array, "m P"],
        kernels: Sequence[Kernel],
        B: Float[Array, "q d d"],
        K: Float[Array, "m q n n"],
        Kx: Float[Array, "m q n 1"],
        solved: Float[Array, "m dn e"],
    ) -> "Jacobian":
        """Return the derivatives of the variances of the signals; arguments as in `of_means`.

        With a = K⁻¹k(x), the derivative of a variance is ∂k(x, x) − 2 aᵀ∂k(x) + aᵀ∂K a.
        """
        xp, (m, D, n) = namespace(K), tables.y.shape
        a = xp.matrix_transpose(solved)[:, :D].reshape(m, D, 1, D, n)
        transposed = xp.matrix_transpose(a)
        own = kernel_matrices(kernels, x[:, None])  # m q 1 1
        of_B = a @ K[:, None] @ transposed
        of_theta = zeros(K, m, D, sum(kernel.n_dims for kernel in kernels))
        for d in range(D):
            of_B[:, d, :, :, d] -= 2 * (a[:, d] @ Kx)[..., 0]
            of_B[:, d, :, d, d] += own[..., 0, 0]
        slopes = kernel_slopes(kernels, K, tables.x)
        cross_slopes = kernel_slopes(kernels, Kx, tables.x, x[:, None])
        own_slopes = kernel_slopes(kernels, own, x[:, None])
        every = zip(slopes, cross_slopes, own_slopes, strict=True)
        for j, ((q, slope), (_, cross), (_, at_x)) in enumerate(every):
            inside = (a[:, :, 0] @ slope[:, None] @ transposed[:, :, 0]) * B[q]
            across = (a[:, :, 0] @ cross[:, None])[..., 0] * B[q]
            of_theta[..., j] = inside.sum((-1, -2)) - 2 * across.sum(-1)
            of_theta[..., j] += at_x[:, 0] * xp.diagonal(B[q])
        return cls(of_theta, of_B, (a @ transposed)[:, :, 0], zeros(K, m, D, D))
