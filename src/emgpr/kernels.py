"""Matrices of scikit-learn's kernels and gradients with respect to their hyper-parameters.

`evaluate_kernel(kernel, theta, pairs)` returns the kernel matrix K and its pullback. The pullback
is a function that maps G, the derivative of a quantity with respect to K, to the gradient of that
quantity, Σ_ij G_ij ∂K_ij/∂θ, without forming ∂K/∂θ. Theta can hold several parameter vectors of one
kernel, and there can be several tables of sites. These batch axes come first and are broadcast.

`evaluate_kernel` is a `singledispatch` function, so that user-defined kernels can be registered.
A kernel that is not registered is evaluated using its own method `__call__`, one matrix at a time
and on the CPU, so any scikit-learn kernel works, but more slowly.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process import kernels as sk

from emgpr.arrays import Array, namespace, to_device_of, to_numpy
from emgpr.spherical import Spherical as Spherical  # users import it from here

# These annotations are used in inner functions, where Python evaluates them at every call of the
# outer function. Creating them there would take longer than evaluating a small matrix.
Matrices = Float[Array, "*b N M"]
Gradients = Float[Array, "*b p"]
Pullback = Callable[[Matrices], Gradients]
Slope = Callable[[], Matrices]  # returns −2 dk/dr² of a kernel k(r²); computed if it is needed

logger = logging.getLogger(__name__)

NAMED_KERNELS: dict[str, sk.Kernel] = {
    "rbf": sk.RBF(),
    "matern12": sk.Matern(nu=0.5),
    "matern32": sk.Matern(nu=1.5),
    "matern52": sk.Matern(nu=2.5),
}


@dataclass(frozen=True)
class Pairs:
    """All pairs of one site from x and one from z (from x if z is None), and their distances."""

    x: Float[Array, "*b N P"]
    z: Float[Array, "*b M P"] | None = None

    @cached_property
    def squared_differences(self) -> Float[Array, "*b P N M"]:
        """Squared differences between the sites, for each input."""
        xp = namespace(self.x)
        x = xp.matrix_transpose(self.x)
        z = x if self.z is None else xp.matrix_transpose(self.z)
        return (x[..., :, None] - z[..., None, :]) ** 2

    @cached_property
    def squared_distances(self) -> Float[Array, "*b N M"]:
        """Squared distances, computed from differences of coordinates to avoid cancellation."""
        z = self.x if self.z is None else self.z
        total = (self.x[..., :, None, 0] - z[..., None, :, 0]) ** 2
        for p in range(1, self.x.shape[-1]):
            total += (self.x[..., :, None, p] - z[..., None, :, p]) ** 2
        return total

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (*b, N, M) of a matrix with an element for each pair."""
        return (*self.x.shape[:-1], (self.x if self.z is None else self.z).shape[-2])


