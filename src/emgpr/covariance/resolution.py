"""How large a box must be, and how many waves: from the kernels, and from what may be left out.

The box repeats itself, so it must be wider than the region by the distance at which the kernels
have died away. Waves are taken in the order of the variance they carry, of whichever output
they matter most to, until what they leave of every latent is small enough. Where ranges differ
much, latents of short range have every n-th wave only: a box as wide as the others need would ask
for n² times as many waves of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance.basis import Basis
from emgpr.covariance.lattice import Lattice
from emgpr.kernels import matrix

Array = np.ndarray

ECHOES = (1e-4, 1e-3, 1e-2, 3e-2)  # of an output's variance, in its covariance with the far side,
HARM = 0.05  # beside as much that is left out: as measured on predictions, less for short ranges
WIDEST = (
    2.0  # extents of the region, beyond it: what is longer is a trend, which few waves have too
)
LONGEST = 6.0  # the same where waves are spared for others
ROOM = 1.25  # waves on the lattice beyond those needed: length-scales may turn out shorter
LARGEST = 60_000  # sums over places, for every set of outputs that were read together
SEARCHED = 2**21  # waves that are looked through, of which hardly any may carry anything


@dataclass(frozen=True)
class Fineness:
    """Share of an output's variance that may be left out, and what may be spent on less."""

    tolerance: float  # at most, if `most` functions are enough for it
    ideal: float  # left out, if `affordable` functions are enough for it
    affordable: int
    most: int


def basis_on(
    low: Float[Array, " P"],
    high: Float[Array, " P"],
    kernels: Sequence[Kernel],
    shares: Float[Array, " Q"],
    fineness: Fineness,
) -> Basis:
    """The fewest waves for the region between two corners, on a lattice with room for more.

    `shares` are the largest shares of an output's variance that come from each latent.
    """
    extent = high - low
    found: dict[tuple[float, int], Basis] = {}
    for echo in ECHOES:
        for periods, strides in _boxes(extent, _reach(kernels, shares, extent, echo)):
            basis = _grown(low, periods, strides, kernels, shares, fineness)
            if basis is not None:
                price = max(_left(basis, kernels, shares), fineness.ideal)
                price += HARM * _echo(basis, kernels, shares, extent)
                found[price, basis.n_functions] = basis
    return found[min(found)]


