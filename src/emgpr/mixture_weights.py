"""Weights of a mixture of predictive distributions, chosen by the logarithmic score (stacking).

With p_ic the density of left-out reading i under candidate c, the weights w maximise the mean
logarithmic score Σ_i log Σ_c w_c p_ic of the mixture. Candidates that predict well, and candidates
that predict well where others do not, obtain large weights. A Dirichlet prior is worth a few
readings of each candidate. Left-out readings that are close to each other are not independent, so
that they count as fewer readings than there are.
"""

import numpy as np
from jaxtyping import Float

Array = np.ndarray

MAX_ITERATIONS, TOLERANCE = 300, 1e-5  # of the EM algorithm; largest change of a weight at the end


def stacking_weights(
    log_density: Float[Array, "n C"], prior: Float[Array, " C"], n_readings: float
) -> Float[Array, " C"]:
    """Return the weights of candidates, given their log densities of n left-out readings.

    `prior` is the number of readings that the prior is worth for each candidate, and `n_readings`
    the number of independent readings that the n readings count as. The weights are found by the EM
    algorithm.

    >>> good, bad = np.log(0.5), np.log(0.01)
    >>> stacking_weights(np.full((20, 2), [good, bad]), np.full(2, 0.5), 20.0).round(2)
    array([0.98, 0.02])
    >>> alternating = np.tile([[good, bad], [bad, good]], (9, 1))
    >>> stacking_weights(alternating, np.full(2, 0.5), 18.0).round(2)
    array([0.5, 0.5])
    """
    n = len(log_density)
    if n == 0:
        return np.asarray(prior / prior.sum())
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    weights, share = prior / prior.sum(), min(n_readings, n) / n
    for _ in range(MAX_ITERATIONS):
        # Candidate c has the probability p_ic w_c / Σ_c p_ic w_c of predicting reading i.
        responsibility = weights * ((1.0 / (density @ weights)) @ density)  # summed over readings
        new = share * responsibility + prior
        new /= new.sum()
        change, weights = np.abs(new - weights).max(), new
        if change < TOLERANCE:
            break
    return weights


def mixture_moments(
    weights: Float[Array, "C *m"], mean: Float[Array, "C m"], variance: Float[Array, "C m"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Return mean and variance of a mixture, with weights for all locations or for each.

    >>> mixture_moments(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1)))
    (array([0.]), array([2.]))
    """
    weights = weights.reshape(len(weights), -1)
    centre = (weights * mean).sum(axis=0)
    return centre, (weights * (variance + (mean - centre) ** 2)).sum(axis=0)


def gaussian_log_density(
    y: Float[Array, " n"], mean: Float[Array, "*c n"], variance: Float[Array, "*c n"]
) -> Float[Array, "*c n"]:
    """Return the log density of readings under Gaussian distributions."""
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2 * np.pi * variance))
