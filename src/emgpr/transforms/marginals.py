"""Outputs on a standardised Gaussian scale, and beliefs about them back on the user's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.ensemble import mixture
from emgpr.execution import chunks
from emgpr.prediction import Belief
from emgpr.transforms import crps as score
from emgpr.transforms import mixtures, moments
from emgpr.transforms.fitted import Fitted, refuse_without_inverse
from emgpr.transforms.maps import (
    Identity,
    Log,
    Map,
    NormalScore,
    YeoJohnson,
    centre_and_spread,
    is_constant,
)

Array = np.ndarray

NAMED = (None, "log", "yeo-johnson", "normal-score")


@dataclass(frozen=True)
class Marginals:
    """z = (T_d(y_d) − shift_d)/scale_d: an increasing map for each output, then mean 0, variance 1.

    A belief about z is a `Belief`: at each site an equal mixture of C Gaussians,
    noise included if it is readings that are asked about. Its marginals go
    through the maps as they are, not by their first moments.

    >>> Y = np.array([[1.0, 5.0], [np.e**2, 7.0]])
    >>> marginals = Marginals.learned(Y, {"Zn": "log"}, names=["Zn", "pH"])
    >>> np.abs(marginals.forward(np.array([[np.e, 6.0]]))).round(12)
    array([[0., 0.]])
    >>> belief = Belief(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    >>> marginals.median(belief).round(3), marginals.mean(belief).round(3)
    (array([[2.718, 6.   ]]), array([[4.482, 6.   ]]))
    """

    maps: tuple[Map, ...]
    shift: Float[Array, " D"]
    scale: Float[Array, " D"]

    @classmethod
    def learned(
        cls,
        Y: Float[Array, "N D"],
        transforms: Any = None,
        *,
        normalize: bool = True,
        names: Sequence[str] | None = None,
    ) -> "Marginals":
        """The maps and scales that the measured values of each output ask for.

        `transforms` is None, "log", "yeo-johnson", "normal-score" or a scikit-learn
        transformer, for all outputs; a sequence of these with one for each; or a
        mapping from names of outputs, of which the others are left as they are. An
        output that has one value only tells nothing of its transform and is, but
        for the log, left as it is too.
        """
        D = Y.shape[1]
        names = _named(names, D)
        maps = tuple(
            _learned(spec, Y[~np.isnan(Y[:, d]), d], names[d])
            for d, spec in enumerate(one_each(transforms, names))
        )
        bare = cls(maps, np.zeros(D), np.ones(D))
        if not normalize:
            return bare
        return cls(maps, *centre_and_spread(bare.forward(Y, names)))

    def forward(
        self, Y: Float[Array, "N D"], names: Sequence[str] | None = None
    ) -> Float[Array, "N D"]:
        """The user's outputs, standardised; raises if one has a value that has no transform."""
        Z = self.standardised(Y)
        for d, name in enumerate(_named(names, len(self.maps))):
            rows = np.flatnonzero(np.isfinite(Y[:, d]) & ~np.isfinite(Z[:, d]))
            if len(rows):
                raise ValueError(_refusal(self.maps[d], name, rows))
        return Z

    def to_user(self, Z: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """Standardised outputs, such as samples, on the user's scale."""
        U = Z * self.scale + self.shift
        return np.stack([of.back(U[..., d]) for d, of in enumerate(self.maps)], axis=-1)

    def log_jacobian(self, Y: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Log dz/dy of every reading."""
        slopes = [of.log_slope(Y[:, d]) for d, of in enumerate(self.maps)]
        return np.stack(slopes, axis=-1) - np.log(self.scale)

    def median(self, belief: Belief) -> Float[Array, "M D"]:
        """Of each marginal. Of a single Gaussian it needs no covariance."""
        if len(belief.mean) == 1:
            return self.to_user(belief.mean[0])
        return self.quantiles(belief, [0.5])[0]

    def quantiles(
        self, belief: Belief, q: Sequence[float] | Float[Array, " k"]
    ) -> Float[Array, "k M D"]:
        """Values that each output stays below with probabilities q, 0 < q < 1."""
        q = np.asarray(q, dtype=float)
        outside = q[~((q > 0) & (q < 1))]
        if len(outside):
            raise ValueError(
                f"q holds {outside[0]:g}; expected probabilities above 0 and below 1, such as 0.95."
            )
        answer = np.empty((len(q), *belief.mean.shape[1:]))
        for at, d, of, m, s in self._marginals(belief, lambda C, of: 64.0 * C * (len(q) + 1)):
            answer[:, at, d] = of.back(mixtures.quantiles(q, m, s))
        return answer

    def mean(self, belief: Belief) -> Float[Array, "M D"]:
        """On the user's scale, each output's."""
        answer = np.empty(belief.mean.shape[1:])
        for at, d, of, m, s in self._marginals(belief, _nodes):
            answer[at, d] = moments.expansion(of, m, s, 0)[0][0].mean(axis=0)
        return answer

    def covariance(self, belief: Belief) -> Float[Array, "M D D"]:
        """On the user's scale, of the outputs of each site."""
        C, M, D = belief.mean.shape
        answer = np.empty((M, D, D))
        bytes_each = max(_nodes(C, of) for of in self.maps) + 8.0 * C * D * (moments.TERMS + 8 * D)
        for run in chunks(M, bytes_each, None):
            at = slice(run.start, run.stop)
            m = belief.mean[:, at] * self.scale + self.shift
            cov = belief.cov[:, at] * self.scale[:, None] * self.scale
            answer[at] = mixture(*moments.covariance(self.maps, m, cov))[1]
        return answer

    def exceedance(self, belief: Belief, threshold: Any) -> Float[Array, "M D"]:
        """P(y > threshold): one threshold, or one for each output.

        >>> lead = Marginals.learned(np.array([[1.0], [np.e**2]]), "log")
        >>> belief = Belief(np.zeros((1, 1, 1)), np.ones((1, 1, 1, 1)))
        >>> lead.exceedance(belief, np.e), lead.exceedance(belief, -1.0)
        (array([[0.5]]), array([[1.]]))
        """
        D = len(self.maps)
        given = np.asarray(threshold, dtype=float)
        if given.shape not in {(), (D,)}:
            raise ValueError(
                f"threshold has shape {given.shape}; expected one number, or one for each of the "
                f"{D} outputs."
            )
        Y = np.broadcast_to(given, belief.mean.shape[1:])
        return self._at_readings(belief, Y, lambda of, y, u, m, s: mixtures.above(u, m, s))

    def cdf(self, belief: Belief, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """P(y < reading): uniform between 0 and 1 if the belief is honest."""
        return self._at_readings(belief, Y, lambda of, y, u, m, s: mixtures.below(u, m, s))

    def log_density(self, belief: Belief, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Of every reading, per unit of the user's scale; −∞ for one that cannot be."""
        return self._at_readings(
            belief, Y, lambda of, y, u, m, s: mixtures.log_density(u, m, s) + of.log_slope(y)
        )

    def crps(self, belief: Belief, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Continuous ranked probability score of every reading, in the units of the outputs."""
        return self._at_readings(
            belief, Y, lambda of, y, u, m, s: score.crps(of, y, m, s), score.bytes_each
        )

    def standardised(self, Y: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """As `forward`; a value that has no transform is NaN or infinite."""
        U = np.stack([of.forward(Y[:, d]) for d, of in enumerate(self.maps)], axis=-1)
        return (U - self.shift) / self.scale

    def _marginals(
        self, belief: Belief, bytes_each: Callable[[int, Map], float]
    ) -> Iterator[tuple[slice, int, Map, Float[Array, "C m"], Float[Array, "C m"]]]:
        """Runs of sites and an output, with its mixture before standardisation."""
        C, M, _ = belief.mean.shape
        for d, of in enumerate(self.maps):
            for run in chunks(M, bytes_each(C, of), None):
                at = slice(run.start, run.stop)
                m = belief.mean[:, at, d] * self.scale[d] + self.shift[d]
                s = np.sqrt(np.maximum(belief.cov[:, at, d, d], 0.0)) * self.scale[d]
                yield at, d, of, m, np.maximum(s, mixtures.NO_SPREAD * self.scale[d])

    def _at_readings(
        self,
        belief: Belief,
        Y: Float[Array, "M D"],
        what: Callable[..., Array],
        bytes_each: Callable[[int, Map], float] = lambda C, of: 64.0 * C,
    ) -> Float[Array, "M D"]:
        """A function of each reading and of the belief about it; NaN where there is no reading."""
        answer = np.empty(Y.shape)
        for at, d, of, m, s in self._marginals(belief, bytes_each):
            y = Y[at, d]
            answer[at, d] = what(of, y, of.forward(y), m, s)
        return answer


def _nodes(C: int, of: Map) -> float:
    """Bytes that the moments of one site take."""
    if isinstance(of, NormalScore):
        return 80.0 * C * len(of.scores)
    return 64.0 * C * (1 if isinstance(of, Identity | Log) else len(moments.NODES))


def _named(names: Sequence[str] | None, D: int) -> Sequence[str]:
    return [str(d) for d in range(D)] if names is None else names


def one_each(transforms: Any, names: Sequence[str]) -> list[Any]:
    """A transform for every output."""
    D = len(names)
    if isinstance(transforms, Mapping):
        given = {str(key): spec for key, spec in transforms.items()}
        unknown = [key for key in given if key not in names]
        if unknown:
            raise ValueError(
                f"transform names {unknown}, which are no outputs; the outputs are {list(names)}."
            )
        return [given.get(name) for name in names]
    if not isinstance(transforms, list | tuple | np.ndarray):
        return [transforms] * D
    if len(transforms) != D:
        raise ValueError(
            f"transform holds {len(transforms)} transforms for {D} outputs; give one for all, one "
            "for each, or a dict with those of the outputs that need one."
        )
    return list(transforms)


def _learned(spec: Any, values: Float[Array, " n"], name: str) -> Map:
    """The map of one output."""
    if (spec is None or isinstance(spec, str)) and spec not in NAMED:
        raise ValueError(
            f"transform={spec!r} of output {name!r}; expected one of "
            f"{', '.join(map(repr, NAMED))}, or a scikit-learn transformer."
        )
    if spec == "log":
        return Log()
    if not (spec is None or isinstance(spec, str)):
        refuse_without_inverse(spec, name)
    if spec is None or is_constant(values[:, None])[0]:
        return Identity()
    if not isinstance(spec, str):
        return Fitted.learned(spec, values, name)
    return (YeoJohnson if spec == "yeo-johnson" else NormalScore).learned(values)


def _refusal(of: Any, name: str, rows: Array) -> str:
    first = rows[:5].tolist()
    if isinstance(of, Log):
        return (
            f'transform="log" needs positive values: output {name!r} has {len(rows)} that '
            f"are zero or negative, first in rows {first}. Replace values below "
            "a detection limit, mark them NaN, or use transform=None."
        )
    return (
        f"transform of output {name!r}, {of.transformer!r}, cannot be undone at {len(rows)} "
        f"values, first in rows {first}, which lie beyond what it was fitted to; choose one that "
        'reaches further, such as "normal-score", or mark them NaN.'
    )
