"""Fourier sums over sites, the sufficient statistics of a model with Fourier features.

A stationary process that is periodic with periods T is a sum of cosines and sines with frequencies
ω = 2πm/T, where m is a vector of integers. Likelihood and predictions depend on the
sites through products of two such functions, summed over the sites. Since such a product is a
combination of functions at the sum and the difference of the two frequencies, it suffices to
compute

    c[m] = Σ_i exp(−iω_m·x_i)      h_l[m] = Σ_i y_l(x_i) exp(−iω_m·x_i)

where l is an output. These are a few thousand numbers, whatever the number of sites. Sums for pairs
of frequencies are not needed. If readings are missing, sums are computed separately for each
pattern: a set of outputs, and the sites at which exactly these outputs were measured. The sums over
parts of the data add up to the sums over the whole, in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Complex, Float, Int

from emgpr.arrays import chunks
from emgpr.observations import Observations

Array = np.ndarray

CHUNK_BYTES = 32e6  # memory that complex exponentials may take


@dataclass(frozen=True)
class FrequencyGrid:
    """Frequencies ω = 2πm/period, |m_p| ≤ max_harmonic_p, for a box with lower corner `low`.

    Since c[−m] is the conjugate of c[m], only frequencies with m_1 ≥ 0 are stored: the axes of an
    array of sums are m_1 = 0 … max_harmonic_1, then m_p = −max_harmonic_p … max_harmonic_p.
    """

    low: tuple[float, ...]
    period: tuple[float, ...]
    max_harmonic: tuple[int, ...]

    @property
    def n_inputs(self) -> int:
        """Number of inputs, P."""
        return len(self.max_harmonic)

    @property
    def volume(self) -> float:
        """Volume of the box."""
        return float(np.prod(self.period))

    @property
    def doubled(self) -> "FrequencyGrid":
        """The grid that contains all sums and differences of two of these frequencies."""
        return FrequencyGrid(self.low, self.period, tuple(2 * m for m in self.max_harmonic))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array of sums."""
        first, *others = self.max_harmonic
        return (first + 1, *(2 * m + 1 for m in others))

    def frequencies(self, m: Int[Array, "K P"]) -> Float[Array, "K P"]:
        """Return the frequencies ω = 2πm/period, in radians per unit of the inputs."""
        return 2 * np.pi * m / np.array(self.period)

    def sums(self, x: Float[Array, "N P"], V: Float[Array, "N w"]) -> Complex[Array, "w *m"]:
        """Return Σ_i V[i, w] exp(−iω_m·x_i) for every column w.

        >>> FrequencyGrid((0.0,), (4.0,), (2,)).sums(np.array([[1.0]]), np.ones((1, 1))).round(12)
        array([[ 1.+0.j,  0.-1.j, -1.-0.j]])
        """
        w = V.shape[1]
        total = np.zeros((w * int(np.prod(self.shape[:-1])), self.shape[-1]), complex)
        for rows in self._runs(len(x), w):
            *others, last = self._exponentials(x[rows])
            product = V[rows].astype(complex)
            for axis in others:
                product = (product[:, :, None] * axis[:, None, :]).reshape(len(axis), -1)
            total += product.T @ last
        return total.reshape(w, *self.shape)

    def evaluate(
        self, x: Float[Array, "N P"], coefficients: Complex[Array, "w *m"]
    ) -> Float[Array, "N w"]:
        """Return Re Σ_m coefficients[w, m] exp(−iω_m·x) for every w (the adjoint of `sums`)."""
        w = len(coefficients)
        values = np.empty((len(x), w))
        flat = coefficients.reshape(-1, coefficients.shape[-1])
        for rows in self._runs(len(x), w):
            *others, last = self._exponentials(x[rows])
            partial = last @ flat.T
            for axis in reversed(others):
                partial = partial.reshape(len(axis), -1, axis.shape[1])
                partial = np.einsum("nrm,nm->nr", partial, axis, optimize=False)
            values[rows] = partial.real
        return values

    def with_conjugates(self, half: Complex[Array, "w *m"]) -> Complex[Array, "w *n"]:
        """Return the sums for all m, given the sums for m_1 ≥ 0."""
        mirrored = np.flip(half[:, 1:], axis=tuple(range(1, half.ndim))).conj()
        return np.concatenate([mirrored, half], axis=1)

    def fold_conjugates(self, full: Complex[Array, "w *n"]) -> Complex[Array, "w *m"]:
        """Convert coefficients for all m to equivalent coefficients for m_1 ≥ 0."""
        first = self.max_harmonic[0]
        half = full[:, first:].copy()
        half[:, 1:] += np.flip(full[:, :first], axis=tuple(range(1, full.ndim))).conj()
        return half

    def _exponentials(self, x: Float[Array, "n P"]) -> list[Complex[Array, "n _"]]:
        """Return exp(−iω_m x_p) for every input p, with one column for each m_p."""
        axes = []
        for p, most in enumerate(self.max_harmonic):
            turns = (x[:, p] - self.low[p]) / self.period[p]
            powers = np.empty((len(x), most + 1), complex)
            powers[:, 0] = 1.0
            powers[:, 1:2] = np.exp(-2j * np.pi * turns)[:, None][:, :most]
            done = 2
            while done <= most:  # By doubling, rounding errors grow only with log m.
                more = min(done - 1, most + 1 - done)
                np.multiply(
                    powers[:, 1 : more + 1],
                    powers[:, done - 1 : done],
                    out=powers[:, done : done + more],
                )
                done += more
            axes.append(powers if p == 0 else np.hstack([powers[:, :0:-1].conj(), powers]))
        return axes

    def _runs(self, n: int, w: int) -> list[slice]:
        """Return slices of rows, short enough for their exponentials to fit into memory."""
        bytes_each = 16.0 * (sum(self.shape) + 2 * w * np.prod(self.shape[:-1]))
        runs = chunks(n, float(bytes_each), 1, CHUNK_BYTES) if n else []
        return [slice(run.start, run.stop) for run in runs]


