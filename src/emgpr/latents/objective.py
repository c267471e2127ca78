"""The objective of step 1: the exact likelihood of single outputs, and a prior on the noise."""

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import namespace, to_device_of, to_numpy
from emgpr.covariance import log_likelihood
from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.noise import WeakPrior
from emgpr.observations import Observations
from emgpr.optimize import Objective

Array = np.ndarray


def negative_log_likelihood(
    table: Observations, kernel: Kernel, outputs: Int[Array, " m"], device: str = "cpu"
) -> Objective:
    """Return the negative log-likelihood (eq. 5) as a function of the parameters.

    Problem i is the fit to output `outputs[i]`. Its parameters are the log hyper-parameters of the
    kernel, followed by the log noise variance. No reading of the table may be missing.
    """
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
