"""Functions that are the same for all latents, outputs and data: the waves of a lattice.

With φ_j one of √2 cos(ω_k·x), √2 sin(ω_k·x) and s_q[k] the variance of kernel q at ω_k,
k_q(x, x') ≈ Σ_j s_q[j] φ_j(x) φ_j(x'). Products of two functions, summed over places, are sums of
waves that depend on the sum and the difference of two frequencies only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance.lattice import Lattice
from emgpr.covariance.spectra import spectrum
from emgpr.kernels import Pairs, evaluate

Array = np.ndarray

ECHOES = 2  # boxes to either side; those beyond are too far to be heard


@dataclass(frozen=True)
class Basis:
    """Cosine and sine of the waves m of a lattice; of m and −m one, and the first is zero.

    Latent q has every `strides[q]`-th wave: its box is that much smaller, and waves of a latent of
    short range, which needs many, need not lie as close as those of one of long range.

    >>> lattice = Lattice((0.0,), (8.0,), (20,))
    >>> basis = Basis(lattice, np.arange(20)[:, None], (1,))
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.array([[0.0], [1.0]])
    >>> functions, s = basis.functions(x), np.tile(basis.variances([RBF()])[0], 2)
    >>> (functions * s @ functions.T).round(6)
    array([[1.      , 0.606531],
           [0.606531, 1.      ]])
    """

    lattice: Lattice
    m: Int[Array, "K P"]
    strides: tuple[int, ...]

    @property
    def n_functions(self) -> int:
        """Functions that are not zero everywhere, as the sine of no wave is."""
        return 2 * len(self.m) - 1

    @cached_property
    def omega(self) -> Float[Array, "K P"]:
        """Frequencies."""
        return self.lattice.omega(self.m)

    def functions(self, x: Float[Array, "N P"]) -> Float[Array, "N J"]:
        """Every function at x: all cosines, then all sines."""
        angle = (x - np.array(self.lattice.low)) @ self.omega.T
        return np.sqrt(2) * np.hstack([np.cos(angle), np.sin(angle)])

    def variances(self, kernels: Sequence[Kernel]) -> Float[Array, "Q K"]:
        """s_q of every wave: of its cosine, and of its sine."""
        return np.stack([self.variance(kernel, q)[0] for q, kernel in enumerate(kernels)])

    def variance(self, kernel: Kernel, q: int) -> tuple[Float[Array, " K"], Float[Array, "p K"]]:
        """s of the kernel of latent q, and its slopes along the log hyper-parameters."""
        stride, P = self.strides[q], self.lattice.n_inputs
        s, slopes = spectrum(kernel, self.omega, self.lattice.volume / stride**P)
        own = (self.m % stride == 0).all(axis=1)
        # Twice cos² of no wave is 2, of others 1 on average.
        once = np.where(np.arange(len(s)) == 0, 0.5, own)
        return s * once, slopes * once

    def left_out(self, kernels: Sequence[Kernel]) -> Float[Array, " Q"]:
        """The variance of every latent that these waves have not."""
        whole = [self.with_all_waves(kernel, q)[0] for q, kernel in enumerate(kernels)]
        return np.maximum(np.array(whole) - 2 * self.variances(kernels).sum(axis=1), 0.0)

    def with_all_waves(self, kernel: Kernel, q: int) -> tuple[float, Float[Array, " p"]]:
        """Variance of latent q if it had all waves, and its slopes: k(0), and faint echoes of it.

        A constant has no echoes: it is the same everywhere anyway.
        """
        P = self.lattice.n_inputs
        boxes = np.array(np.meshgrid(*[np.arange(-ECHOES, ECHOES + 1)] * P)).reshape(P, -1).T
        boxes = np.vstack([np.zeros((1, P)), boxes[boxes.any(axis=1)], np.full((1, P), 1e9)])
        places = boxes * np.array(self.lattice.period) / self.strides[q]
        K, pullback = evaluate(kernel, kernel.theta, Pairs(places))
        counted = np.zeros_like(K)
        counted[0, :-1], counted[0, -1] = 1.0, -float(len(places) - 2)
        return float((counted * K).sum()), pullback(counted)

    def packed(self, coefficients: Float[Array, "w J"]) -> Complex[Array, "w *m"]:
        """Coefficients of the functions as those of waves, which the lattice evaluates."""
        cosines, sines = np.split(np.sqrt(2) * coefficients, 2, axis=1)
        waves = np.zeros((len(coefficients), *self.lattice.shape), complex)
        place = self.m + np.array([0, *self.lattice.top[1:]])
        waves[:, *place.T] = cosines + 1j * sines
        return waves

    def projected(self, sums: Complex[Array, "w *m"]) -> Float[Array, "w J"]:
        """Φᵀy from the sums of y over waves."""
        place = self.m + np.array([0, *self.lattice.top[1:]])
        waves = np.sqrt(2) * sums[:, *place.T]
        return np.hstack([waves.real, -waves.imag])

    @cached_property
    def _pairs(self) -> tuple[Int[Array, "K K"], Int[Array, "K K"]]:
        """Where, among all waves of the doubled lattice, differences and sums of two waves are."""
        top = np.array(self.lattice.doubled.top)
        sides = 2 * top + 1
        strides = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
        at, centre = self.m @ strides, top @ strides
        return centre + at[:, None] - at, centre + at[:, None] + at

    def products(self, c: Complex[Array, "*n"]) -> Float[Array, "J J"]:
        """G: the products of two functions, summed over places with these sums of waves."""
        apart, together = self._pairs
        flat = self.lattice.doubled.whole(c[None]).ravel()
        T, H = flat[apart], flat[together]
        K = len(self.m)
        G = np.empty((2 * K, 2 * K))
        G[:K, :K] = T.real + H.real
        G[:K, K:] = T.imag - H.imag
        G[K:, :K] = -T.imag - H.imag
        G[K:, K:] = T.real - H.real
        return G

    def contracted(self, X: Float[Array, "J J"]) -> Complex[Array, "*n"]:
        """Coefficients on the doubled lattice with which Re Σ coefficients·c = Σ X ∘ G."""
        apart, together = self._pairs
        K, doubled = len(self.m), self.lattice.doubled
        cc, cs, sc, ss = X[:K, :K], X[:K, K:], X[K:, :K], X[K:, K:]
        sides = [2 * top + 1 for top in doubled.top]

        def scattered(at: Array, values: Array) -> Array:
            return np.bincount(at.ravel(), values.ravel(), minlength=int(np.prod(sides)))

        real = scattered(apart, cc + ss) + scattered(together, cc - ss)
        imag = scattered(apart, cs - sc) - scattered(together, cs + sc)
        return doubled.folded((real - 1j * imag).reshape(1, *sides))[0]