def kernel_matrix(
    kernel: sk.Kernel, x: Float[Array, "*b N P"], z: Float[Array, "*b M P"] | None = None
) -> Float[Array, "*b N M"]:
    """Return the kernel matrix k(x, z) with the kernel's own hyper-parameters.

    >>> kernel_matrix(sk.RBF(2.0), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    return evaluate_kernel(kernel, to_device_of(kernel.theta, x), Pairs(x, z))[0]


def kernel_matrices(
    kernels: Sequence[sk.Kernel],
    x: Float[Array, "*b N P"],
    z: Float[Array, "*b M P"] | None = None,
) -> Float[Array, "*b Q N M"]:
    """Return the matrix k_q(x, z) of every kernel; the sequence of kernels may be empty."""
    pairs = Pairs(x, z)
    if not kernels:
        *batch, N, M = pairs.shape
        return to_device_of(np.empty((*batch, 0, N, M)), x)
    Ks = [evaluate_kernel(kernel, to_device_of(kernel.theta, x), pairs)[0] for kernel in kernels]
    return namespace(x).stack(Ks, axis=-3)


@singledispatch
def evaluate_kernel(
    kernel: sk.Kernel, theta: Float[Array, "*t p"], pairs: Pairs
) -> tuple[Float[Array, "*b N M"], Pullback]:
    """Return k(x, z) and its pullback, for every vector theta of log hyper-parameters."""
    if not isinstance(pairs.x, np.ndarray):
        logger.debug("%s is evaluated by scikit-learn and copied to the device", kernel)
    batch = np.broadcast_shapes(theta.shape[:-1], pairs.x.shape[:-2])
    thetas = np.broadcast_to(to_numpy(theta), (*batch, theta.shape[-1]))
    x = np.broadcast_to(to_numpy(pairs.x), (*batch, *pairs.x.shape[-2:]))
    z = None
    if pairs.z is not None:
        z = np.broadcast_to(to_numpy(pairs.z), (*batch, *pairs.z.shape[-2:]))
    settings = {index: kernel.clone_with_theta(thetas[index]) for index in np.ndindex(*batch)}
    K = np.empty((*batch, *pairs.shape[-2:]))
    for index, setting in settings.items():
        K[index] = setting(x[index]) if z is None else setting(x[index], z[index])

    def pullback(G: Matrices) -> Gradients:
        contracted, n = to_numpy(G), x.shape[-2]
        gradient = np.empty((*batch, theta.shape[-1]))
        for index, setting in settings.items():
            # scikit-learn provides gradients only for the pairs of a single set of sites.
            sites = x[index] if z is None else np.concatenate([x[index], z[index]])
            _, dK = setting(sites, eval_gradient=True)
            dK = dK if z is None else dK[:n, n:]
            gradient[index] = np.tensordot(contracted[index], dK, axes=2)
        return to_device_of(gradient, pairs.x)

    return to_device_of(K, pairs.x), pullback


Evaluator = Callable[[Any, Array, Pairs], tuple[Array, Pullback]]


def _register(cls: type[sk.Kernel]) -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator for a kernel class and all subclasses that keep its `__call__`."""

    def register(evaluator: Evaluator) -> Evaluator:
        @evaluate_kernel.register(cls)
        def guarded(kernel: sk.Kernel, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
            same = type(kernel).__call__ is cls.__call__
            evaluate = evaluator if same else evaluate_kernel.dispatch(sk.Kernel)
            return evaluate(kernel, theta, pairs)

        return evaluator

    return register


@_register(sk.Sum)
def _sum(kernel: sk.Sum, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (K1, pull1), (K2, pull2) = _evaluate_both(kernel, theta, pairs)
    return K1 + K2, lambda G: namespace(G).concat([pull1(G), pull2(G)], axis=-1)


@_register(sk.Product)
def _product(kernel: sk.Product, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (K1, pull1), (K2, pull2) = _evaluate_both(kernel, theta, pairs)
    return K1 * K2, lambda G: namespace(G).concat([pull1(G * K2), pull2(G * K1)], axis=-1)


@_register(sk.ConstantKernel)
def _constant(kernel: sk.ConstantKernel, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (constant,) = _hyperparameters(kernel, theta, "constant_value")
    batch = np.broadcast_shapes(theta.shape[:-1], pairs.x.shape[:-2])
    xp = namespace(constant)
    K = xp.broadcast_to(constant[..., None], (*batch, *pairs.shape[-2:]))

    def pullback(G: Matrices) -> Gradients:
        return _free_gradients(
            kernel, constant_value=constant * xp.sum(G, axis=(-2, -1))[..., None]
        )

    return K, pullback


@_register(sk.RBF)
def _rbf(kernel: sk.RBF, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    return _stationary(kernel, theta, pairs, _squared_exponential)


@_register(sk.Matern)
def _matern(kernel: sk.Matern, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    radial = _MATERN.get(kernel.nu)
    if radial is None:  # other values of nu need scikit-learn's Bessel functions
        return evaluate_kernel.dispatch(sk.Kernel)(kernel, theta, pairs)
    return _stationary(kernel, theta, pairs, radial)


@_register(Spherical)
def _spherical(kernel: Spherical, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    return _stationary(kernel, theta, pairs, _spherical_radial)


@_register(sk.RationalQuadratic)
def _rational_quadratic(
    kernel: sk.RationalQuadratic, theta: Array, pairs: Pairs
) -> tuple[Array, Pullback]:
    alpha, scale = _hyperparameters(kernel, theta, "alpha", "length_scale")
    alpha = alpha[..., None]
    r2 = pairs.squared_distances / (scale**2)[..., None]
    base = 1 + r2 / (2 * alpha)
    K = base**-alpha

    def pullback(G: Matrices) -> Gradients:
        GK = G * K
        of_scale = _inner(GK, r2 / base)
        of_alpha = _inner(GK, alpha * (1 - 1 / base - namespace(base).log(base)))
        return _free_gradients(kernel, alpha=of_alpha[..., None], length_scale=of_scale[..., None])

    return K, pullback


def _squared_exponential(r2: Array) -> tuple[Array, Slope]:
    k = -0.5 * r2
    namespace(k).exp(k, out=k)
    return k, lambda: k


def _matern12(r2: Array) -> tuple[Array, Slope]:
    xp = namespace(r2)
    k = xp.sqrt(r2)
    k *= -1
    xp.exp(k, out=k)

    def slope() -> Array:
        r = xp.sqrt(r2)
        r[r == 0] = 1.0  # −2 dk/dr² is k/r. If r = 0, it is multiplied by 0.
        return k / r

    return k, slope


def _matern32(r2: Array) -> tuple[Array, Slope]:
    s, e = _root_and_exponential(3 * r2)
    s += 1
    s *= e
    return s, lambda: 3 * e


def _matern52(r2: Array) -> tuple[Array, Slope]:
    s, e = _root_and_exponential(5 * r2)
    return (1 + s + s**2 / 3) * e, lambda: (5 / 3) * (1 + s) * e


def _spherical_radial(r2: Array) -> tuple[Array, Slope]:
    xp = namespace(r2)
    r = xp.minimum(xp.sqrt(r2), xp.ones_like(r2))

    def slope() -> Array:
        positive = xp.where(r == 0, xp.ones_like(r), r)  # if r = 0, the slope is multiplied by 0
        return 1.5 * (1 - r**2) / positive

    return 1 - 1.5 * r + 0.5 * r**3, slope


def _root_and_exponential(r2: Array) -> tuple[Array, Array]:
    """Return s = √r² and exp(−s). The array r² is overwritten."""
    xp = namespace(r2)
    s = xp.sqrt(r2, out=r2)
    e = -s
    return s, xp.exp(e, out=e)


_MATERN = {0.5: _matern12, 1.5: _matern32, 2.5: _matern52, np.inf: _squared_exponential}


def _stationary(
    kernel: sk.RBF | Spherical,
    theta: Array,
    pairs: Pairs,
    radial: Callable[[Array], tuple[Array, Slope]],
) -> tuple[Array, Pullback]:
    """Evaluate k(r²), where r² = Σ_p (x_p − z_p)² / ℓ_p²."""
    (scale,) = _hyperparameters(kernel, theta, "length_scale")
    inverse = scale**-2
    if scale.shape[-1] == 1:
        r2 = pairs.squared_distances * inverse[..., None]
    else:
        differences = pairs.squared_differences
        r2 = _weighted_sum(inverse, differences)
    K, slope = radial(r2)

    def pullback(G: Matrices) -> Gradients:
        # ∂k/∂log ℓ_p = −2 dk/dr² · (x_p − z_p)²/ℓ_p².
        if scale.shape[-1] == 1:
            gradient = _inner(G, r2 * slope())[..., None]
        else:
            GS = G * slope()
            flat = differences.reshape(*differences.shape[:-2], -1)
            gradient = (flat @ GS.reshape(*GS.shape[:-2], -1, 1))[..., 0] * inverse
        return _free_gradients(kernel, length_scale=gradient)

    return K, pullback


def _weighted_sum(weights: Float[Array, "*t P"], matrices: Float[Array, "*b P N M"]) -> Array:
    """Return Σ_p weight_p matrix_p, computed as one matrix product."""
    *batch, P, N, M = matrices.shape
    flat = weights[..., None, :] @ matrices.reshape(*batch, P, N * M)
    return flat.reshape(*flat.shape[:-2], N, M)


def _inner(A: Float[Array, "*b N M"], B: Float[Array, "*b N M"]) -> Float[Array, "*b"]:
    """Return Σ_ij A_ij B_ij."""
    xp = namespace(A)
    # torch's xp.vecdot uses products of one-row matrices, which are much slower on a GPU.
    return xp.linalg.vecdot(A.reshape(*A.shape[:-2], -1), B.reshape(*B.shape[:-2], -1))


def _evaluate_both(kernel: sk.KernelOperator, theta: Array, pairs: Pairs) -> tuple:
    first = kernel.k1.n_dims
    return (
        evaluate_kernel(kernel.k1, theta[..., :first], pairs),
        evaluate_kernel(kernel.k2, theta[..., first:], pairs),
    )


def _hyperparameters(kernel: sk.Kernel, theta: Array, *names: str) -> list[Array]:
    """Return the named hyper-parameters, from theta or, if they are fixed, from the kernel.

    These are all hyper-parameters of the kernel, in the order of theta. (The kernel's property
    `hyperparameters`, which lists them, takes longer than evaluating a small matrix.)
    """
    xp = namespace(theta)
    values, start = [], 0
    for name in names:
        value = np.atleast_1d(np.asarray(getattr(kernel, name), dtype=float))
        if _is_fixed(kernel, name):
            value = np.broadcast_to(value, (*theta.shape[:-1], len(value)))
            values.append(to_device_of(value, theta))
        else:
            values.append(xp.exp(theta[..., start : start + len(value)]))
            start += len(value)
    return values


def _free_gradients(kernel: sk.Kernel, **gradients: Array) -> Array:
    """Join the gradients of the hyper-parameters that are not fixed, in the order of theta."""
    kept = [gradient for name, gradient in gradients.items() if not _is_fixed(kernel, name)]
    if len(kept) == 1:
        return kept[0]
    example = next(iter(gradients.values()))
    return namespace(example).concat(kept, axis=-1) if kept else example[..., :0]


def _is_fixed(kernel: sk.Kernel, name: str) -> bool:
    bounds = getattr(kernel, f"{name}_bounds")
    return isinstance(bounds, str) and bounds == "fixed"


def split_noise(kernel: sk.Kernel) -> tuple[sk.Kernel | None, sk.WhiteKernel | None]:
    """Return the kernel without its WhiteKernel terms, and the sum of these terms.

    In scikit-learn, a WhiteKernel models the noise. Here the noise of an output is a separate
    parameter, and the WhiteKernel sets its starting value and bounds.

    >>> split_noise(sk.RBF(2.0) + sk.WhiteKernel(0.1))
    (RBF(length_scale=2), WhiteKernel(noise_level=0.1))
    """
    if isinstance(kernel, sk.WhiteKernel):
        return None, kernel
    if not isinstance(kernel, sk.Sum):
        return kernel, None
    (k1, white1), (k2, white2) = split_noise(kernel.k1), split_noise(kernel.k2)
    if k1 is not None and k2 is not None:
        kept = kernel if white1 is None and white2 is None else k1 + k2
    else:
        kept = k1 if k2 is None else k2
    if white1 is not None and white2 is not None:
        total = sk.WhiteKernel(white1.noise_level + white2.noise_level, white1.noise_level_bounds)
        return kept, total
    return kept, white1 if white2 is None else white2


def distance_scales(kernels: Sequence[sk.Kernel], P: int) -> Float[np.ndarray, " P"]:
    """Return the scale by which each input column is divided when distances are computed.

    It is the geometric mean of the column's length-scales in all kernels with one length-scale for
    each column. If there are no such kernels, all scales are 1.
    """
    logs = [
        np.log(value)
        for kernel in kernels
        for name, value in kernel.get_params().items()
        if name.rsplit("__", 1)[-1] == "length_scale" and np.ndim(value) == 1 and len(value) == P
    ]
    return np.exp(np.mean(logs, axis=0)) if logs else np.ones(P)
