"""Mixtures of the candidates' predictive distributions."""

import numpy as np
from jaxtyping import Float

from emgpr.parallel import Execution
from emgpr.prediction import GaussianMixture, LMCPosterior, stack_components
from emgpr.stacking.weights import CANDIDATES

Array = np.ndarray


def mixture(
    parts: list[GaussianMixture | None],
    weights: Float[Array, "3 M D"],
    factors: Float[Array, "3 M D"],
) -> GaussianMixture:
    """Return the mixture of the candidates, without those whose weights are all zero."""
    used = [c for c, part in enumerate(parts) if part is not None and weights[c].any()]
    roots = np.sqrt(factors)
    inflated = []
    for c in used:
        part, root = parts[c], roots[c]
        assert part is not None
        mean, cov = part.moments()
        inflated.append(GaussianMixture(mean[None], (cov * root[:, :, None] * root[:, None])[None]))
    return stack_components(inflated, weights[used], tuple(CANDIDATES[c] for c in used))


def inflated_draws(
    posterior: LMCPosterior,
    x: Float[Array, "M P"],
    sample: Float[Array, "M D"] | None,
    n: int,
    rng: np.random.Generator,
    include_noise: bool,
    execution: Execution,
    scale: Float[Array, "M D"],
) -> Float[Array, "n M D"]:
    """Draw joint samples whose deviations from the mean are multiplied by a scale."""
    drawn = posterior.sample_given(x, sample, n, rng, include_noise, execution)
    if (scale == 1.0).all():
        return drawn
    centre = posterior.predict_given(x, sample, include_noise, False, execution).mean.mean(axis=0)
    return centre + scale * (drawn - centre)


def diagonal(mean: Float[Array, "M D"], variance: Float[Array, "M D"]) -> GaussianMixture:
    """Return Gaussian distributions of independent outputs."""
    cov = np.zeros((*variance.shape, variance.shape[-1]))
    np.einsum("mdd->md", cov)[...] = variance
    return GaussianMixture(mean[None], cov[None])
