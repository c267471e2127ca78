"""Stationary kernels by their spectra: how much of the variance lies at every frequency.

k(r) = ∫ S(ω) cos(ω·r) dω/(2π)ᴾ. On a box that repeats itself only the frequencies of a lattice are
left, each with the variance S(ω)/volume, and they sum to k(r) and its echoes from the boxes beside.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln
from sklearn.gaussian_process import kernels as sk

Array = np.ndarray
Spectrum = tuple[Float[Array, " K"], Float[Array, "p K"]]
Answer = Callable[[Any, Array, float], Spectrum]

KNOWN = (
    "RBF, Matern, ConstantKernel, their sums, and products with a ConstantKernel; leave the noise "
    "to noise="
)


@singledispatch
def spectrum(kernel: sk.Kernel, omega: Float[Array, "K P"], volume: float) -> Spectrum:
    """Variance at every frequency ω, and its slopes along the kernel's log hyper-parameters.

    Over all frequencies of a box with sides T, ω = 2πm/T, the variances sum to k(0):

    >>> omega = 2 * np.pi / 20.0 * np.arange(-40.0, 41.0)[:, None]
    >>> float(spectrum(sk.RBF(2.0), omega, volume=20.0)[0].sum().round(12))
    1.0
    """
    raise ValueError(f"kernel={kernel} has no spectrum that is known here; expected {KNOWN}.")


def _knows(cls: type[sk.Kernel]) -> Callable[[Answer], Answer]:
    """Register an answer for a class, but not for subclasses with a `__call__` of their own."""

    def register(answer: Answer) -> Answer:
        @spectrum.register(cls)
        def guarded(kernel: sk.Kernel, omega: Array, volume: float) -> Spectrum:
            same = type(kernel).__call__ is cls.__call__
            return (answer if same else spectrum.dispatch(sk.Kernel))(kernel, omega, volume)

        return answer

    return register


@_knows(sk.ConstantKernel)
def _constant(kernel: sk.ConstantKernel, omega: Array, volume: float) -> Spectrum:
    still = (omega == 0).all(axis=1)
    value = np.where(still, kernel.constant_value, 0.0)
    return value, value[None][: kernel.n_dims]


@_knows(sk.Sum)
def _sum(kernel: sk.Sum, omega: Array, volume: float) -> Spectrum:
    (s1, slope1), (s2, slope2) = (spectrum(k, omega, volume) for k in (kernel.k1, kernel.k2))
    return s1 + s2, np.concatenate([slope1, slope2])


@_knows(sk.Product)
def _product(kernel: sk.Product, omega: Array, volume: float) -> Spectrum:
    first = isinstance(kernel.k1, sk.ConstantKernel)
    if not first and not isinstance(kernel.k2, sk.ConstantKernel):
        raise ValueError(
            f"kernel={kernel} multiplies kernels, whose spectrum is not known here; expected "
            f"{KNOWN}."
        )
    constant, other = (kernel.k1, kernel.k2) if first else (kernel.k2, kernel.k1)
    s, slope = spectrum(other, omega, volume)
    s, slope = constant.constant_value * s, constant.constant_value * slope
    own = s[None][: constant.n_dims]
    return s, np.concatenate([own, slope] if first else [slope, own])


@_knows(sk.RBF)
def _rbf(kernel: sk.RBF, omega: Array, volume: float) -> Spectrum:
    scale, squares = _scaled(kernel, omega)
    P = omega.shape[1]
    s = (2 * np.pi) ** (P / 2) * np.prod(scale) / volume * np.exp(-0.5 * squares.sum(axis=0))
    return s, _along_scales(kernel, s * (1 - squares))


@_knows(sk.Matern)
def _matern(kernel: sk.Matern, omega: Array, volume: float) -> Spectrum:
    if kernel.nu == np.inf:
        return _rbf(kernel, omega, volume)
    scale, squares = _scaled(kernel, omega)
    nu, P = kernel.nu, omega.shape[1]
    power = nu + P / 2
    level = P * np.log(2) + P / 2 * np.log(np.pi) + gammaln(power) - gammaln(nu)
    base = 2 * nu + squares.sum(axis=0)
    level += np.log(scale).sum() + nu * np.log(2 * nu)
    s = np.exp(level - power * np.log(base)) / volume
    return s, _along_scales(kernel, s * (1 - 2 * power * squares / base))


def _scaled(kernel: sk.RBF, omega: Array) -> tuple[Float[Array, " P"], Float[Array, "P K"]]:
    """A length-scale for each input, and (ω ℓ)² along each."""
    scale = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (omega.shape[1],))
    return scale, (omega.T * scale[:, None]) ** 2


def _along_scales(kernel: sk.RBF, slopes: Float[Array, "P K"]) -> Float[Array, "p K"]:
    """Slopes along the length-scales that are free: one for all inputs, or one for each."""
    if not kernel.n_dims:
        return slopes[:0]
    return slopes if kernel.n_dims == len(slopes) else slopes.sum(axis=0, keepdims=True)
