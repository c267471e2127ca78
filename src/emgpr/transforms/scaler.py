"""Conversion of outputs to a standardised scale, and of distributions to original units."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.arrays import chunks
from emgpr.ensemble import mixture, replace_unused, replace_unused_outputs, weighted_mixture
from emgpr.prediction import GaussianMixture
from emgpr.transforms import mixture_marginals
from emgpr.transforms.base import Transform
from emgpr.transforms.bounded import fit_bounded
from emgpr.transforms.builtin import Identity
from emgpr.transforms.component_moments import component_moments
from emgpr.transforms.compositions import (
    N_DRAWS,
    Composition,
    Logit,
    find_compositions,
    joint_draws,
    logit_weights,
    selections,
    share_weights,
)
from emgpr.transforms.location_scale import is_constant, mean_and_std
from emgpr.transforms.mixture_marginals import MIN_STD, Components, average
from emgpr.transforms.output_bounds import NON_NEGATIVE, Interval, bounds_per_output
from emgpr.transforms.per_output import transform_per_output
from emgpr.transforms.quadrature import MAX_TERMS, reduced
from emgpr.transforms.registry import TRANSFORM_NAMES, TRANSFORMS
from emgpr.transforms.sklearn_adapter import FittedTransformer, check_invertible

Array = np.ndarray


@dataclass(frozen=True)
class OutputScaler:
    """Transform and standardisation of each output: z_d = (T_d(y_d) − shift_d)/scale_d.

    Each T_d is increasing, and z_d has mean 0 and standard deviation 1 over the readings. The
    predictive distribution of z is a `GaussianMixture`. Its marginals are converted to original
    units exactly, without approximating them by their moments. `one_dimensional` tells whether y
    was a 1-D array.

    >>> Y = np.array([[1.0, 5.0], [np.e**2, 7.0]])
    >>> scaler = OutputScaler.fit(Y, {"Zn": "log"}, names=["Zn", "pH"])
    >>> np.abs(scaler.standardise(np.array([[np.e, 6.0]]))).round(12)
    array([[0., 0.]])
    >>> standard = GaussianMixture(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    >>> scaler.median(standard).round(3), scaler.mean(standard).round(3)
    (array([[2.718, 6.   ]]), array([[4.482, 6.   ]]))
    """

    transforms: tuple[Transform, ...]
    shift: Float[Array, " D"]
    scale: Float[Array, " D"]
    names: tuple[str, ...] = ()
    one_dimensional: bool = False
    specs: tuple[Any, ...] = ()  # the transforms as requested or chosen, before fitting
    compositions: tuple[Composition, ...] = ()  # outputs that are the parts of a whole
    order: tuple[int, ...] = ()  # order in which the outputs are drawn; empty: that of the columns

    @classmethod
    def fit(
        cls,
        Y: Float[Array, "N D"],
        transforms: Any = None,
        *,
        bounds: Any = "auto",
        compositions: Sequence[Sequence[str]] | None = None,
        normalize: bool = True,
        names: Sequence[str] | None = None,
        one_dimensional: bool = False,
    ) -> "OutputScaler":
        """Fit transforms and scales to the readings of each output.

        A transform is None, "softplus", "log", "yeo-johnson", "normal-score" or a scikit-learn
        transformer. `transforms` is one transform for all outputs, a sequence with a transform for
        each output, or a mapping from output names to transforms. Outputs that are not in the
        mapping are not transformed. `bounds` are described in `emgpr.transforms.output_bounds`. The
        outputs in `compositions` must have the transform "log".
        """
        D = Y.shape[1]
        names = tuple(str(d) for d in range(D)) if names is None else tuple(names)
        specs = tuple(transform_per_output(transforms, names))
        wholes = find_compositions(compositions, names, Y)
        intervals = bounds_per_output(bounds, names, Y, specs)
        for whole in wholes:
            for d in whole.outputs:
                whole.check_bounds(intervals[d], names[d])
                intervals[d] = None
        fitted = tuple(
            _fit_transform(spec, Y[~np.isnan(Y[:, d]), d], names[d], intervals[d])
            for d, spec in enumerate(specs)
        )
        for name in (names[d] for whole in wholes for d in whole.outputs):
            if specs[names.index(name)] != "log":
                raise ValueError(
                    f"Output {name!r} is a part of a composition, whose logarithms are modelled; "
                    'set output_transform="log" or "auto" for this output.'
                )
        unscaled = cls(fitted, np.zeros(D), np.ones(D), names, one_dimensional, specs, wholes)
        if not normalize:
            return unscaled
        shift, scale = mean_and_std(unscaled.standardise(Y))
        return replace(unscaled, shift=shift, scale=scale)

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return len(self.transforms)

    def standardise(self, Y: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Transform and standardise readings; raise ValueError if one is outside the domain."""
        Z = self.standardise_or_nan(Y)
        for composition in self.compositions:
            composition.check(Y, self.names)
        for d, transform in enumerate(self.transforms):
            rows = np.flatnonzero(np.isfinite(Y[:, d]) & ~np.isfinite(Z[:, d]))
            if len(rows):
                raise ValueError(transform.domain_error(self.names[d], rows))
        return Z

    def standardise_or_nan(self, Y: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Transform and standardise readings, with NaN or ±∞ for readings outside the domain."""
        U = np.stack([t.forward(Y[:, d]) for d, t in enumerate(self.transforms)], axis=-1)
        return (U - self.shift) / self.scale

    def to_original(self, Z: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """Convert standardised values, such as samples, to original units."""
        U = Z * self.scale + self.shift
        return np.stack([reduced(t.inverse, U[..., d]) for d, t in enumerate(self.transforms)], -1)

    def samples_to_original(self, Z: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """Convert joint samples to original units; the parts of a whole sum to their total."""
        Y = self.to_original(Z)
        for composition in self.compositions:
            Y = composition.close(Y)
        return Y

    def median(self, distribution: GaussianMixture) -> Float[Array, "M D"]:
        """Return the median of each output in original units."""
        if not self.median_needs_covariances(len(distribution.mean)):
            return self.to_original(distribution.mean[0])
        return self.quantiles(distribution, [0.5])[0]

    def median_needs_covariances(self, n_components: int) -> bool:
        """Tell whether medians depend on more than the mean of a mixture with n components."""
        return n_components > 1 or bool(self.compositions)

    def quantiles(
        self, distribution: GaussianMixture, q: Sequence[float] | Float[Array, " k"]
    ) -> Float[Array, "k M D"]:
        """Return the quantiles of each output, in original units, for probabilities 0 < q < 1."""
        q = np.asarray(q, dtype=float)
        outside = q[~((q > 0) & (q < 1))]
        if len(outside):
            raise ValueError(
                f"q contains {outside[0]:g}; expected probabilities above 0 and below 1, such as "
                "0.95."
            )
        result = np.empty((len(q), *distribution.mean.shape[1:]))
        for at, d, t, parts in self._marginals(distribution, lambda C, t: 64.0 * C * (len(q) + 1)):
            result[:, at, d] = reduced(t.inverse, mixture_marginals.ppf(q, *parts))
        return result

    def mean(self, distribution: GaussianMixture) -> Float[Array, "M D"]:
        """Return the mean of each output in original units."""
        result = np.empty(distribution.mean.shape[1:])
        for at, d, t, (m, s, w) in self._marginals(
            distribution, lambda C, t: C * t.expansion_bytes()
        ):
            result[at, d] = average(t.expansion(m, s, 0)[0][0], w)
        for at, draws, weights in self._draws(distribution):
            for composition in self.compositions:
                result[at, list(composition.outputs)] = composition.mean(draws, weights)
        return result

    def covariance(self, distribution: GaussianMixture) -> Float[Array, "M D D"]:
        """Return the covariance of the outputs at each location in original units."""
        C, M, D = distribution.mean.shape
        result = np.empty((M, D, D))
        bytes_each = C * max(t.expansion_bytes() for t in self.transforms)
        bytes_each += 8.0 * C * D * (MAX_TERMS + 8 * D)
        for run in chunks(M, bytes_each, None):
            at = slice(run.start, run.stop)
            m, cov, weights = self._transformed(distribution, at)
            means, covs = component_moments(self.transforms, m, cov)
            if C == 1:
                result[at] = covs[0]
            elif weights is None:
                result[at] = mixture(means, covs)[1]
            else:
                result[at] = weighted_mixture(means, covs, weights)[1]
        for at, draws, weights in self._draws(distribution):
            result[at] = self._covariance_of_parts(draws, weights, result[at])
        return result

    def std(self, distribution: GaussianMixture) -> Float[Array, "M D"]:
        """Return the standard deviation of each output in original units."""
        variance = np.einsum("mdd->md", self.covariance(distribution))
        return np.sqrt(np.maximum(variance, 0.0))

    def exceedance(self, distribution: GaussianMixture, threshold: Any) -> Float[Array, "M D"]:
        """Return P(y > threshold), given one threshold for all outputs or one for each output.

        >>> lead = OutputScaler.fit(np.array([[1.0], [np.e**2]]), "log")
        >>> standard = GaussianMixture(np.zeros((1, 1, 1)), np.ones((1, 1, 1, 1)))
        >>> lead.exceedance(standard, np.e), lead.exceedance(standard, -1.0)
        (array([[0.5]]), array([[1.]]))
        """
        D = self.n_outputs
        thresholds = np.asarray(threshold, dtype=float)
        if thresholds.shape not in {(), (D,)}:
            raise ValueError(
                f"threshold has shape {thresholds.shape}; expected one number, or one for each of "
                f"the {D} outputs."
            )
        Y = np.broadcast_to(thresholds, distribution.mean.shape[1:])
        return self._evaluate(
            distribution, Y, lambda t, y, parts: mixture_marginals.sf(t.limit(y), *parts)
        )

    def cdf(self, distribution: GaussianMixture, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Return P(y < reading), which is uniform on (0, 1) if the distributions are calibrated."""
        return self._evaluate(distribution, Y, lambda t, y, parts: t.cdf(y, *parts))

    def log_density(
        self, distribution: GaussianMixture, Y: Float[Array, "M D"]
    ) -> Float[Array, "M D"]:
        """Return the log density of every reading in original units (−∞ outside the domain)."""
        return self._evaluate(distribution, Y, lambda t, y, parts: t.log_density(y, *parts))

    def crps(self, distribution: GaussianMixture, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Return the continuous ranked probability score of every reading, in original units."""
        return self._evaluate(
            distribution,
            Y,
            lambda t, y, parts: t.crps(y, *parts),
            lambda C, t: t.crps_bytes(C),
        )

    def _transformed(
        self, distribution: GaussianMixture, at: slice
    ) -> tuple[Float[Array, "C m D"], Float[Array, "C m D D"], Float[Array, "C m D"] | None]:
        """Return the mean and covariance of T(y) at some locations, and the weights."""
        mean, cov, weights = distribution.mean[:, at], distribution.cov[:, at], None
        if distribution.weights is not None:
            weights = share_weights(distribution.weights[:, at], self.compositions)
            mean, cov = replace_unused_outputs(mean, cov, weights)
        return mean * self.scale + self.shift, cov * self.scale[:, None] * self.scale, weights

    def _draws(
        self, distribution: GaussianMixture
    ) -> Iterator[tuple[slice, Float[Array, "K C m D"], Float[Array, "C m D"] | None]]:
        """Yield draws of T(y) from each component, and the weights, for each block of locations.

        Without compositions, which are the only reason for draws, nothing is yielded.
        """
        if not self.compositions:
            return
        C, M, D = distribution.mean.shape
        for run in chunks(M, 24.0 * N_DRAWS * C * D, None):
            at = slice(run.start, run.stop)
            m, cov, weights = self._transformed(distribution, at)
            order = np.array(self.order or range(D))
            drawn = joint_draws(m[..., order], cov[..., order, :][..., order])
            yield at, drawn[..., np.argsort(order)], weights

    def _covariance_of_parts(
        self,
        draws: Float[Array, "K C m D"],
        weights: Float[Array, "C m D"] | None,
        cov: Float[Array, "m D D"],
    ) -> Float[Array, "m D D"]:
        """Return the covariance over draws; outputs that are not parts keep their variances."""
        Y = np.stack([reduced(t.inverse, draws[..., d]) for d, t in enumerate(self.transforms)], -1)
        parts = np.zeros(Y.shape[-1], bool)
        for composition in self.compositions:
            Y[..., list(composition.outputs)] = composition.parts(draws)
            parts[list(composition.outputs)] = True
        if weights is None:
            Y = Y.reshape(-1, *Y.shape[2:])
            Y = Y - Y.mean(axis=0)
            over_draws = np.einsum("kmd,kme->mde", Y, Y) / len(Y)
        else:
            means = Y.mean(axis=0)
            covs = np.einsum("kcmd,kcme->cmde", Y - means, Y - means) / len(Y)
            selection = selections(self.compositions, Y.shape[-1])
            over_draws = weighted_mixture(means, covs, weights, selection)[1]
        variance, exact = (np.einsum("mdd->md", c) for c in (over_draws, cov))
        ratio = np.divide(exact, variance, out=np.ones_like(exact), where=variance > 0)
        factor = np.where(parts, 1.0, np.sqrt(ratio))
        return over_draws * factor[:, :, None] * factor[:, None, :]

    def _marginals(
        self, distribution: GaussianMixture, bytes_each: Callable[[int, Transform], float]
    ) -> Iterator[tuple[slice, int, Transform, Components]]:
        """Yield the distribution of T_d(y_d) for each output d and block of locations.

        For a part of a whole, T_d is the logit.
        """
        C, M, _ = distribution.mean.shape
        for at, draws, weights in self._draws(distribution):
            for composition in self.compositions:
                for d in composition.outputs:
                    w = None if weights is None else logit_weights(weights[..., d])
                    components = Components(*composition.logit_components(draws, d), w)
                    yield at, d, Logit(composition.total), components
        parts = {d for composition in self.compositions for d in composition.outputs}
        for d, t in enumerate(self.transforms):
            if d in parts:
                continue
            for run in chunks(M, bytes_each(C, t), None):
                at = slice(run.start, run.stop)
                mean, variance = distribution.mean[:, at, d], distribution.cov[:, at, d, d]
                w = None
                if distribution.weights is not None:
                    w = np.ascontiguousarray(distribution.weights[:, at, d])
                    mean, variance = replace_unused(mean, w), replace_unused(variance, w)
                m = mean * self.scale[d] + self.shift[d]
                s = np.sqrt(np.maximum(variance, 0.0)) * self.scale[d]
                yield at, d, t, Components(m, np.maximum(s, MIN_STD * self.scale[d]), w)

    def _evaluate(
        self,
        distribution: GaussianMixture,
        Y: Float[Array, "M D"],
        function: Callable[..., Array],
        bytes_each: Callable[[int, Transform], float] = lambda C, t: 64.0 * C,
    ) -> Float[Array, "M D"]:
        """Evaluate a function for each reading and its distribution; missing readings give NaN."""
        result = np.empty(Y.shape)
        for at, d, t, parts in self._marginals(distribution, bytes_each):
            result[at, d] = function(t, Y[at, d], parts)
        return result


def _fit_transform(
    spec: Any, values: Float[Array, " n"], name: str, bounds: Interval | None
) -> Transform:
    """Fit the transform of one output."""
    if spec is not None and not isinstance(spec, str):
        check_invertible(spec, name)
        if bounds is not None:
            raise ValueError(
                f"Output {name!r} has the bounds {bounds}, but its transformer {spec} would allow "
                'predictions outside them. Set output_transform="auto" for this output, or its '
                "bounds to None."
            )
        constant = is_constant(values[:, None])[0]
        return Identity() if constant else FittedTransformer.from_transformer(spec, values, name)
    if spec not in TRANSFORMS:
        raise ValueError(
            f"output_transform={spec!r} for output {name!r}; expected one of "
            f"{', '.join(map(repr, TRANSFORM_NAMES))}, or a scikit-learn transformer."
        )
    shape = TRANSFORMS[spec]
    if bounds not in (None, NON_NEGATIVE) and not shape.on_line:
        raise ValueError(
            f"output_transform={spec!r} would allow predictions of output {name!r} outside its "
            f'bounds {bounds}; set output_transform="auto" for this output.'
        )
    if spec == "softplus" and bounds is None:
        raise ValueError(
            f'output_transform="softplus" needs bounds, but output {name!r} has none, because '
            "it has negative readings or its bounds are None. Set its bounds (output_bounds), or "
            "another transform."
        )
    if bounds is not None and shape.on_line:
        return fit_bounded(values, bounds, shape)
    if is_constant(values[:, None])[0] and not shape.parameter_free:
        return Identity()  # Parameters cannot be fitted to equal readings.
    return shape.fit(values)
