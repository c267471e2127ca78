"""Sums of waves over places: all that a model with stationary kernels needs of its readings.

On a box that repeats itself with periods T, a field is a sum of waves cos(ω·x) and sin(ω·x) with
ω = 2πm/T, whole m. What likelihood and prediction need of N places are products of two waves,
summed; and since a product of two waves is a wave of their sum or difference, that is

    c[m] = Σ_i exp(−iω_m·x_i)      h_l[m] = Σ_i y_l(x_i) exp(−iω_m·x_i)

a few thousand numbers whatever N is, in place of a matrix over pairs of waves. Where outputs are
missing, places at which the same ones were read have sums of their own. Sums of parts of the data
add up to those of the whole, in any order and from anywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Complex, Float, Int

from emgpr.execution import chunks
from emgpr.observations import Observations

Array = np.ndarray

AT_ONCE = 32e6  # bytes of waves at places


@dataclass(frozen=True)
class Lattice:
    """The waves ω = 2πm/period, |m_p| ≤ top_p, of a box with its corner at `low`.

    Since c[−m] is the conjugate of c[m], m_1 ≥ 0 are enough: axes of sums are m_1 = 0 … top_1,
    then m_p = −top_p … top_p.
    """

    low: tuple[float, ...]
    period: tuple[float, ...]
    top: tuple[int, ...]

    @property
    def n_inputs(self) -> int:
        """P."""
        return len(self.top)

    @property
    def volume(self) -> float:
        """Of the box."""
        return float(np.prod(self.period))

    @property
    def doubled(self) -> "Lattice":
        """With the waves that products of two of these waves are."""
        return Lattice(self.low, self.period, tuple(2 * top for top in self.top))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of sums over places."""
        first, *others = self.top
        return (first + 1, *(2 * top + 1 for top in others))

    def omega(self, m: Int[Array, "K P"]) -> Float[Array, "K P"]:
        """Frequencies in radians for each unit of the inputs."""
        return 2 * np.pi * m / np.array(self.period)

    def sums(self, x: Float[Array, "N P"], V: Float[Array, "N w"]) -> Complex[Array, "w *m"]:
        """Σ_i V[i, w] exp(−iω_m·x_i), for every column w.

        >>> Lattice((0.0,), (4.0,), (2,)).sums(np.array([[1.0]]), np.ones((1, 1))).round(12)
        array([[ 1.+0.j,  0.-1.j, -1.-0.j]])
        """
        *_, last = self.shape
        total = np.zeros((V.shape[1] * int(np.prod(self.shape[:-1])), last), complex)
        for rows in self._runs(len(x), V.shape[1]):
            *before, wave = self._along_axes(x[rows])
            whole = V[rows].astype(complex)
            for axis in before:
                whole = (whole[:, :, None] * axis[:, None, :]).reshape(len(axis), -1)
            total += whole.T @ wave
        return total.reshape(V.shape[1], *self.shape)

    def evaluate(
        self, x: Float[Array, "N P"], coefficients: Complex[Array, "w *m"]
    ) -> Float[Array, "N w"]:
        """Re Σ_m coefficients[w, m] exp(−iω_m·x), for every w: what `sums` sums, the other way."""
        n = len(coefficients)
        answer = np.empty((len(x), n))
        flat = coefficients.reshape(-1, coefficients.shape[-1])
        for rows in self._runs(len(x), n):
            *before, wave = self._along_axes(x[rows])
            left = wave @ flat.T
            for axis in reversed(before):
                left = np.einsum(
                    "nrm,nm->nr", left.reshape(len(axis), -1, axis.shape[1]), axis, optimize=False
                )
            answer[rows] = left.real
        return answer

    def whole(self, half: Complex[Array, "w *m"]) -> Complex[Array, "w *n"]:
        """Sums with m_1 < 0 too."""
        mirrored = np.flip(half[:, 1:], axis=tuple(range(1, half.ndim))).conj()
        return np.concatenate([mirrored, half], axis=1)

    def folded(self, whole: Complex[Array, "w *n"]) -> Complex[Array, "w *m"]:
        """Coefficients of all waves as those of m_1 ≥ 0, the same when evaluated."""
        top = self.top[0]
        half = whole[:, top:].copy()
        mirrored = np.flip(whole[:, :top], axis=tuple(range(1, whole.ndim)))
        half[:, 1:] += mirrored.conj()
        return half

    def _along_axes(self, x: Float[Array, "n P"]) -> list[Complex[Array, "n _"]]:
        """exp(−iω_m x_p) along every axis."""
        axes = []
        for p, top in enumerate(self.top):
            turns = (x[:, p] - self.low[p]) / self.period[p]
            powers = np.empty((len(x), top + 1), complex)
            powers[:, 0] = 1.0
            powers[:, 1:2] = np.exp(-2j * np.pi * turns)[:, None][:, :top]
            known = 2
            while known <= top:  # powers by doubling: rounding grows with the logarithm only
                more = min(known - 1, top + 1 - known)
                np.multiply(
                    powers[:, 1 : more + 1],
                    powers[:, known - 1 : known],
                    out=powers[:, known : known + more],
                )
                known += more
            axes.append(powers if p == 0 else np.hstack([powers[:, :0:-1].conj(), powers]))
        return axes

    def _runs(self, n: int, w: int) -> Iterator[slice]:
        sizes = self.shape
        bytes_each = 16.0 * (sum(sizes) + 2 * w * np.prod(sizes[:-1]))
        for run in chunks(n, float(bytes_each), 1, AT_ONCE) if n else []:
            yield slice(run.start, run.stop)


