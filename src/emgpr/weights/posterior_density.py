"""The log posterior density of all parameters of one member, with Vecchia's likelihood."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel, KernelOperator, StationaryKernelMixin

from emgpr.arrays import inv
from emgpr.covariance import VecchiaTable
from emgpr.noise import EPSILON, STRENGTH, noise_prior
from emgpr.weights.parameters import ParameterVector
from emgpr.weights.sill_prior import SillPrior

Array = np.ndarray

MAX_VARIANCE_SITES = 500  # sites at which the mean variance of a nonstationary kernel is computed
# Blocks from which the curvature is computed in a search: as many as have this number of rows, but
# at most this number of blocks; more if that is necessary for this number of rows per parameter.
CURVATURE_ROWS, CURVATURE_BLOCKS, MIN_ROWS_PER_PARAMETER = 3200, 64, 10


def curvature_blocks(rows: int, n_parameters: int) -> int:
    """Return the number of blocks, with so many rows each, from which the curvature is computed."""
    few = min(CURVATURE_BLOCKS, CURVATURE_ROWS // rows)
    return max(few, MIN_ROWS_PER_PARAMETER * n_parameters // rows, 1)


@dataclass(frozen=True)
class PosteriorDensity:
    """The log posterior density as a function of the vector of all parameters.

    If the table contains only some of the blocks, its log-likelihood is multiplied by `growth`.
    """

    table: VecchiaTable
    vector: ParameterVector
    weak_prior: bool
    variances: Float[Array, " D"]  # of the readings of each output
    growth: float = 1.0

    def on_subset(self, n: int, rng: np.random.Generator) -> "PosteriorDensity":
        """Return the density with the likelihood of n random blocks, or itself if there are n."""
        N = len(self.table.blocks)
        if n >= N:
            return self
        return replace(self, table=self.table.subset(n, rng), growth=self.growth * N / n)

    @property
    def n_readings(self) -> float:
        """Number of readings that the log-likelihood stands for."""
        return self.growth * self.table.n_readings

    @property
    def n_curvature_blocks(self) -> int | None:
        """Number of blocks from which the curvature is computed in a search; None: all."""
        N, s = self.table.blocks.shape
        n_parameters = len(self.vector.bounds) + self.vector.start.W.size
        n = curvature_blocks(s * len(self.variances), n_parameters)
        return n if n < N else None

    def __call__(self, x: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        """Return the log posterior density and its gradient."""
        theta, noise_vector, W = self._split(x)
        noise = self.vector.noise.matrix(noise_vector)
        fit = self.table.evaluate(theta, W, noise)
        value, of_theta = self.growth * fit.value, self.growth * fit.of_theta
        of_W, of_noise = self.growth * fit.of_weights, self.growth * fit.of_noise
        if self.weak_prior:
            log_prior, of_prior = noise_prior(self.variances, True)(noise)
            variance, slopes = self._kernel_variances(theta)
            added = self._sill_prior(W, noise, variance[:, None])
            value += float(log_prior) + float(added.value)
            of_W, of_noise = of_W + added.of_weights, of_noise + of_prior + added.of_noise
            of_theta = of_theta + added.of_diagonals[:, 0] @ slopes
        of_vector = self.vector.noise.pullback(noise_vector, of_noise)
        of_W = self.vector.start.mask_gradient(of_W)
        return value, np.concatenate([of_theta, of_vector, of_W.ravel()])

    def log_prior(self, x: Float[Array, " p"]) -> float:
        """Return the log density of the priors, which is 0 without priors."""
        if not self.weak_prior:
            return 0.0
        theta, noise_vector, W = self._split(x)
        noise = self.vector.noise.matrix(noise_vector)
        variance, _ = self._kernel_variances(theta)
        of_sills = self._sill_prior(W, noise, variance[:, None]).value
        return float(noise_prior(self.variances, True)(noise)[0]) + float(of_sills)

    def information(self, x: Float[Array, " p"]) -> Float[Array, "p p"]:
        """Return the information matrix of the likelihood plus the curvature of the priors."""
        return self._with_priors(x, self.growth * self.table.information(*self._model(x)))

    def curvature(self, x: Float[Array, " p"], iteration: int) -> Float[Array, "p p"]:
        """Return an approximation of minus the second derivative for an iteration of a search.

        It is semidefinite, and computed from some of the blocks.
        """
        part, n = self, self.n_curvature_blocks
        if n is not None:
            part = self.on_subset(n, np.random.default_rng(iteration))
        return self._with_priors(x, part.growth * part.table.curvature(*self._model(x)))

    def _model(self, x: Float[Array, " p"]) -> tuple[Array, Array, Array, Array]:
        """Return hyper-parameters, weights, noise, and the derivatives of the noise."""
        theta, noise_vector, W = self._split(x)
        noise = self.vector.noise
        return theta, W, noise.matrix(noise_vector), noise.derivatives(noise_vector)

    def _with_priors(self, x: Float[Array, " p"], F: Float[Array, "p p"]) -> Float[Array, "p p"]:
        """Add the curvature of the priors, in place, and remove that of fixed weights."""
        theta, W, noise, basis = self._model(x)
        if self.weak_prior:
            at = slice(len(theta), len(theta) + len(basis))
            shifted = noise + EPSILON * np.diag(self.variances)
            scaled = inv(shifted) @ basis
            F[at, at] += STRENGTH * np.einsum("aij,bji->ab", scaled, scaled)
            slopes = self._sill_slopes(W, noise, basis, theta)
            F += self._sill_prior.precision * slopes.T @ slopes
        if self.vector.start.free is not None:
            fixed = np.flatnonzero(~self.vector.start.free.ravel()) + len(x) - W.size
            F[fixed], F[:, fixed] = 0.0, 0.0
        return F

    @property
    def _sill_prior(self) -> SillPrior:
        return SillPrior(self.variances, self.table.observations_constant)

    def _split(
        self, x: Float[Array, " p"]
    ) -> tuple[Float[Array, " t"], Float[Array, " c"], Float[Array, "Q D k"]]:
        thetas, noise_vector, W = self.vector.split(x, self.vector.start.W)
        return np.concatenate(thetas), noise_vector, W

    def _sill_slopes(
        self,
        W: Float[Array, "Q D k"],
        noise: Float[Array, "D D"],
        basis: Float[Array, "c D D"],
        theta: Float[Array, " t"],
    ) -> Float[Array, "D p"]:
        """Return the derivative of the log sill of each output with respect to each parameter."""
        variance, slopes = self._kernel_variances(theta)
        B = (W**2).sum(axis=-1)  # Q D
        sill = variance @ B + np.diagonal(noise)
        D = len(noise)
        of_W = np.zeros((D, *W.shape))
        of_W[np.arange(D), :, np.arange(D)] = np.moveaxis(2 * W * variance[:, None, None], 1, 0)
        of_noise = np.diagonal(basis, axis1=1, axis2=2).T
        of_theta = B.T @ slopes
        slope = np.column_stack([of_theta, of_noise, of_W.reshape(D, -1)]) / sill[:, None]
        slope[self.table.observations_constant] = 0.0
        return slope

    def _kernel_variances(
        self, theta: Float[Array, " t"]
    ) -> tuple[Float[Array, " Q"], Float[Array, "Q t"]]:
        """Return the mean variance of each kernel over the sites, and its derivatives."""
        kernels = self.vector.start.kernels
        variance, slopes = np.ones(len(kernels)), np.zeros((len(kernels), len(theta)))
        starts = np.cumsum([0, *self.vector.kernel_sizes])
        for q, kernel in enumerate(kernels):
            if not _has_unit_variance(kernel):
                x = self.table.sample_sites(MAX_VARIANCE_SITES)
                part = slice(starts[q], starts[q + 1])
                variance[q], slopes[q, part] = _mean_variance(kernel, theta[part], x)
        return variance, slopes


def _has_unit_variance(kernel: Kernel) -> bool:
    return isinstance(kernel, StationaryKernelMixin) and not isinstance(kernel, KernelOperator)


def _mean_variance(
    kernel: Kernel, theta: Float[Array, " t"], x: Float[Array, "n P"], step: float = 1e-5
) -> tuple[float, Float[Array, " t"]]:
    """Return the mean of k(x, x) over the rows of x, and its derivatives by central differences."""

    def mean(at: Float[Array, " t"]) -> float:
        return float(kernel.clone_with_theta(at).diag(x).mean())

    nudges = step * np.eye(len(theta))
    slopes = [(mean(theta + nudge) - mean(theta - nudge)) / (2 * step) for nudge in nudges]
    return mean(theta), np.array(slopes)
