"""Outputs that are the parts of a whole, such as sand, silt and clay.

The logarithms u of the parts are modelled jointly. In original units, the parts are

    y_i = total · exp(u_i) / Σ_j exp(u_j)

so that they are positive and sum to the total for any u. Means and covariances are averages over
quasi-random draws of u, the same for all parts; the means therefore sum to the total, too.

If the components of a mixture have weights for each output, all parts of a whole must nevertheless
be of the same component, since the parts of different components do not sum to the total. The
component of the parts is selected with the mean of their weights, independently of the components
of other outputs.

Given the differences r between the other u_j, the logit of a part, log(y_i/(total − y_i)) =
u_i − log Σ_j≠i exp(u_j), is Gaussian: its mean depends on r, its variance does not. The logit of a
part is therefore a mixture of Gaussians over r. For two parts, it is a single Gaussian.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, logit, logsumexp, ndtri, softmax
from scipy.stats.qmc import Sobol

from emgpr.arrays import eigh, solve
from emgpr.row_numbers import rows_from_zero
from emgpr.transforms.base import Transform
from emgpr.transforms.mixture_marginals import MIN_STD, average
from emgpr.transforms.output_bounds import NON_NEGATIVE, Interval

Array = np.ndarray

N_DRAWS = 512  # a multiple of N_COMPONENTS
N_COMPONENTS = 64  # number of Gaussians in the distribution of a logit
RIDGE = 1e-10  # of regressions on draws, relative to the sum of the variances
MIN_WIDTH = 0.25  # of these Gaussians, in standard deviations of the logit
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
        """Raise ValueError if the parts measured at a site contradict the total.

        Twice the deviation of training readings is allowed, because the total of other tables,
        such as folds of a cross-validation, can deviate, too.
        """
        parts = Y[:, list(self.outputs)]
        sums = np.nansum(parts, axis=1)
        deviation = sums / self.total - 1
        complete, limit = ~np.isnan(parts).any(axis=1), 2 * MAX_DEVIATION
        rows = np.flatnonzero(np.where(complete, np.abs(deviation), deviation) > limit)
        if len(rows):
            row = rows[0]
            shown = [f"{names[d]}={Y[row, d]:g}" for d in self.outputs if not np.isnan(Y[row, d])]
            raise ValueError(
                f"The parts {', '.join(shown)} in {rows_from_zero(rows[:1])} sum to {sums[row]:g}, "
                f"but the total is {self.total:g}. Correct these values."
            )

    def check_bounds(self, bounds: Interval | None, name: str) -> None:
        """Raise ValueError if a part has bounds other than zero and the total."""
        if bounds not in (None, NON_NEGATIVE, (0.0, self.total)):
            raise ValueError(
                f"output_bounds are {bounds} for output {name!r}, but this output is a part of a "
                f"composition, which keeps it between 0 and {self.total:g}. Remove its bounds."
            )

    def parts(self, draws: Float[Array, "*n D"]) -> Float[Array, "*n G"]:
        """Return the parts, which sum to the total, given the logarithms of all outputs."""
        return self.total * softmax(draws[..., list(self.outputs)], axis=-1)

    def mean(
        self, draws: Float[Array, "K C M D"], weights: Float[Array, "C M D"] | None
    ) -> Float[Array, "M G"]:
        """Return the means of the parts, given draws from each component and its weights."""
        parts = self.parts(draws)
        if weights is None:
            return parts.mean(axis=(0, 1))
        return average(parts.mean(axis=0), weights[..., list(self.outputs)])

    def logit_components(
        self, draws: Float[Array, "K C M D"], part: int
    ) -> tuple[Float[Array, "J M"], Float[Array, "J M"]]:
        """Return the components of the distribution of the logit of one output.

        The conditional means of the logit are those of the draws. They are sorted and divided into
        groups of equal size; each component is a Gaussian around the mean of a group. Its variance
        is such that the mixture has the variance of the draws. If it would be too narrow for a
        smooth mixture, the means are moved towards their common mean.
        """
        first, *others = (d for d in self.outputs if d != part)
        u = draws - draws[..., [first]]
        logits = u[..., part] - logsumexp(u[..., [first, *others]], axis=-1)
        centres = np.sort(logits - _residuals(u[..., part], u[..., others]), axis=0)
        centres = centres.reshape(N_COMPONENTS, -1, *logits.shape[1:]).mean(axis=1)
        mean, variance = centres.mean(axis=0), np.maximum(logits.var(axis=0), MIN_STD)
        largest = (1 - MIN_WIDTH**2) * variance
        between = np.maximum(centres.var(axis=0), MIN_STD)
        centres = mean + np.sqrt(np.minimum(1.0, largest / between)) * (centres - mean)
        widths = np.sqrt(variance - np.minimum(between, largest))
        M = logits.shape[-1]
        return centres.reshape(-1, M), np.broadcast_to(widths, centres.shape).reshape(-1, M)


def logit_weights(w: Float[Array, "C M"]) -> Float[Array, "J M"]:
    """Return the weights of the Gaussians of `Composition.logit_components`."""
    return np.tile(w / N_COMPONENTS, (N_COMPONENTS, 1))


def share_weights(
    weights: Float[Array, "C M D"], compositions: Sequence[Composition]
) -> Float[Array, "C M D"]:
    """Replace the weights of the parts of a whole by their mean.

    >>> share_weights(np.array([[[0.2, 0.3, 0.6]]]), [Composition((0, 2), 1.0)])
    array([[[0.4, 0.3, 0.4]]])
    """
    shared = weights.copy()
    for composition in compositions:
        at = list(composition.outputs)
        shared[..., at] = weights[..., at].mean(axis=-1, keepdims=True)
    return shared


def selections(compositions: Sequence[Composition], n_outputs: int) -> Int[Array, " D"]:
    """Return a number for each output, which is the same for the parts of a whole.

    >>> selections([Composition((0, 2), 1.0)], 4)
    array([0, 1, 0, 3])
    """
    numbers = np.arange(n_outputs)
    for composition in compositions:
        numbers[list(composition.outputs)] = composition.outputs[0]
    return numbers


def _residuals(y: Float[Array, "K C M"], x: Float[Array, "K C M p"]) -> Float[Array, "K C M"]:
    """Return the residuals of a linear regression of y on x over the draws."""
    y, x = y - y.mean(axis=0), x - x.mean(axis=0)
    if not x.shape[-1]:
        return y
    S = np.einsum("kcmp,kcmq->cmpq", x, x)
    # Differences that do not vary, or depend on each other, have no coefficients of their own.
    ridge = RIDGE * np.einsum("cmpp->cm", S) + MIN_STD
    S = S + ridge[..., None, None] * np.eye(S.shape[-1])
    slopes = solve(S, np.einsum("kcmp,kcm->cmp", x, y)[..., None])
    return np.asarray(y - np.einsum("kcmp,cmp->kcm", x, slopes[..., 0]))


def joint_draws(m: Float[Array, "C M D"], cov: Float[Array, "C M D D"]) -> Float[Array, "K C M D"]:
    """Return quasi-random draws from Gaussian distributions of D outputs."""
    values, vectors = eigh(cov)
    # The sign of an eigenvector is arbitrary; it must not depend on the order of the outputs.
    vectors = vectors * np.where((vectors**3).sum(axis=-2, keepdims=True) < 0, -1.0, 1.0)
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
        whole = Composition(tuple(columns), _total(labels, Y[:, columns]))
        whole.check(Y, names)
        compositions.append(whole)
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
            f"The total of the composition {list(labels)} is unknown, because there is no row "
            "in which all parts were measured. Fit the outputs without compositions."
        )
    total = float(np.median(sums[complete]))
    low, high = sums[complete].min(), sums[complete].max()
    for usual in USUAL_TOTALS:
        near = abs(total - usual) < MAX_DEVIATION * usual
        if near and low * (1 - 1e-9) <= usual <= high * (1 + 1e-9):
            total = usual
    deviation = np.abs(sums[complete] / total - 1)
    if deviation.max() > MAX_DEVIATION:
        row = complete[int(deviation.argmax())]
        raise ValueError(
            f"The parts {list(labels)} sum to {sums[row]:g} in {rows_from_zero([row])}, but to "
            f"{total:g} in most rows. Correct this row, or do not declare these outputs as the "
            "parts of a whole."
        )
    return total
