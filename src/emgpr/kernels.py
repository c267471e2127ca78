"""scikit-learn's kernels, asked one more question: your matrix, for a batch, and its pullback.

`evaluate(kernel, theta, pairs)` gives K and a function that takes any G of K's
shape to Σ_ij G_ij ∂K_ij/∂θ: the gradient of whatever was computed from K,
without ever forming ∂K/∂θ. Batches are leading axes: of theta (many settings
of one kernel), of the sites (many tables), or both, broadcast.

It is a `singledispatch`: register a kernel of your own to make it fast. A
kernel nobody registered is asked through its own `__call__`, one matrix at a
time and on the CPU: any scikit-learn kernel works, only slower.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process import kernels as sk

from emgpr.arrays import Array, fetch, like, namespace

Matrices = Float[Array, "*b N M"]  # named: building a type takes longer than a small matrix,
Slopes = Float[Array, "*b p"]  # and a function inside another has its types built at every call
Pullback = Callable[[Matrices], Slopes]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pairs:
    """All pairs of sites of x and z (of x with itself when z is None), and how far apart."""

    x: Float[Array, "*b N P"]
    z: Float[Array, "*b M P"] | None = None

    @cached_property
    def by_column(self) -> Float[Array, "*b P N M"]:
        """Squared differences in each input column."""
        xp = namespace(self.x)
        x = xp.matrix_transpose(self.x)
        z = x if self.z is None else xp.matrix_transpose(self.z)
        return (x[..., :, None] - z[..., None, :]) ** 2

    @cached_property
    def squares(self) -> Float[Array, "*b N M"]:
        """Squared distances; from differences, so large coordinates lose nothing."""
        z = self.x if self.z is None else self.z
        total = (self.x[..., :, None, 0] - z[..., None, :, 0]) ** 2
        for p in range(1, self.x.shape[-1]):
            total += (self.x[..., :, None, p] - z[..., None, :, p]) ** 2
        return total

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a matrix over these pairs: *b N M."""
        return (*self.x.shape[:-1], (self.x if self.z is None else self.z).shape[-2])


