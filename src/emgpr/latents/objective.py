"""What step 1 climbs: the likelihood of tasks alone, and the prior, many problems at a time."""

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import fetch, like, namespace
from emgpr.covariance import log_likelihood
from emgpr.kernels import Pairs, evaluate
from emgpr.latents.prior import noise_prior, variances
from emgpr.observations import Observations
from emgpr.optimize import Objective

Array = np.ndarray


def loss_of(
    table: Observations,
    kernel: Kernel,
    whose: Int[Array, " m"],
    *,
    weak_prior: bool = False,
    device: str = "cpu",
) -> Objective:
    """Negative log-likelihood and prior, of task `whose[i]` for problem i, at rows of
    (log hyper-parameters, log noise). All tasks were measured at all sites of the table.
    """
    n, power = table.n_sites, variances(table)[:, None]
    table = table.on(device)
    pairs = Pairs(table.x)
    xp = namespace(table.x)

    def loss(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        b, noise = len(params), np.exp(params[:, -1])[:, None, None]
        K, pullback = evaluate(kernel, like(params[:, :-1], table.x), pairs)
        tasks = like(whose[which], table.x)
        batch = Observations(
            xp.broadcast_to(table.x, (b, *table.x.shape)),
            table.y[tasks][:, None],
            table.seen[tasks][:, None],
        )
        K = xp.broadcast_to(K, (b, n, n))
        W, Sigma = like(np.ones((b, 1, 1, 1)), K), like(noise, K)
        fit = log_likelihood(batch, W, Sigma, K[:, None], of_kernels=True)
        assert fit.of_kernels is not None
        believed, slope = noise_prior(power[whose[which]], weak_prior)(noise)
        of_log_noise = ((fetch(fit.of_noise) + slope) * noise)[:, 0, 0]
        gradient = np.column_stack([fetch(pullback(fit.of_kernels[:, 0])), of_log_noise])
        return -(fetch(fit.value) + believed), -gradient

    return loss
