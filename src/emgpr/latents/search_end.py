"""How a search of step 1 ended: whether it converged, at a bound, or on white noise."""

import numpy as np
from jaxtyping import Float

from emgpr.latents.search_space import SearchSpace
from emgpr.noise import Prior
from emgpr.optimize import OptimizeResult

Array = np.ndarray


def white_noise_log_likelihood(
    y: Float[Array, " n"], search: SearchSpace, prior: Prior | None = None
) -> float:
    """Return the log-likelihood of readings under white noise, or −inf if all readings are zero."""
    if not np.any(y):
        return -np.inf
    noise = float(np.clip(np.mean(y**2), *search.noise_bounds))
    likelihood = -0.5 * (np.sum(y**2) / noise + len(y) * np.log(2 * np.pi * noise))
    log_prior = 0.0 if prior is None else float(prior(np.array([[noise]]))[0])
    return float(likelihood) + log_prior


_MEANING_OF_BOUND = {
    ("length_scale", "lower"): ": {} appears to be uncorrelated between sites",
    ("length_scale", "upper"): ": {} hardly varies over the region, or follows a trend",
    ("noise", "lower"): ": the readings appear to be free of noise",
    ("noise", "upper"): ": the readings appear to be pure noise",
}


def describe_bound(
    name: str, kind: str, x: float, bounds: Float[Array, " 2"], subject: str = "the output"
) -> str:
    """Describe at which bound the log parameter x ended, and what this means.

    `kind` is "length_scale", "noise" or another parameter; `subject` has this length-scale.

    >>> describe_bound("noise", "noise", np.log(0.1), np.log([0.1, 20.0]))
    'noise ended at its lower bound (0.1, 20): the readings appear to be free of noise'
    """
    low, high = np.exp(bounds)
    side = "lower" if x < bounds.mean() else "upper"
    meaning = _MEANING_OF_BOUND.get((kind, side), "").format(subject)
    return f"{name} ended at its {side} bound ({low:.3g}, {high:.3g}){meaning}"


def describe_end(
    end: OptimizeResult,
    search: SearchSpace,
    limit: int,
    *,
    only_noise: bool,
    setting: str = "max_iter",
) -> str:
    """Describe why a search did not converge or which bounds it reached ("" if neither).

    `only_noise` is True if white noise is more likely than the fitted process; `setting` is the
    name of the parameter that limits the search.
    """
    if not np.isfinite(end.value[0]):
        return "the likelihood could not be evaluated at any starting point"
    parts = []
    if end.nonfinite[0]:
        parts.append(
            "the likelihood could not be evaluated near one point; the search continued from the "
            "best point found"
        )
    elif not end.converged[0]:
        parts.append(f"it did not converge within {setting}={limit}; increase {setting}")
    fixed = search.bounds[:, 0] == search.bounds[:, 1]
    for i in np.flatnonzero(end.at_bound[0] & ~fixed):
        name, x, bounds = search.names[i], float(end.x[0, i]), search.bounds[i]
        if name.endswith("]") and x >= bounds.mean():
            continue  # one of several length-scales: the output does not depend on its column
        kind = name.rsplit("__", 1)[-1].partition("[")[0]
        parts.append(describe_bound(name, kind, x, bounds))
    if only_noise and end.converged[0] and end.x.shape[1] > 1:
        parts.append("no signal was found: white noise is more likely")
    return "; ".join(parts)