@dataclass(frozen=True)
class PatternSums:
    """Sums for one pattern, over the sites at which exactly the same outputs were measured."""

    sites: Complex[Array, "*n"]  # c, on the doubled grid
    readings: Complex[Array, "d *m"]  # h_l for the outputs that were measured
    products: Float[Array, "d d"]  # Σ_i y_l(x_i) y_m(x_i)

    def __add__(self, other: "PatternSums") -> "PatternSums":
        return PatternSums(
            self.sites + other.sites,
            self.readings + other.readings,
            self.products + other.products,
        )

    @property
    def n_sites(self) -> int:
        """Number of sites, which is c at frequency zero."""
        zero = (0, *(size // 2 for size in self.sites.shape[1:]))
        return round(float(self.sites[zero].real))


@dataclass(frozen=True)
class FourierSums:
    """The sums over a table, computed separately for each set of outputs measured together.

    >>> grid = FrequencyGrid((0.0,), (4.0,), (2,))
    >>> table = Observations.from_table(np.array([[1.0], [2.0]]), np.array([[5.0], [6.0]]))
    >>> whole = FourierSums.from_observations(grid, table)
    >>> parts = [FourierSums.from_observations(grid, table.at([i])) for i in (0, 1)]
    >>> added = (parts[0] + parts[1]).patterns[0,].readings
    >>> whole.n_readings, bool(np.allclose(added, whole.patterns[0,].readings))
    (2, True)
    """

    grid: FrequencyGrid
    patterns: Mapping[tuple[int, ...], PatternSums] = field(default_factory=dict)

    @classmethod
    def from_observations(cls, grid: FrequencyGrid, table: Observations) -> "FourierSums":
        """Compute the sums over the sites of a table."""
        unique, labels = np.unique(table.observed, axis=1, return_inverse=True)
        patterns = {}
        for label, measured in enumerate(unique.T):
            outputs = np.flatnonzero(measured)
            sites = np.flatnonzero(labels.ravel() == label)
            if len(outputs):
                x, y = table.x[sites], table.y[outputs][:, sites]
                patterns[tuple(outputs.tolist())] = PatternSums(
                    grid.doubled.sums(x, np.ones((len(x), 1)))[0], grid.sums(x, y.T), y @ y.T
                )
        return cls(grid, patterns)

    def __add__(self, other: "FourierSums") -> "FourierSums":
        if self.grid != other.grid:
            raise ValueError(
                f"Sums on different grids, {self.grid} and {other.grid}, cannot be added; compute "
                "both with copies of one model, made after calling its method start."
            )
        patterns = dict(self.patterns)
        for outputs, sums in other.patterns.items():
            patterns[outputs] = patterns[outputs] + sums if outputs in patterns else sums
        return FourierSums(self.grid, patterns)

    @property
    def n_sites(self) -> int:
        """Number of sites with at least one reading."""
        return sum(sums.n_sites for sums in self.patterns.values())

    @property
    def n_readings(self) -> int:
        """Number of readings of all outputs."""
        return sum(len(outputs) * sums.n_sites for outputs, sums in self.patterns.items())

    def mean_square(self, d: int) -> float:
        """Return the mean square of the readings of output d."""
        squares_and_counts = [
            (sums.products[outputs.index(d), outputs.index(d)], sums.n_sites)
            for outputs, sums in self.patterns.items()
            if d in outputs
        ]
        total, n = np.sum(squares_and_counts, axis=0)
        return float(total / n)
