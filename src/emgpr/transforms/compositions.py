"""Outputs that are the parts of a whole, such as sand, silt and clay.

The logarithms u of the parts are modelled jointly. In original units, the parts are

    y_i = total · exp(u_i) / Σ_j exp(u_j)

so that they are positive and sum to the total for any u. Means and covariances are averages over
quasi-random draws of u, the same for all parts; the means therefore sum to the total, too. The
distribution of log(y_i/(total − y_i)) is a smoothed distribution of its draws: a mixture of
Gaussians around them, which has the mean and the variance of the draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit, logsumexp, ndtri, softmax
from scipy.stats.qmc import Sobol

from emgpr.arrays import eigh
from emgpr.row_numbers import rows_from_zero
from emgpr.transforms.base import Transform
from emgpr.transforms.mixture_marginals import MIN_STD

Array = np.ndarray

BANDWIDTH = 0.9  # of a kernel density estimate from n values: 0.9 n^(-1/5) standard deviations
N_DRAWS = 512
MAX_DEVIATION = 0.02  # of the sum of the parts at a site from the total, relative to the total
USUAL_TOTALS = (1.0, 100.0, 1000.0, 1e6)  # which the sums of rounded parts scatter around


@dataclass(frozen=True)
class Logit(Transform):
    """u = log(y/(total − y)), for a part y of a total.

    >>> Logit(100.0).inverse(Logit(100.0).forward(np.array([20.0, 0.5]))).round(9)
    array([20. ,  0.5])
    """

    total: float

    def forward(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the logit of the share of y, which is infinite outside (0, total)."""
        return logit(np.clip(y / self.total, 0.0, 1.0))

    def inverse(self, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return y, which lies between zero and the total."""
        return self.total * expit(u)

    def log_slope(self, y: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return log du/dy, which is −∞ outside (0, total)."""
        inside = (y > 0) & (y < self.total)
        share = np.where(inside, y / self.total, 0.5)
        slope = -np.log(share) - np.log1p(-share) - np.log(self.total)
        return np.where(inside, slope, np.where(np.isnan(y), np.nan, -np.inf))

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters, which is zero."""
        return 0


@dataclass(frozen=True)
class Composition:
    """The columns of the outputs that are parts of a whole, and the total."""

    outputs: tuple[int, ...]
    total: float

    def close(self, Y: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """Scale the parts in every row so that they sum to the total.

        >>> Composition((0, 2), 100.0).close(np.array([[30.0, 7.0, 90.0]]))
        array([[25.,  7., 75.]])
        """
        at = list(self.outputs)
        Y = Y.copy()
        largest = Y[..., at].max(axis=-1, keepdims=True)  # avoids overflow
        parts = Y[..., at] / largest
        Y[..., at] = self.total * (parts / parts.sum(axis=-1, keepdims=True))
        return Y

    def check(self, Y: Float[Array, "N D"], names: Sequence[str]) -> None:
        """Raise ValueError if a part exceeds the total."""
        for d in self.outputs:
            rows = np.flatnonzero(Y[:, d] > (1 + MAX_DEVIATION) * self.total)
            if len(rows):
                raise ValueError(
                    f"Output {names[d]!r} is a part of a total of {self.total:g}, but has "
                    f"{Y[rows[0], d]:g} in {rows_from_zero(rows[:1])}. Correct this value."
                )

    def parts(self, draws: Float[Array, "*n D"]) -> Float[Array, "*n G"]:
        """Return the parts, which sum to the total, given the logarithms of all outputs."""
        return self.total * softmax(draws[..., list(self.outputs)], axis=-1)

    def logit_components(
        self, draws: Float[Array, "K C M D"], part: int
    ) -> tuple[Float[Array, "KC M"], Float[Array, "KC M"]]:
        """Return the components of the distribution of the logit of one output.

        They are Gaussians around the draws, with a rule-of-thumb bandwidth. The draws are moved
        towards their mean, so that the bandwidth does not increase the variance.
        """
        others = [d for d in self.outputs if d != part]
        logits = draws[..., part] - logsumexp(draws[..., others], axis=-1)
        mean, std = logits.mean(axis=0), logits.std(axis=0)
        bandwidth = BANDWIDTH * len(draws) ** -0.2
        centres = mean + np.sqrt(1 - bandwidth**2) * (logits - mean)
        widths = np.broadcast_to(np.maximum(bandwidth * std, MIN_STD), logits.shape)
        K, C, M = logits.shape
        return centres.reshape(K * C, M), widths.reshape(K * C, M)


def joint_draws(m: Float[Array, "C M D"], cov: Float[Array, "C M D D"]) -> Float[Array, "K C M D"]:
    """Return quasi-random draws from Gaussian distributions of D outputs."""
    values, vectors = eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return m + np.einsum("cmde,ke->kcmd", root, _normal_points(m.shape[-1]))


@cache
def _normal_points(n: int) -> Float[Array, "K n"]:
    """Return quasi-random points with a standard normal distribution, mean 0 and variance 1."""
    points = ndtri(Sobol(n, seed=0).random(N_DRAWS))
    points -= points.mean(axis=0)
    return np.asarray(points / points.std(axis=0))


def check_compositions(given: object) -> None:
    """Raise ValueError unless this is a valid value of the parameter `compositions`.

    >>> check_compositions([["sand", "silt", "clay"]])
    """
    if given is None:
        return
    listed = isinstance(given, list | tuple) and all(isinstance(g, list | tuple) for g in given)
    if not listed or any(len(parts) < 2 for parts in given):  # type: ignore[attr-defined]
        raise ValueError(
            f"compositions={given!r}; expected a list of lists with the names of two or more "
            'outputs that are the parts of a whole, such as [["sand", "silt", "clay"]].'
        )


def find_compositions(
    given: Sequence[Sequence[str]] | None, names: Sequence[str], Y: Float[Array, "N D"]
) -> tuple[Composition, ...]:
    """Return the compositions, with the totals of their readings.

    >>> Y = np.array([[20.0, 30.0, 50.0], [10.0, 10.0, 80.0]])
    >>> find_compositions([["sand", "silt", "clay"]], ["sand", "silt", "clay"], Y)
    (Composition(outputs=(0, 1, 2), total=100.0),)
    """
    compositions: list[Composition] = []
    used: set[str] = set()
    for parts in given or ():
        labels = [str(part) for part in parts]
        for label in labels:
            if label not in names or label in used:
                problem = "is a part twice" if label in used else "is not an output"
                raise ValueError(
                    f"compositions={given!r}: {label!r} {problem}; expected names among "
                    f"{list(names)}, each at most once."
                )
            used.add(label)
        columns = [list(names).index(label) for label in labels]
        compositions.append(Composition(tuple(columns), _total(labels, Y[:, columns])))
    return tuple(compositions)


def _total(labels: Sequence[str], parts: Float[Array, "N G"]) -> float:
    """Return the total of the parts; raise ValueError if it differs between sites."""
    for label, values in zip(labels, parts.T, strict=True):
        rows = np.flatnonzero(values <= 0)
        if len(rows):
            raise ValueError(
                f"Output {label!r}, a part of the composition {list(labels)}, has {len(rows)} "
                f"values that are zero or negative, the first of them in {rows_from_zero(rows)}. "
                "The parts must be positive; replace zeros with half of the detection limit, or "
                "with NaN."
            )
    sums = parts.sum(axis=1)
    complete = np.flatnonzero(~np.isnan(sums))
    if not len(complete):
        raise ValueError(
            f"The total of the composition {list(labels)} is unknown, because all parts were "
            "measured together nowhere. Fit the outputs without compositions."
        )
    total = float(np.median(sums[complete]))
    low, high = sums[complete].min(), sums[complete].max()
    for usual in USUAL_TOTALS:
        near = abs(total - usual) < MAX_DEVIATION * usual
        if near and low * (1 - 1e-9) <= usual <= high * (1 + 1e-9):
            total = usual
    rows = np.flatnonzero((parts > (1 + MAX_DEVIATION) * total).any(axis=1))
    if len(rows):
        raise ValueError(
            f"A part of the composition {list(labels)} exceeds the total of {total:g} in "
            f"{len(rows)} rows, the first of them {rows_from_zero(rows[:1])}. Correct these "
            "rows, or do not declare these outputs as the parts of a whole."
        )
    deviation = np.abs(sums[complete] / total - 1)
    if deviation.max() > MAX_DEVIATION:
        row = complete[int(deviation.argmax())]
        raise ValueError(
            f"The parts {list(labels)} sum to {sums[row]:g} in {rows_from_zero([row])}, but to "
            f"{total:g} in most rows. Correct this row, or do not declare these outputs as the "
            "parts of a whole."
        )
    return total