def matrix(
    kernel: sk.Kernel, x: Float[Array, "*b N P"], z: Float[Array, "*b M P"] | None = None
) -> Float[Array, "*b N M"]:
    """k(x, z) with the kernel's own hyper-parameters.

    >>> matrix(sk.RBF(2.0), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    return evaluate(kernel, like(kernel.theta, x), Pairs(x, z))[0]


def matrices(
    kernels: Sequence[sk.Kernel],
    x: Float[Array, "*b N P"],
    z: Float[Array, "*b M P"] | None = None,
) -> Float[Array, "*b Q N M"]:
    """k_q(x, z) of every kernel, of which there may be none."""
    pairs = Pairs(x, z)
    if not kernels:
        *batch, N, M = pairs.shape
        return like(np.empty((*batch, 0, N, M)), x)
    each = [evaluate(kernel, like(kernel.theta, x), pairs)[0] for kernel in kernels]
    return namespace(x).stack(each, axis=-3)


@singledispatch
def evaluate(
    kernel: sk.Kernel, theta: Float[Array, "*t p"], pairs: Pairs
) -> tuple[Float[Array, "*b N M"], Pullback]:
    """k(x, z) for every theta (log hyper-parameters), and its pullback."""
    there = pairs.x
    if not isinstance(there, np.ndarray):
        logger.debug("%s is evaluated by scikit-learn, and its matrix moved to the device", kernel)
    batch = np.broadcast_shapes(theta.shape[:-1], there.shape[:-2])
    thetas = np.broadcast_to(fetch(theta), (*batch, theta.shape[-1]))
    x = np.broadcast_to(fetch(there), (*batch, *there.shape[-2:]))
    z = None
    if pairs.z is not None:
        z = np.broadcast_to(fetch(pairs.z), (*batch, *pairs.z.shape[-2:]))
    settings = {index: kernel.clone_with_theta(thetas[index]) for index in np.ndindex(*batch)}
    K = np.empty((*batch, *pairs.shape[-2:]))
    for index, setting in settings.items():
        K[index] = setting(x[index]) if z is None else setting(x[index], z[index])

    def pullback(G: Matrices) -> Slopes:
        own, n = fetch(G), x.shape[-2]
        gradient = np.empty((*batch, theta.shape[-1]))
        for index, setting in settings.items():
            # scikit-learn has gradients for sites with themselves: of others, those of all.
            sites = x[index] if z is None else np.concatenate([x[index], z[index]])
            _, dK = setting(sites, eval_gradient=True)
            dK = dK if z is None else dK[:n, n:]
            gradient[index] = np.tensordot(own[index], dK, axes=2)
        return like(gradient, there)

    return like(K, there), pullback


Answer = Callable[[Any, Array, Pairs], tuple[Array, Pullback]]


def _knows(cls: type[sk.Kernel]) -> Callable[[Answer], Answer]:
    """Register an answer for a class, but not for subclasses with a `__call__` of their own."""

    def register(answer: Answer) -> Answer:
        @evaluate.register(cls)
        def guarded(kernel: sk.Kernel, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
            same = type(kernel).__call__ is cls.__call__
            return (answer if same else evaluate.dispatch(sk.Kernel))(kernel, theta, pairs)

        return answer

    return register


@_knows(sk.Sum)
def _sum(kernel: sk.Sum, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (K1, pull1), (K2, pull2) = _both(kernel, theta, pairs)
    return K1 + K2, lambda G: namespace(G).concat([pull1(G), pull2(G)], axis=-1)


@_knows(sk.Product)
def _product(kernel: sk.Product, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (K1, pull1), (K2, pull2) = _both(kernel, theta, pairs)
    return K1 * K2, lambda G: namespace(G).concat([pull1(G * K2), pull2(G * K1)], axis=-1)


@_knows(sk.ConstantKernel)
def _constant(kernel: sk.ConstantKernel, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    (constant,) = _settings(kernel, theta, "constant_value")
    batch = np.broadcast_shapes(theta.shape[:-1], pairs.x.shape[:-2])
    xp = namespace(constant)
    K = xp.broadcast_to(constant[..., None], (*batch, *pairs.shape[-2:]))

    def pullback(G: Matrices) -> Slopes:
        return _free(kernel, constant_value=constant * xp.sum(G, axis=(-2, -1))[..., None])

    return K, pullback


@_knows(sk.RBF)
def _rbf(kernel: sk.RBF, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    return _stationary(kernel, theta, pairs, _squared_exponential)


@_knows(sk.Matern)
def _matern(kernel: sk.Matern, theta: Array, pairs: Pairs) -> tuple[Array, Pullback]:
    shape = _MATERN.get(kernel.nu)
    if shape is None:  # another smoothness: Bessel functions, left to scikit-learn
        return evaluate.dispatch(sk.Kernel)(kernel, theta, pairs)
    return _stationary(kernel, theta, pairs, shape)


@_knows(sk.RationalQuadratic)
def _rational_quadratic(
    kernel: sk.RationalQuadratic, theta: Array, pairs: Pairs
) -> tuple[Array, Pullback]:
    alpha, scale = _settings(kernel, theta, "alpha", "length_scale")
    alpha = alpha[..., None]
    r2 = pairs.squares / (scale**2)[..., None]
    base = 1 + r2 / (2 * alpha)
    K = base**-alpha

    def pullback(G: Matrices) -> Slopes:
        GK = G * K
        of_scale = _inner(GK, r2 / base)
        of_alpha = _inner(GK, alpha * (1 - 1 / base - namespace(base).log(base)))
        return _free(kernel, alpha=of_alpha[..., None], length_scale=of_scale[..., None])

    return K, pullback


def _squared_exponential(r2: Array) -> tuple[Array, Array]:
    k = -0.5 * r2
    namespace(k).exp(k, out=k)
    return k, k


def _matern12(r2: Array) -> tuple[Array, Array]:
    xp = namespace(r2)
    r = xp.sqrt(r2)
    k = xp.exp(-r)
    # −2 dk/dr² is k/r; where r = 0 it meets a zero difference, and the product is zero.
    r[r == 0] = 1.0
    return k, k / r


def _matern32(r2: Array) -> tuple[Array, Array]:
    s, e = _root_and_decay(3 * r2)
    s += 1
    s *= e
    e *= 3
    return s, e


def _matern52(r2: Array) -> tuple[Array, Array]:
    s, e = _root_and_decay(5 * r2)
    slope = (5 / 3) * (1 + s) * e
    return (1 + s + s**2 / 3) * e, slope


def _root_and_decay(r2: Array) -> tuple[Array, Array]:
    """s = √r², in its place, and exp(−s)."""
    xp = namespace(r2)
    s = xp.sqrt(r2, out=r2)
    e = -s
    return s, xp.exp(e, out=e)


_MATERN = {0.5: _matern12, 1.5: _matern32, 2.5: _matern52, np.inf: _squared_exponential}


def _stationary(
    kernel: sk.RBF,
    theta: Array,
    pairs: Pairs,
    shape: Callable[[Array], tuple[Array, Array]],
) -> tuple[Array, Pullback]:
    """A function of r² = Σ_p (x_p − z_p)² / ℓ_p²; `shape` gives k and −2 dk/dr²."""
    (scale,) = _settings(kernel, theta, "length_scale")
    inverse = scale**-2
    if scale.shape[-1] == 1:
        r2 = pairs.squares * inverse[..., None]
    else:
        columns = pairs.by_column
        r2 = _contract(inverse, columns)
    K, slope = shape(r2)
    if scale.shape[-1] == 1:
        r2 *= slope

    def pullback(G: Matrices) -> Slopes:
        # ∂k/∂log ℓ_p = −2 dk/dr² · (x_p − z_p)²/ℓ_p²
        if scale.shape[-1] == 1:
            gradient = _inner(G, r2)[..., None]
        else:
            GS = G * slope
            flat = columns.reshape(*columns.shape[:-2], -1)
            gradient = (flat @ GS.reshape(*GS.shape[:-2], -1, 1))[..., 0] * inverse
        return _free(kernel, length_scale=gradient)

    return K, pullback


def _contract(weight: Float[Array, "*t P"], columns: Float[Array, "*b P N M"]) -> Array:
    """Σ_p weight_p columns_p as one matrix product."""
    *batch, P, N, M = columns.shape
    flat = weight[..., None, :] @ columns.reshape(*batch, P, N * M)
    return flat.reshape(*flat.shape[:-2], N, M)


def _inner(A: Float[Array, "*b N M"], B: Float[Array, "*b N M"]) -> Float[Array, "*b"]:
    """Σ_ij A_ij B_ij."""
    xp = namespace(A)
    # Of torch, xp.vecdot is a product of matrices with one row: many times as slow on a GPU.
    return xp.linalg.vecdot(A.reshape(*A.shape[:-2], -1), B.reshape(*B.shape[:-2], -1))


def _both(kernel: sk.KernelOperator, theta: Array, pairs: Pairs) -> tuple:
    first = kernel.k1.n_dims
    return (
        evaluate(kernel.k1, theta[..., :first], pairs),
        evaluate(kernel.k2, theta[..., first:], pairs),
    )


def _settings(kernel: sk.Kernel, theta: Array, *names: str) -> list[Array]:
    """Values of the named hyper-parameters: from theta, or from the kernel where fixed."""
    xp = namespace(theta)
    values, at = {}, 0
    for parameter in kernel.hyperparameters:
        if parameter.fixed:
            own = np.atleast_1d(np.asarray(getattr(kernel, parameter.name), dtype=float))
            own = np.broadcast_to(own, (*theta.shape[:-1], len(own)))
            values[parameter.name] = like(own, theta)
        else:
            values[parameter.name] = xp.exp(theta[..., at : at + parameter.n_elements])
            at += parameter.n_elements
    return [values[name] for name in names]


def _free(kernel: sk.Kernel, **gradients: Array) -> Array:
    """The gradients of the hyper-parameters that are not fixed, in theta's order."""
    kept = [gradients[p.name] for p in kernel.hyperparameters if not p.fixed]
    any_one = next(iter(gradients.values()))
    return namespace(any_one).concat(kept, axis=-1) if kept else any_one[..., :0]


def without_noise(kernel: sk.Kernel) -> tuple[sk.Kernel | None, sk.WhiteKernel | None]:
    """The kernel without its WhiteKernel terms, and those terms as one.

    scikit-learn's users add a WhiteKernel for the noise; here the noise of a
    task is its own parameter, so the white term gives that its start and bounds.

    >>> without_noise(sk.RBF(2.0) + sk.WhiteKernel(0.1))
    (RBF(length_scale=2), WhiteKernel(noise_level=0.1))
    """
    if isinstance(kernel, sk.WhiteKernel):
        return None, kernel
    if not isinstance(kernel, sk.Sum):
        return kernel, None
    (k1, white1), (k2, white2) = without_noise(kernel.k1), without_noise(kernel.k2)
    if k1 is not None and k2 is not None:
        kept = kernel if white1 is None and white2 is None else k1 + k2
    else:
        kept = k1 if k2 is None else k2
    if white1 is not None and white2 is not None:
        total = sk.WhiteKernel(white1.noise_level + white2.noise_level, white1.noise_level_bounds)
        return kept, total
    return kept, white1 if white2 is None else white2
