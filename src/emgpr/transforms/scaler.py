"""Conversion of outputs to a standardised scale, and of distributions to original units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from emgpr.arrays import chunks
from emgpr.ensemble import mixture
from emgpr.prediction import GaussianMixture
from emgpr.transforms import mixture_marginals
from emgpr.transforms.base import Transform
from emgpr.transforms.quadrature import MAX_TERMS
from emgpr.transforms.registry import TRANSFORM_NAMES, TRANSFORMS
from emgpr.transforms.sklearn_adapter import FittedTransformer, check_invertible

Array = np.ndarray

MAX_ROUNDING = 5e-15  # half the range of a constant output's readings, relative to their size
NEGLIGIBLE_COVARIANCE = 1e-9  # relative to the product of two standard deviations


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

    @classmethod
    def fit(
        cls,
        Y: Float[Array, "N D"],
        transforms: Any = None,
        *,
        normalize: bool = True,
        names: Sequence[str] | None = None,
        one_dimensional: bool = False,
    ) -> "OutputScaler":
        """Fit transforms and scales to the readings of each output.

        A transform is None, "log", "yeo-johnson", "normal-score" or a scikit-learn transformer.
        `transforms` is one transform for all outputs, a sequence with a transform for each output,
        or a mapping from output names to transforms. Outputs that are not in the mapping are not
        transformed. Constant outputs are transformed only by "log", since the parameters of the
        other transforms cannot be fitted to them.
        """
        D = Y.shape[1]
        names = tuple(str(d) for d in range(D)) if names is None else tuple(names)
        specs = tuple(transform_per_output(transforms, names))
        fitted = tuple(
            _fit_transform(spec, Y[~np.isnan(Y[:, d]), d], names[d]) for d, spec in enumerate(specs)
        )
        unscaled = cls(fitted, np.zeros(D), np.ones(D), names, one_dimensional, specs)
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
        return np.stack([t.inverse(U[..., d]) for d, t in enumerate(self.transforms)], axis=-1)

    def median(self, distribution: GaussianMixture) -> Float[Array, "M D"]:
        """Return the median of each output in original units."""
        if len(distribution.mean) == 1:
            return self.to_original(distribution.mean[0])
        return self.quantiles(distribution, [0.5])[0]

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
        for at, d, t, m, s in self._marginals(distribution, lambda C, t: 64.0 * C * (len(q) + 1)):
            result[:, at, d] = t.inverse(mixture_marginals.ppf(q, m, s))
        return result

    def mean(self, distribution: GaussianMixture) -> Float[Array, "M D"]:
        """Return the mean of each output in original units."""
        result = np.empty(distribution.mean.shape[1:])
        for at, d, t, m, s in self._marginals(distribution, lambda C, t: C * t.expansion_bytes()):
            result[at, d] = t.expansion(m, s, 0)[0][0].mean(axis=0)
        return result

    def covariance(self, distribution: GaussianMixture) -> Float[Array, "M D D"]:
        """Return the covariance of the outputs at each location in original units."""
        C, M, D = distribution.mean.shape
        result = np.empty((M, D, D))
        bytes_each = C * max(t.expansion_bytes() for t in self.transforms)
        bytes_each += 8.0 * C * D * (MAX_TERMS + 8 * D)
        for run in chunks(M, bytes_each, None):
            at = slice(run.start, run.stop)
            m = distribution.mean[:, at] * self.scale + self.shift
            cov = distribution.cov[:, at] * self.scale[:, None] * self.scale
            means, covs = self._component_moments(m, cov)
            result[at] = covs[0] if len(covs) == 1 else mixture(means, covs)[1]
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
        return self._evaluate(distribution, Y, lambda t, y, u, m, s: mixture_marginals.sf(u, m, s))

    def cdf(self, distribution: GaussianMixture, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Return P(y < reading), which is uniform on (0, 1) if the distributions are calibrated."""
        return self._evaluate(distribution, Y, lambda t, y, u, m, s: mixture_marginals.cdf(u, m, s))

    def log_density(
        self, distribution: GaussianMixture, Y: Float[Array, "M D"]
    ) -> Float[Array, "M D"]:
        """Return the log density of every reading in original units (−∞ outside the domain)."""
        return self._evaluate(
            distribution,
            Y,
            lambda t, y, u, m, s: mixture_marginals.logpdf(u, m, s) + t.log_slope(y),
        )

    def crps(self, distribution: GaussianMixture, Y: Float[Array, "M D"]) -> Float[Array, "M D"]:
        """Return the continuous ranked probability score of every reading, in original units."""
        return self._evaluate(
            distribution,
            Y,
            lambda t, y, u, m, s: t.crps(y, m, s),
            lambda C, t: t.crps_bytes(C),
        )

    def _component_moments(
        self, m: Float[Array, "C M D"], cov: Float[Array, "C M D D"]
    ) -> tuple[Float[Array, "C M D"], Float[Array, "C M D D"]]:
        """Return each component's mean and covariance in original units, given m and cov of T(y).

        Covariances are computed using Mehler's series (see `emgpr.transforms.quadrature`). The
        series is truncated for covariances, but not for variances, so the matrices remain positive
        semi-definite. Relative to the product of the standard deviations, the error is below 1e-9
        up to |ρ| = 0.85. As |ρ| approaches 1, the error increases to 2e-3 for piecewise linear
        transforms and to 1e-6 for smooth transforms.
        """
        s = np.sqrt(np.maximum(np.einsum("cmdd->cmd", cov), 0.0))
        products = s[..., :, None] * s[..., None, :]
        rho = np.divide(cov, products, out=np.zeros_like(cov), where=products > 0)
        rho = np.clip(rho, -1.0, 1.0)
        n_terms = 1
        if not all(t.linear or t.log_normal for t in self.transforms):
            off_diagonal = ~np.eye(len(self.transforms), dtype=bool)
            largest = np.abs(rho[..., off_diagonal]).max(initial=1e-9)
            needed = np.log(NEGLIGIBLE_COVARIANCE) / np.log(min(largest, 0.999))
            n_terms = int(np.ceil(np.clip(needed, 1, MAX_TERMS)))
        expansions = [
            t.expansion(m[..., d], s[..., d], n_terms) for d, t in enumerate(self.transforms)
        ]
        a = np.stack([coefficients for coefficients, _ in expansions], axis=-1)
        result = np.zeros_like(cov)
        for k in range(n_terms, 0, -1):
            result = rho * (result + a[k][..., :, None] * a[k][..., None, :])
        # For two log-normal outputs, the series has a closed form.
        log_normal = np.array([t.log_normal for t in self.transforms])
        pairs = log_normal[:, None] & log_normal
        means = a[0][..., :, None] * a[0][..., None, :]
        result[..., pairs] = means[..., pairs] * np.expm1((rho * products)[..., pairs])
        variances = np.stack([variance for _, variance in expansions], axis=-1)
        np.einsum("cmdd->cmd", result)[...] = variances
        return a[0], result

    def _marginals(
        self, distribution: GaussianMixture, bytes_each: Callable[[int, Transform], float]
    ) -> Iterator[tuple[slice, int, Transform, Float[Array, "C m"], Float[Array, "C m"]]]:
        """Yield the distribution of T_d(y_d) for each output d and block of locations."""
        C, M, _ = distribution.mean.shape
        for d, t in enumerate(self.transforms):
            for run in chunks(M, bytes_each(C, t), None):
                at = slice(run.start, run.stop)
                m = distribution.mean[:, at, d] * self.scale[d] + self.shift[d]
                s = np.sqrt(np.maximum(distribution.cov[:, at, d, d], 0.0)) * self.scale[d]
                yield at, d, t, m, np.maximum(s, mixture_marginals.MIN_STD * self.scale[d])

    def _evaluate(
        self,
        distribution: GaussianMixture,
        Y: Float[Array, "M D"],
        function: Callable[..., Array],
        bytes_each: Callable[[int, Transform], float] = lambda C, t: 64.0 * C,
    ) -> Float[Array, "M D"]:
        """Evaluate a function for each reading and its distribution; missing readings give NaN."""
        result = np.empty(Y.shape)
        for at, d, t, m, s in self._marginals(distribution, bytes_each):
            y = Y[at, d]
            result[at, d] = function(t, y, t.forward(y), m, s)
        return result


