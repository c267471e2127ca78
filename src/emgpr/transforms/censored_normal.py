"""A normal distribution fitted to readings, some of which are only known to lie beyond a limit.

This is a Tobit model. For example, if rain is modelled as max(0, u) with a normal variable u, a
reading of zero says only that u ≤ 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import log_ndtr

Array = np.ndarray

MAX_LOG_STD = 5.0  # of the distribution relative to that of the readings


@dataclass(frozen=True)
class Censoring:
    """Numbers of readings at or below `lower`, and at or above `upper`."""

    n_below: int = 0
    lower: float = -np.inf
    n_above: int = 0
    upper: float = np.inf

    def log_likelihood(self, u: Float[Array, " n"], mean: float, std: float) -> float:
        """Return the log-likelihood of the values u between the limits and of the others.

        >>> half = Censoring(n_below=1, lower=0.0)
        >>> round(float(np.exp(half.log_likelihood(np.array([]), 0.0, 1.0))), 9)
        0.5
        """
        inside = -0.5 * np.sum(((u - mean) / std) ** 2) - len(u) * np.log(std * np.sqrt(2 * np.pi))
        below = self.n_below * log_ndtr((self.lower - mean) / std) if self.n_below else 0.0
        above = self.n_above * log_ndtr((mean - self.upper) / std) if self.n_above else 0.0
        return float(inside + below + above)

    def transformed(self, increasing: Callable[[Array], Array]) -> "Censoring":
        """Return the same censoring after an increasing transform."""
        lower, upper = increasing(np.array([self.lower, self.upper])).tolist()
        return replace(self, lower=lower, upper=upper)

    def fit(self, u: Float[Array, " n"]) -> tuple[float, float]:
        """Return the mean and the standard deviation of highest likelihood.

        >>> z = np.random.default_rng(0).normal(size=4000)
        >>> mean, std = Censoring(int((z < 0.3).sum()), 0.3).fit(z[z >= 0.3])
        >>> round(mean, 1) + 0.0, round(std, 1)
        (0.0, 1.0)
        """
        ends = [self.lower] * self.n_below + [self.upper] * self.n_above
        values = np.concatenate([u, ends])
        centre, scale = float(values.mean()), float(values.std()) or 1.0
        if not ends:
            return centre, scale
        standard = self.transformed(lambda limits: (limits - centre) / scale)

        def loss(parameters: Float[Array, " 2"]) -> float:
            mean, std = _mean_and_std(parameters)
            return -standard.log_likelihood((u - centre) / scale, mean, std)

        mean, std = _mean_and_std(minimize(loss, np.zeros(2), method="L-BFGS-B").x)
        return centre + scale * mean, scale * std

    def max_log_likelihood(self, u: Float[Array, " n"]) -> float:
        """Return the log-likelihood at the mean and standard deviation that maximise it."""
        return self.log_likelihood(u, *self.fit(u))


def _mean_and_std(parameters: Float[Array, " 2"]) -> tuple[float, float]:
    """Return the mean and the standard deviation in a vector, whose bounds prevent overflow."""
    return float(parameters[0]), float(np.exp(np.clip(parameters[1], -MAX_LOG_STD, MAX_LOG_STD)))


NOT_CENSORED = Censoring()


def mean_below(limit: float, mean: float, std: float) -> float:
    """Return E[u | u ≤ limit] for u ~ N(mean, std²).

    >>> round(mean_below(0.0, 0.0, 1.0), 4)
    -0.7979
    """
    t = (limit - mean) / std
    return float(mean - std * np.exp(-0.5 * (t**2 + np.log(2 * np.pi)) - log_ndtr(t)))
