"""The objective of step 1: the exact likelihood of single outputs, and a prior on the noise.

The average information, ½ αᵀ ∂ᵢC C⁻¹ ∂ⱼC α with α = C⁻¹y, approximates the curvature at a starting
point. Given the factorisation of C, it takes only products of matrices and vectors, and it is never
indefinite.
"""

from functools import partial

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import cholesky, diagonal, eigh, namespace, to_device_of, to_numpy
from emgpr.covariance import log_likelihood
from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.noise import WeakPrior, output_variances
from emgpr.observations import Observations
from emgpr.optimize import MIN_CURVATURE, N_PAIRS, LBFGSMemory, Objective

Array = np.ndarray

LOG_2PI = float(np.log(2 * np.pi))
MAX_BATCHED_SITES = 48  # matrices of up to this size are factorised together
DIFFERENCE_STEP = 1e-6  # of log hyper-parameters, in derivatives of K for the information


def negative_log_likelihood(
    table: Observations, kernel: Kernel, outputs: Int[Array, " m"], device: str = "cpu"
) -> Objective:
    """Return the negative log-likelihood (eq. 5) as a function of the parameters.

    Problem i is the fit to output `outputs[i]`. Its parameters are the log hyper-parameters of the
    kernel, followed by the log noise variance. No reading of the table may be missing.
    """
    if device == "cpu" and table.n_sites > MAX_BATCHED_SITES:
        return _one_by_one(table, kernel, outputs)
    n, table = table.n_sites, table.to(device)
    pairs = Pairs(table.x)
    xp = namespace(table.x)

    def objective(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        b, noise = len(params), np.exp(params[:, -1])[:, None, None]
        K, pullback = evaluate_kernel(kernel, to_device_of(params[:, :-1], table.x), pairs)
        rows = to_device_of(outputs[which], table.x)
        batch = Observations(
            xp.broadcast_to(table.x, (b, *table.x.shape)),
            table.y[rows][:, None],
            table.observed[rows][:, None],
        )
        K = xp.broadcast_to(K, (b, n, n))
        W, Sigma = to_device_of(np.ones((b, 1, 1, 1)), K), to_device_of(noise, K)
        fit = log_likelihood(batch, W, Sigma, K[:, None], of_kernels=True)
        assert fit.of_kernels is not None
        of_log_noise = (to_numpy(fit.of_noise) * noise)[:, 0, 0]
        gradient = np.column_stack([to_numpy(pullback(fit.of_kernels[:, 0])), of_log_noise])
        return -to_numpy(fit.value), -gradient

    return objective


def _one_by_one(table: Observations, kernel: Kernel, outputs: Int[Array, " m"]) -> Objective:
    """Return the objective on the CPU, where large matrices are factorised one after another."""
    n, pairs = table.n_sites, Pairs(table.x)
    # K is symmetric, so that the lower triangle of G is enough for Σ_ij G_ij ∂K_ij.
    weights = 2 * np.tri(n) - np.eye(n)

    def evaluate(params: Float[Array, " p"], d: int) -> tuple[float, Float[Array, " p"]]:
        noise, y = float(np.exp(params[-1])), table.y[d][:, None]
        K, pullback = evaluate_kernel(kernel, params[:-1], pairs)
        factor = cholesky(partial(_covariance, K, noise))
        if np.isnan(factor.jitter):
            return np.inf, np.zeros(len(params))
        alpha = factor.solve(y)
        value = 0.5 * (float((y * alpha).sum()) + float(factor.logdet()) + n * LOG_2PI)
        G = factor.inverse_less_square(alpha)
        of_log_noise = noise * float(np.trace(G))
        G *= weights
        return value, 0.5 * np.append(pullback(G), of_log_noise)

    def objective(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        values, gradients = zip(*map(evaluate, params, outputs[which].tolist()), strict=True)
        return np.array(values), np.array(gradients)

    return objective


def _covariance(K: Float[Array, "n n"], noise: float) -> Float[Array, "n n"]:
    C = np.array(K)
    diagonal(C)[...] += noise
    return C


def average_information(
    table: Observations,
    kernel: Kernel,
    params: Float[Array, "m p"],
    outputs: Int[Array, " m"],
    weak_prior: bool = False,
) -> Float[Array, "m p p"]:
    """Return the average information of each parameter vector; zero if C has no factor.

    With `weak_prior`, the curvature of the weak prior on the noise is added where it is positive.
    """
    p, pairs = params.shape[1], Pairs(table.x)
    information = np.zeros((len(params), p, p))
    for found, vector, y in zip(information, params, table.y[outputs], strict=True):
        theta, noise = vector[:-1], float(np.exp(vector[-1]))
        K = evaluate_kernel(kernel, theta, pairs)[0]
        factor = cholesky(partial(_covariance, K, noise))
        if np.isnan(factor.jitter):
            continue
        alpha = factor.solve(y[:, None])[:, 0]
        products = np.empty((len(y), p))  # ∂ᵢC α
        for i, step in enumerate(DIFFERENCE_STEP * np.eye(p - 1)):
            change = evaluate_kernel(kernel, theta + step, pairs)[0] - K
            products[:, i] = change @ alpha / DIFFERENCE_STEP
        products[:, -1] = noise * alpha
        half = factor.half_solve(products)
        found[...] = 0.5 * half.T @ half
    if weak_prior:
        prior = WeakPrior(output_variances(table)[outputs][:, None])
        curvature = prior.log_curvature(np.exp(params[:, -1:]))
        information[:, -1, -1] += np.maximum(curvature, 0.0)
    return information


def as_memory(information: Float[Array, "m p p"]) -> LBFGSMemory:
    """Return pairs of steps with which L-BFGS computes Newton steps: eigenvectors v, changes Hv.

    If there are more parameters than pairs, the largest eigenvalues are used.
    """
    m, p = information.shape[:2]
    n_pairs = min(p, N_PAIRS)
    values, vectors = eigh(information)
    values = np.maximum(values, MIN_CURVATURE * values.max(axis=1, keepdims=True, initial=0.0))
    steps, changes = np.zeros((2, m, N_PAIRS, p))
    steps[:, N_PAIRS - n_pairs :] = np.swapaxes(vectors[:, :, p - n_pairs :], 1, 2)
    changes[:, N_PAIRS - n_pairs :] = values[:, p - n_pairs :, None] * steps[:, N_PAIRS - n_pairs :]
    return LBFGSMemory(steps, changes, np.where(values.any(axis=1), n_pairs, 0))


def with_noise_prior(objective: Objective, variances: Float[Array, " m"], weak: bool) -> Objective:
    """If `weak`, subtract the log density of the weak prior on the noise from an objective.

    `variances` holds the variance of the output in each problem. The last parameter of the
    objective must be the log noise variance.
    """
    if not weak:
        return objective

    def posterior(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        value, gradient = objective(params, which)
        noise = np.exp(params[:, -1])[:, None, None]
        log_prior, of_noise = WeakPrior(variances[which][:, None])(noise)
        of_log_noise = gradient[:, -1] - (of_noise * noise)[:, 0, 0]
        return value - log_prior, np.column_stack([gradient[:, :-1], of_log_noise])

    return posterior
