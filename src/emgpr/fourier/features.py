"""Fourier features: cosines and sines that all latent processes share.

The features φ_j(x) are √2 cos(ω_k·x) and √2 sin(ω_k·x) for all frequencies ω_k. Kernel q is
approximated by k_q(x, x') ≈ Σ_j s_q[j] φ_j(x) φ_j(x'), where s_q[j] is the variance of kernel q at
the frequency of feature j. The sum of φ_i(x) φ_j(x) over the sites follows from the Fourier sums at
the sum and at the difference of the two frequencies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.fourier.grid import FrequencyGrid
from emgpr.fourier.spectral_density import spectral_density
from emgpr.kernels import Pairs, evaluate_kernel

Array = np.ndarray

N_COPIES = 2  # periodic copies on either side of the box; those farther away have no influence
FAR = 1e9  # distance in periods at which only the constant part of a kernel remains


@dataclass(frozen=True)
class FourierFeatures:
    """Cosines and sines at frequencies 2πm/period, for m = 0 and one of each pair m and −m.

    Latent process q uses only frequencies whose m is a multiple of `strides[q]`, as if the box were
    smaller by that factor. This suits a latent process with a short range, which needs high
    frequencies, but not a narrow spacing between frequencies.

    >>> grid = FrequencyGrid((0.0,), (8.0,), (20,))
    >>> features = FourierFeatures(grid, np.arange(20)[:, None], (1,))
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.array([[0.0], [1.0]])
    >>> Phi, s = features.evaluate(x), np.tile(features.variances([RBF()])[0], 2)
    >>> (Phi * s @ Phi.T).round(6)
    array([[1.      , 0.606531],
           [0.606531, 1.      ]])
    """

    grid: FrequencyGrid
    m: Int[Array, "K P"]
    strides: tuple[int, ...]

    @property
    def n_functions(self) -> int:
        """Number of features, not counting the sine at frequency zero, which is zero everywhere."""
        return 2 * len(self.m) - 1

    @cached_property
    def frequencies(self) -> Float[Array, "K P"]:
        """Frequencies in radians per unit of the inputs."""
        return self.grid.frequencies(self.m)

    def evaluate(self, x: Float[Array, "N P"]) -> Float[Array, "N J"]:
        """Return all features at x: the cosines, then the sines."""
        angle = (x - np.array(self.grid.low)) @ self.frequencies.T
        return np.sqrt(2) * np.hstack([np.cos(angle), np.sin(angle)])

    def variances(self, kernels: Sequence[Kernel]) -> Float[Array, "Q K"]:
        """Return s_q for every kernel: the prior variance of the coefficients at each frequency."""
        return np.stack([self.variances_of(kernel, q)[0] for q, kernel in enumerate(kernels)])

    def variances_of(
        self, kernel: Kernel, q: int
    ) -> tuple[Float[Array, " K"], Float[Array, "p K"]]:
        """Return s_q for `kernel`, and its gradient with respect to the log hyper-parameters."""
        stride, P = self.strides[q], self.grid.n_inputs
        s, gradient = spectral_density(kernel, self.frequencies, self.grid.volume / stride**P)
        is_used = (self.m % stride == 0).all(axis=1)
        # The mean of 2cos² over the box is 1, except at frequency zero, where it is 2.
        factor = np.where(np.arange(len(s)) == 0, 0.5, is_used)
        return s * factor, gradient * factor

    def truncated_variances(self, kernels: Sequence[Kernel]) -> Float[Array, " Q"]:
        """Return the variance of every latent process at the frequencies without a feature."""
        total = [self.total_variance(kernel, q)[0] for q, kernel in enumerate(kernels)]
        return np.maximum(np.array(total) - 2 * self.variances(kernels).sum(axis=1), 0.0)

    def total_variance(self, kernel: Kernel, q: int) -> tuple[float, Float[Array, " p"]]:
        """Return the variance of latent process q at all frequencies of the box, and its gradient.

        The variance is k(0) plus the covariances with the periodic copies of the box. The constant
        part of a kernel is excluded from these covariances.
        """
        P = self.grid.n_inputs
        shifts = np.array(np.meshgrid(*[np.arange(-N_COPIES, N_COPIES + 1)] * P)).reshape(P, -1).T
        shifts = np.vstack([np.zeros((1, P)), shifts[shifts.any(axis=1)], np.full((1, P), FAR)])
        copies = shifts * np.array(self.grid.period) / self.strides[q]
        K, pullback = evaluate_kernel(kernel, kernel.theta, Pairs(copies))
        weights = np.zeros_like(K)
        weights[0, :-1], weights[0, -1] = 1.0, -float(len(copies) - 2)
        return float((weights * K).sum()), pullback(weights)

    def to_grid(self, coefficients: Float[Array, "w J"]) -> Complex[Array, "w *m"]:
        """Convert coefficients of features to coefficients of complex exponentials on the grid."""
        cosines, sines = np.split(np.sqrt(2) * coefficients, 2, axis=1)
        on_grid = np.zeros((len(coefficients), *self.grid.shape), complex)
        on_grid[:, *self._index] = cosines + 1j * sines
        return on_grid

    def project(self, sums: Complex[Array, "w *m"]) -> Float[Array, "w J"]:
        """Return yᵀΦ, given the Fourier sums of y on the grid."""
        selected = np.sqrt(2) * sums[:, *self._index]
        return np.hstack([selected.real, -selected.imag])

    def gram(self, c: Complex[Array, "*n"]) -> Float[Array, "J J"]:
        """Return G = ΦᵀΦ, given the sums c over the sites, computed on the doubled grid."""
        difference, total = self._pairs
        flat = self.grid.doubled.with_conjugates(c[None]).ravel()
        T, H = flat[difference], flat[total]
        K = len(self.m)
        G = np.empty((2 * K, 2 * K))
        G[:K, :K] = T.real + H.real
        G[:K, K:] = T.imag - H.imag
        G[K:, :K] = -T.imag - H.imag
        G[K:, K:] = T.real - H.real
        return G

    def gram_adjoint(self, X: Float[Array, "J J"]) -> Complex[Array, "*n"]:
        """Return the array C on the doubled grid for which Re Σ C·c = Σ X ∘ G, for any c."""
        difference, total = self._pairs
        K, doubled = len(self.m), self.grid.doubled
        cc, cs, sc, ss = X[:K, :K], X[:K, K:], X[K:, :K], X[K:, K:]
        sides = [2 * m + 1 for m in doubled.max_harmonic]

        def add_at(index: Array, values: Array) -> Array:
            return np.bincount(index.ravel(), values.ravel(), minlength=int(np.prod(sides)))

        real = add_at(difference, cc + ss) + add_at(total, cc - ss)
        imag = add_at(difference, cs - sc) - add_at(total, cs + sc)
        return doubled.fold_conjugates((real - 1j * imag).reshape(1, *sides))[0]

    @property
    def _index(self) -> Int[Array, "P K"]:
        """Indices of the features' frequencies in arrays on the grid."""
        return (self.m + np.array([0, *self.grid.max_harmonic[1:]])).T

    @cached_property
    def _pairs(self) -> tuple[Int[Array, "K K"], Int[Array, "K K"]]:
        """Flat indices in the doubled grid of the differences and sums of any two frequencies."""
        most = np.array(self.grid.doubled.max_harmonic)
        sides = 2 * most + 1
        steps = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
        at, centre = self.m @ steps, most @ steps
        return centre + at[:, None] - at, centre + at[:, None] + at