@dataclass(frozen=True)
class Term:
    """Places at which the same outputs were read."""

    places: Complex[Array, "*n"]  # c, on the doubled lattice
    outputs: Complex[Array, "d *m"]  # h_l of those that were read
    power: Float[Array, "d d"]  # Σ_i y_l(x_i) y_m(x_i)

    def __add__(self, other: "Term") -> "Term":
        return Term(
            self.places + other.places, self.outputs + other.outputs, self.power + other.power
        )

    @property
    def n_sites(self) -> int:
        """How many places these are: the sum of no wave."""
        zero = (0, *(size // 2 for size in self.places.shape[1:]))
        return round(float(self.places[zero].real))


@dataclass(frozen=True)
class Sums:
    """All that is needed of a table, however long: a term for each set of outputs read together.

    >>> lattice = Lattice((0.0,), (4.0,), (2,))
    >>> table = Observations.from_table(np.array([[1.0], [2.0]]), np.array([[5.0], [6.0]]))
    >>> parts = [Sums.of(lattice, table.at([i])) for i in (0, 1)]
    >>> whole = parts[0] + parts[1]
    >>> whole.n_readings, bool(np.allclose(whole.terms[0,].outputs,
    ...                                    Sums.of(lattice, table).terms[0,].outputs))
    (2, True)
    """

    lattice: Lattice
    terms: Mapping[tuple[int, ...], Term] = field(default_factory=dict)

    @classmethod
    def of(cls, lattice: Lattice, table: Observations) -> "Sums":
        """Those of a table."""
        patterns, own = np.unique(table.seen, axis=1, return_inverse=True)
        terms = {}
        for label, pattern in enumerate(patterns.T):
            read = np.flatnonzero(pattern)
            sites = np.flatnonzero(own.ravel() == label)
            if len(read):
                y = table.y[read][:, sites]
                x = table.x[sites]
                terms[tuple(read.tolist())] = Term(
                    lattice.doubled.sums(x, np.ones((len(x), 1)))[0],
                    lattice.sums(x, y.T),
                    y @ y.T,
                )
        return cls(lattice, terms)

    def __add__(self, other: "Sums") -> "Sums":
        if self.lattice != other.lattice:
            raise ValueError(
                f"Sums over {self.lattice} and over {other.lattice} do not add up; make both with "
                "the same one."
            )
        terms = dict(self.terms)
        for outputs, term in other.terms.items():
            terms[outputs] = terms[outputs] + term if outputs in terms else term
        return Sums(self.lattice, terms)

    @property
    def n_sites(self) -> int:
        """Places at which anything was read."""
        return sum(term.n_sites for term in self.terms.values())

    @property
    def n_readings(self) -> int:
        """Outputs read, over all places."""
        return sum(len(outputs) * term.n_sites for outputs, term in self.terms.items())

    def mean_square(self, d: int) -> float:
        """Of the readings of output d."""
        own = [
            (np.diagonal(term.power)[outputs.index(d)], term.n_sites)
            for outputs, term in self.terms.items()
            if d in outputs
        ]
        power, n = np.sum(own, axis=0)
        return float(power / n)