def basis_for(
    lattice: Lattice,
    strides: tuple[int, ...],
    kernels: Sequence[Kernel],
    shares: Float[Array, " Q"],
    fineness: Fineness,
) -> Basis:
    """The waves of a lattice that carry most, as many as are needed, and may be spent."""
    whole = Basis(lattice, _half(lattice.top), strides)
    carried = 2 * whole.variances(kernels) * (shares / at_a_place(kernels, lattice))[:, None]
    # No wave first, whatever it carries; of equals, the longer wave first.
    order = np.lexsort([(whole.omega**2).sum(axis=1), -carried.max(axis=0)])
    order = np.concatenate([[0], order[order != 0]])
    # What is left to gain: beyond the lattice there may be more, but none of it can be had.
    left = (carried.sum(axis=1)[:, None] - np.cumsum(carried[:, order], axis=1)).max(axis=0)
    needed, ideal = (
        int(np.argmax(left <= bar)) + 1 for bar in (fineness.tolerance, fineness.ideal)
    )
    affordable, most = ((n + 1) // 2 for n in (fineness.affordable, fineness.most))
    n = max(1, min(ideal, max(needed, affordable), most))
    return Basis(lattice, whole.m[order[:n]], strides)


def at_a_place(kernels: Sequence[Kernel], lattice: Lattice) -> Float[Array, " Q"]:
    """k_q(x, x)."""
    origin = np.zeros((1, lattice.n_inputs))
    return np.array([float(kernel.diag(origin)[0]) for kernel in kernels])


def _left(basis: Basis, kernels: Sequence[Kernel], shares: Float[Array, " Q"]) -> float:
    """The largest share of an output's variance, of any latent, that is left out."""
    left = basis.left_out(kernels) / at_a_place(kernels, basis.lattice)
    return float((shares * left).max())


def _echo(
    basis: Basis, kernels: Sequence[Kernel], shares: Float[Array, " Q"], extent: Float[Array, " P"]
) -> float:
    """Covariance of two sides of the region that a latent should not have, times its width²."""
    worst = 0.0
    for kernel, share, stride in zip(kernels, shares, basis.strides, strict=True):
        periods = np.array(basis.lattice.period) / stride
        for p, gap in enumerate(periods - extent):
            k = _along(kernel, p, np.array([gap]), len(extent))[0]
            worst = max(worst, float(share * k * (gap / periods[p]) ** 2))
    return worst


def _boxes(
    extent: Float[Array, " P"], reach: Float[Array, "Q P"]
) -> list[tuple[Float[Array, " P"], tuple[int, ...]]]:
    """One box for all latents, and boxes of which those of shorter range need an n-th."""
    widest, longest = (extent + np.minimum(reach, w * extent) for w in (WIDEST, LONGEST))
    boxes = [(widest.max(axis=0), (1,) * len(reach))]
    ranges = (reach / extent).max(axis=1)
    for limit in np.unique(ranges)[:-1]:
        short = ranges <= limit
        base = widest[short].max(axis=0)
        n = int(np.ceil((longest.max(axis=0) / base).max() - 0.1))
        if n > 1:
            boxes.append((n * base, tuple(np.where(short, n, 1).tolist())))
    return boxes


def _grown(
    low: Float[Array, " P"],
    periods: Float[Array, " P"],
    strides: tuple[int, ...],
    kernels: Sequence[Kernel],
    shares: Float[Array, " Q"],
    fineness: Fineness,
) -> Basis | None:
    """The waves needed on a lattice that goes farther than they do, or as far as one may go."""
    top = np.full(len(low), 2 * max(strides))
    best = None
    while True:
        lattice = Lattice(tuple(low.tolist()), tuple(periods.tolist()), tuple(top.tolist()))
        if best is not None and np.prod(lattice.shape, dtype=float) > SEARCHED:
            return best
        basis = basis_for(lattice, strides, kernels, shares, fineness)
        used = np.abs(basis.m).max(axis=0)
        roomy = replace(lattice, top=tuple(np.ceil(ROOM * used).astype(int).tolist()))
        if np.prod(roomy.doubled.shape) > LARGEST:
            return best
        best = Basis(roomy, basis.m, strides)
        left, n = _left(best, kernels, shares), best.n_functions + 2
        more = (left > fineness.ideal and n <= fineness.affordable) or (
            left > fineness.tolerance and n <= fineness.most
        )
        edge = (used > top - max(strides)) | more
        if not edge.any():
            return best
        top = np.where(edge, np.ceil(1.5 * top), top).astype(int)


def _half(top: Sequence[int]) -> Int[Array, "K P"]:
    """Every m, or −m, once; zero first."""
    axes = [np.arange(-t, t + 1) for t in top]
    every = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(top))
    return every[len(every) // 2 :]  # −m is as far from the start as m is from the end


def _reach(
    kernels: Sequence[Kernel], shares: Float[Array, " Q"], extent: Float[Array, " P"], echo: float
) -> Float[Array, "Q P"]:
    """Distance along each input beyond which a kernel says less than an echo may."""
    reach = np.zeros((len(kernels), len(extent)))
    for p, side in enumerate(extent):
        distances = side * np.geomspace(1e-3, LONGEST, 200)
        for q, (kernel, share) in enumerate(zip(kernels, shares, strict=True)):
            heard = share * _along(kernel, p, distances, len(extent)) > echo
            reach[q, p] = distances[heard].max(initial=0.0)
    return reach


def _along(
    kernel: Kernel, p: int, distances: Float[Array, " n"], n_inputs: int
) -> Float[Array, " n"]:
    """Correlations at these distances along an input, but for a constant.

    That never dies away, and needs no room: it is a wave of every lattice.
    """
    there = np.zeros((len(distances) + 1, n_inputs))
    there[:, p] = [*distances, 1e9 * distances.max()]
    k = matrix(kernel, there[:1] * 0, there)[0]
    return (k[:-1] - k[-1]) / float(kernel.diag(there[:1])[0])
