"""Spectral densities of stationary kernels.

The spectral density S of a kernel satisfies k(r) = ∫ S(ω) cos(ω·r) dω/(2π)ᴾ. On a periodic box,
only the frequencies on a grid remain. Each of these frequencies has the variance S(ω)/volume. The
sum of S(ω)/volume cos(ω·r) over all of them is k(r) plus its periodic copies.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln
from sklearn.gaussian_process import kernels as sk

Array = np.ndarray
Density = tuple[Float[Array, " K"], Float[Array, "p K"]]
DensityFunction = Callable[[Any, Array, float], Density]

SUPPORTED = (
    "RBF, Matern, ConstantKernel, their sums, and products with a ConstantKernel (noise is set by "
    "the parameter noise)"
)


@singledispatch
def spectral_density(kernel: sk.Kernel, omega: Float[Array, "K P"], volume: float) -> Density:
    """Return the variance at every frequency ω, and its gradient.

    The gradient is with respect to the log hyper-parameters. Over all frequencies ω = 2πm/T of a
    box with sides T, the variances sum to k(0):

    >>> omega = 2 * np.pi / 20.0 * np.arange(-40.0, 41.0)[:, None]
    >>> float(spectral_density(sk.RBF(2.0), omega, volume=20.0)[0].sum().round(12))
    1.0
    """
    raise ValueError(f"The spectral density of kernel={kernel} is unknown; expected {SUPPORTED}.")


def _register(cls: type[sk.Kernel]) -> Callable[[DensityFunction], DensityFunction]:
    """Register the density of a kernel class, but not for subclasses that override `__call__`."""

    def register(density: DensityFunction) -> DensityFunction:
        @spectral_density.register(cls)
        def guarded(kernel: sk.Kernel, omega: Array, volume: float) -> Density:
            same = type(kernel).__call__ is cls.__call__
            function = density if same else spectral_density.dispatch(sk.Kernel)
            return function(kernel, omega, volume)

        return density

    return register


@_register(sk.ConstantKernel)
def _constant(kernel: sk.ConstantKernel, omega: Array, volume: float) -> Density:
    value = np.where((omega == 0).all(axis=1), kernel.constant_value, 0.0)
    return value, value[None][: kernel.n_dims]


@_register(sk.Sum)
def _sum(kernel: sk.Sum, omega: Array, volume: float) -> Density:
    (s1, gradient1), (s2, gradient2) = (
        spectral_density(k, omega, volume) for k in (kernel.k1, kernel.k2)
    )
    return s1 + s2, np.concatenate([gradient1, gradient2])


@_register(sk.Product)
def _product(kernel: sk.Product, omega: Array, volume: float) -> Density:
    first = isinstance(kernel.k1, sk.ConstantKernel)
    if not first and not isinstance(kernel.k2, sk.ConstantKernel):
        raise ValueError(
            f"The spectral density of kernel={kernel}, a product of kernels, is unknown; expected "
            f"{SUPPORTED}."
        )
    constant, other = (kernel.k1, kernel.k2) if first else (kernel.k2, kernel.k1)
    s, gradient = (
        constant.constant_value * part for part in spectral_density(other, omega, volume)
    )
    of_constant = s[None][: constant.n_dims]
    return s, np.concatenate([of_constant, gradient] if first else [gradient, of_constant])


@_register(sk.RBF)
def _rbf(kernel: sk.RBF, omega: Array, volume: float) -> Density:
    scale, squares = _scaled(kernel, omega)
    P = omega.shape[1]
    s = (2 * np.pi) ** (P / 2) * np.prod(scale) / volume * np.exp(-0.5 * squares.sum(axis=0))
    return s, _in_length_scales(kernel, s * (1 - squares))


@_register(sk.Matern)
def _matern(kernel: sk.Matern, omega: Array, volume: float) -> Density:
    if kernel.nu == np.inf:
        return _rbf(kernel, omega, volume)
    scale, squares = _scaled(kernel, omega)
    nu, P = kernel.nu, omega.shape[1]
    power = nu + P / 2
    level = P * np.log(2) + P / 2 * np.log(np.pi) + gammaln(power) - gammaln(nu)
    level += np.log(scale).sum() + nu * np.log(2 * nu)
    base = 2 * nu + squares.sum(axis=0)
    s = np.exp(level - power * np.log(base)) / volume
    return s, _in_length_scales(kernel, s * (1 - 2 * power * squares / base))


def _scaled(kernel: sk.RBF, omega: Array) -> tuple[Float[Array, " P"], Float[Array, "P K"]]:
    """Return the length-scale ℓ and the values of (ωℓ)² for each input."""
    scale = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (omega.shape[1],))
    return scale, (omega.T * scale[:, None]) ** 2


def _in_length_scales(kernel: sk.RBF, gradient: Float[Array, "P K"]) -> Float[Array, "p K"]:
    """Return the gradient with respect to one length-scale for all inputs or one for each input."""
    if not kernel.n_dims:
        return gradient[:0]
    return gradient if kernel.n_dims == len(gradient) else gradient.sum(axis=0, keepdims=True)