def transform_per_output(transforms: Any, names: Sequence[str]) -> list[Any]:
    """Return a list with one transform for every output.

    `transforms` is one transform for all outputs, a sequence with a transform for each output, or a
    mapping from output names to transforms.
    """
    D = len(names)
    if isinstance(transforms, Mapping):
        by_name = {str(key): spec for key, spec in transforms.items()}
        unknown = [key for key in by_name if key not in names]
        if unknown:
            raise ValueError(
                f"output_transform has the keys {unknown}, which are not outputs; expected any of "
                f"{list(names)}."
            )
        return [by_name.get(name) for name in names]
    if not isinstance(transforms, list | tuple | np.ndarray):
        return [transforms] * D
    if len(transforms) != D:
        raise ValueError(
            f"output_transform has {len(transforms)} transforms for {D} outputs; expected one "
            "transform for all outputs, one for each output, or a dict with output names as keys."
        )
    return list(transforms)


def _fit_transform(spec: Any, values: Float[Array, " n"], name: str) -> Transform:
    """Fit the transform of one output."""
    is_name = spec is None or isinstance(spec, str)
    if is_name and spec not in TRANSFORMS:
        raise ValueError(
            f"output_transform={spec!r} for output {name!r}; expected one of "
            f"{', '.join(map(repr, TRANSFORM_NAMES))}, or a scikit-learn transformer."
        )
    if not is_name:
        check_invertible(spec, name)
    elif TRANSFORMS[spec].parameter_free:
        return TRANSFORMS[spec].fit(values)
    if is_constant(values[:, None])[0]:  # Parameters cannot be fitted to equal readings.
        return TRANSFORMS[None].fit(values)
    if is_name:
        return TRANSFORMS[spec].fit(values)
    return FittedTransformer.from_transformer(spec, values, name)


def is_constant(Y: Float[Array, "N D"]) -> Bool[Array, " D"]:
    """Tell for each output whether its readings are equal up to rounding, ignoring NaN.

    >>> is_constant(np.array([[0.1, 1.0], [0.1 + 1e-17, 2.0], [np.nan, 3.0]]))
    array([ True, False])
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    return high / 2 - low / 2 <= MAX_ROUNDING * np.maximum(np.abs(low), np.abs(high))


def mean_and_std(Y: Float[Array, "N D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Return each output's mean and its standard deviation (1 for a constant output).

    >>> mean_and_std(np.array([[1e152, 5.0], [3e152, 5.0]]))
    (array([2.e+152, 5.e+000]), array([1.e+152, 1.e+000]))
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    constant = is_constant(Y)
    # Subtracting the lowest value and dividing by the range avoids overflow and loss of digits.
    unit = np.where(constant, 1.0, high - low)
    relative = (Y - low) / unit
    std = unit * np.nanstd(relative, axis=0)
    # The mean is rounded to about eight digits of the range, so that its rounding error does not
    # depend on the origin of the scale.
    digit = np.exp2(np.floor(np.log2(unit)) - 27)
    mean = low + digit * np.round(unit * np.nanmean(relative, axis=0) / digit)
    return np.where(constant, low, mean), np.where(constant, 1.0, std)
