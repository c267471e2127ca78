"""Joint maximum likelihood of kernels, noise and weights, from where the two steps ended.

Kernels and noise are shared by all members and maximise the sum of the
likelihoods of their batches; each member keeps weights of its own. With one
part it is the maximum likelihood of the whole table.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from emgpr.covariance import log_likelihood
from emgpr.execution import chunks
from emgpr.kernels import Pairs, evaluate
from emgpr.latents import search_space
from emgpr.observations import Observations
from emgpr.optimize import minimize
from emgpr.weights.fit import FittedWeights
from emgpr.weights.start import Mixture

Array = np.ndarray


def refine_jointly(
    seen: Observations,
    parts: Sequence[Int[Array, " _"]],
    start: Mixture,
    fitted: FittedWeights,
    *,
    max_iter: int,
    names: Sequence[str] | None = None,
) -> tuple[Mixture, FittedWeights, str]:
    """Everything at once; the result, and what went wrong on the way (empty if nothing)."""
    W_shape = fitted.W.shape
    D = W_shape[2]
    n = D * max(map(len, parts))
    runs = chunks(len(parts), 32.0 * n * n, 1)
    tables = [seen.batches([parts[i] for i in run]) for run in runs]
    if len(parts) == 1:  # no batch axis: a complete table with one latent has a fast form
        tables = [seen.at(parts[0])]
    pairs = [Pairs(table.x) for table in tables]
    sizes = [kernel.n_dims for kernel in start.kernels]
    splits = np.cumsum(sizes)
    searches = [
        search_space(kernel, None, seen.x, 1, np.random.default_rng(0)) for kernel in start.kernels
    ]

    def split(flat: Float[Array, " p"]) -> tuple[list[Array], Array, Array]:
        *thetas, rest = np.split(flat, splits)
        return thetas, np.exp(rest[:D]), rest[D:].reshape(W_shape)

    def terms(flat: Float[Array, " p"]) -> tuple[Array, Array]:
        thetas, noise, W = split(flat)
        values, of_W = [], []
        of_noise = np.zeros(D)
        of_theta = [np.zeros(size) for size in sizes]
        for run, table, pair in zip(runs, tables, pairs, strict=True):
            built = [
                evaluate(kernel, theta, pair)
                for kernel, theta in zip(start.kernels, thetas, strict=True)
            ]
            K = np.stack([K for K, _ in built], axis=-3)
            weights = W[list(run)] if table.x.ndim == 3 else W[0]
            fit = log_likelihood(table, weights, noise, K, of_kernels=True)
            assert fit.of_kernels is not None
            values.append(np.atleast_1d(fit.value))
            of_W.append(start.learned(fit.of_weights).reshape(-1))
            of_noise += fit.of_noise.reshape(-1, D).sum(0) * noise
            for q, (_, pullback) in enumerate(built):
                gradient = pullback(fit.of_kernels[..., q, :, :])
                of_theta[q] += gradient.sum(axis=tuple(range(gradient.ndim - 1)))
        return np.concatenate(values), np.concatenate([*of_theta, of_noise, *of_W])

    def loss(flat: Float[Array, "1 p"], _: Array) -> tuple[Array, Array]:
        values, gradient = terms(flat[0])
        return -values.sum(keepdims=True), -gradient[None]

    x0 = np.concatenate(
        [*(kernel.theta for kernel in start.kernels), np.log(start.noise), fitted.W.ravel()]
    )
    bounds = np.concatenate(
        [
            *(search.bounds[:-1] for search in searches),
            np.log(start.noise_bounds),
            np.tile([-np.inf, np.inf], (fitted.W.size, 1)),
        ]
    )
    # A start beyond its bounds (a borrowed regressor's alpha) is not paid for with likelihood.
    fixed = bounds[:, 0] == bounds[:, 1]
    bounds = np.column_stack([np.minimum(bounds[:, 0], x0), np.maximum(bounds[:, 1], x0)])
    end = minimize(loss, x0[None], bounds=bounds, max_iter=max_iter)
    thetas, noise, W = split(end.x[0])
    kernels = (k.clone_with_theta(theta) for k, theta in zip(start.kernels, thetas, strict=True))
    mixture = replace(start, kernels=tuple(kernels), noise=noise)
    values, _ = terms(end.x[0])
    trouble = (
        "" if end.converged[0] else f"it did not converge within max_iter={max_iter}; try more"
    )
    bounded = [
        f"latent {q}'s {s.names[i]}" for q, s in enumerate(searches) for i in range(sizes[q])
    ]
    bounded += [f"the noise of output {name!r}" for name in names or range(D)]
    ended = [name for name, hit in zip(bounded, end.at_bound[0] & ~fixed, strict=False) if hit]
    if ended:
        trouble = "; ".join(filter(None, [trouble, f"at a bound: {', '.join(ended)}"]))
    converged = np.full(len(parts), end.converged[0])
    n_iter = np.full(len(parts), end.n_iter[0])
    return mixture, FittedWeights(W, values, converged, n_iter), trouble
