"""Fit of kernels, noise and weights to Fourier sums, whose number does not grow with the data.

First, the two-step method is applied to a few hundred sites. Then all parameters are optimised
jointly, using Fourier features. If the fitted length-scales are shorter than those for which the
features were chosen, features are chosen again and the optimisation is repeated. The features do
not represent the whole variance of the latent processes. The remainder is modelled as uncorrelated
between locations: it is part of the signal, but acts as noise in predictions elsewhere.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning

from emgpr.arrays import JitterWarning, limit_threads
from emgpr.covariance import coregionalization
from emgpr.fourier.accumulate import Columns, TableSample, enough_of_each
from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.grid import FourierSums
from emgpr.fourier.likelihood import FourierLikelihood
from emgpr.fourier.model import FourierModel, check_box, latent_shares, pad
from emgpr.fourier.posterior import FourierPosterior
from emgpr.fourier.resolution import FeatureChoice, Resolution
from emgpr.fourier.settings import FourierSettings
from emgpr.fourier.spectral_density import spectral_density
from emgpr.geo import is_geographic
from emgpr.kernels import split_noise
from emgpr.latents import fit_latents
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import kernels_per_output
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import OutputScaler, is_constant
from emgpr.user_warnings import warn
from emgpr.weights import (
    LMCParameters,
    ParameterVector,
    Stage,
    decouple_constant_outputs,
    fit_weights,
    initial_parameters,
    maximise,
)

Array = np.ndarray

IDEAL_SHARE = 1e-6  # of an output's variance; features leave out no more if they are cheap
MAX_SHARE = 0.2  # of an output's variance; an error is raised if features leave out more
# Up to the first number of coefficients, more are used than the tolerance requires (an iteration
# takes a fifth of a second). The second number is never exceeded (an iteration takes a second). The
# third is used in the first fit, which determines the ranges of the latent processes and thereby
# the size of the box.
CHEAP_COEFFICIENTS, MAX_COEFFICIENTS, FIRST_FIT_COEFFICIENTS = 1500, 3000, 600
MAX_FEATURE_CHOICES = 3
# The optimisation stops when the expected gain in log-likelihood of the next step is smaller than
# the first value, or the gains of two successive steps are smaller than the second.
EXPECTED_GAIN, MIN_GAIN = 0.02, 0.005
ROUNDING = 1e-14  # relative difference between readings that is attributed to rounding


@dataclass(frozen=True)
class FourierFit:
    """The state of a fit: the choices made at its start, sums over the data, and parameters."""

    columns: Columns
    scaler: OutputScaler
    box: Float[Array, "2 P"]
    ranges: Float[Array, "2 D"]  # lowest and highest readings of the first chunk
    vector: ParameterVector  # Its attribute `start` holds the latest parameters.
    features: FourierFeatures
    resolution: Resolution
    sums: FourierSums
    warned_share: float = 0.0  # share of variance that was reported as left out in the last warning
    history: list[Stage] | None = None
    n_iter: int | None = None
    converged: bool | None = None

    @property
    def parameters(self) -> LMCParameters:
        """The parameters after the latest optimisation."""
        return self.vector.start

    @property
    def model(self) -> FourierModel:
        """The model with the parameters after the latest optimisation."""
        names = tuple(self.columns.inputs.names)
        return FourierModel(self.parameters, self.features, self.box, names)

    @cached_property
    def posterior(self) -> FourierPosterior:
        """The posterior given the sums over all data so far."""
        return FourierPosterior(
            self.model,
            self.sums,
            self.sums.n_sites,
            self.scaler.standardise_or_nan(self.ranges),
            is_geographic(self.columns.inputs.crs),
        )


def start_fit(
    sample: TableSample,
    columns: Columns,
    settings: FourierSettings,
    rng: np.random.Generator,
    execution: Execution,
) -> FourierFit:
    """Start a fit: determine the scaler, box, parameters and features from a sample of rows."""
    if len(sample.rows) == 1 and isinstance(settings.box, str):
        raise ValueError(
            "Found 1 sample, and a single site has no extent; pass at least two sites, or "
            "box=(lows, highs)."
        )
    box = check_box(settings.box, sample.corners)
    with rows_of_table(sample.rows):
        scaler = OutputScaler.fit(
            sample.Y,
            settings.output_transform,
            bounds=None,  # later rows, which are not known yet, could lie outside
            normalize=settings.normalize_y,
            names=columns.output_names,
            one_dimensional=columns.one_dimensional,
        )
        observations = _standardise(sample, columns, scaler, settings.normalize_y)
    sites = enough_of_each(observations.observed, observations.subsample(settings.n_start), rng)
    observations = observations.at(sites)
    parameters = _two_steps(observations, settings, rng, execution)
    correlated = settings.noise == "correlated" and observations.n_outputs > 1
    vector = _parameter_vector(parameters, observations, correlated, scaler.names)
    resolution = affordable_resolution(settings, parameters)
    features = _choose_features(parameters, box, resolution)
    sums = FourierSums(features.grid)
    fit = FourierFit(columns, scaler, box, sample.ranges, vector, features, resolution, sums)
    fit = check_truncation(fit, settings.tolerance, refuse=True)
    # The size of the box depends on the ranges of the latent processes, which are well determined
    # only by a joint fit.
    n = FIRST_FIT_COEFFICIENTS // coefficients_per_feature(parameters)
    coarse = Resolution(max(0.01, settings.tolerance), 1e-3, n, n)
    features = _choose_features(parameters, box, coarse)
    sums = FourierSums.from_observations(features.grid, observations)
    first = replace(fit, features=features, resolution=coarse, sums=sums)
    vector = _optimise(first, settings.max_iter, execution)[0].vector
    features = _choose_features(vector.start, box, resolution)
    return replace(fit, vector=vector, features=features, sums=FourierSums(features.grid))


def absorb(fit: FourierFit, sums: FourierSums) -> FourierFit:
    """Add the sums over further data to a fit."""
    fit = replace(fit, sums=fit.sums + sums)
    observed = {d for outputs in fit.sums.patterns for d in outputs}
    for d, name in enumerate(fit.scaler.names):
        if d not in observed:
            raise ValueError(
                f"The data so far have no reading of output {name!r}. Absorb data that "
                "contain readings of this output before fitting."
            )
    _check_still_constant(fit)
    return fit


def optimise(fit: FourierFit, tolerance: float, max_iter: int, execution: Execution) -> FourierFit:
    """Optimise kernels, noise and weights given all sums, starting at the latest parameters."""
    fit, message = _optimise(fit, max_iter, execution)
    if message:
        warn(f"Fitting to sums: {message}.", ConvergenceWarning)
    return check_truncation(fit, tolerance, refuse=False)


def check_truncation(fit: FourierFit, tolerance: float, *, refuse: bool) -> FourierFit:
    """Warn if the features leave out a larger share of an output's variance than `tolerance`.

    If `refuse` is true, raise an error instead when the share is too large for a useful model. If
    `refuse` is false, warn only when the share has increased since the last warning.
    """
    shares = fit.model.truncated_shares
    d = int(shares.argmax())
    share = float(shares[d])
    if not refuse and share <= max(tolerance, fit.warned_share):
        return fit
    kernels = ", ".join(str(kernel) for kernel in fit.parameters.kernels)
    extent = " × ".join(f"{side:g}" for side in np.ptp(fit.box, axis=0))
    found = (
        f"{fit.features.n_functions} functions leave out {share:.2g} of the variance of output "
        f"{fit.scaler.names[d]!r}, more than tolerance={tolerance:g}: the length-scales of "
        f"{kernels} are short, or the kernels rough, for a region of {extent}."
    )
    if refuse and share > max(MAX_SHARE, tolerance):
        raise ValueError(
            f"{found} This is too much for a useful model. Increase n_functions (time grows with "
            "its cube), use a smaller region or a smoother kernel, or use EMGPR, which predicts "
            "from neighbours."
        )
    if share > tolerance:
        warn(
            f"{found} Predictions treat this variance as uncertainty. Increase n_functions (time "
            "grows with its cube), or increase tolerance to accept it."
        )
    return replace(fit, warned_share=share)


def affordable_resolution(settings: FourierSettings, parameters: LMCParameters) -> Resolution:
    """Return the criteria for the choice of features."""
    if isinstance(settings.n_functions, str):
        n = coefficients_per_feature(parameters)
        n_cheap, n_max = CHEAP_COEFFICIENTS // n, MAX_COEFFICIENTS // n
    else:
        n_cheap = n_max = int(settings.n_functions)
    return Resolution(settings.tolerance, IDEAL_SHARE, n_cheap, n_max)


def coefficients_per_feature(parameters: LMCParameters) -> int:
    """Return the number of independent coefficients for each feature."""
    Q, D, rank = parameters.W.shape
    return min(D, Q * rank)


def log_likelihood_function(
    vector: ParameterVector, likelihood: FourierLikelihood
) -> Callable[[Float[Array, " p"]], tuple[float, Float[Array, " p"]]]:
    """Return a function that computes the log-likelihood of a parameter vector and its gradient."""
    features = likelihood.features

    def log_likelihood(x: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        parameters, W = vector.unpack(x, vector.start.W)
        variances, totals = (
            [function(kernel, q) for q, kernel in enumerate(parameters.kernels)]
            for function in (features.variances_of, features.total_variance)
        )
        s = np.stack([s_q for s_q, _ in variances])
        truncated = features.truncated_variances(parameters.kernels)
        B = coregionalization(W)
        # The variance that the features leave out is added to the noise.
        noise = parameters.noise + np.einsum("qde,q->de", B, truncated)
        fit = likelihood.log_likelihood(W, noise, s)
        of_s = np.divide(fit.of_log_variances, s, out=np.zeros_like(s), where=s > 0)
        of_truncated = np.einsum("de,qde->q", fit.of_noise, B) * (truncated > 0)
        of_theta = [
            gradient @ of_s[q] + of_truncated[q] * (totals[q][1] - 2 * gradient.sum(axis=1))
            for q, (_, gradient) in enumerate(variances)
        ]
        of_noise = vector.noise.pullback(vector.split(x, W)[1], fit.of_noise)
        of_W = fit.of_weights + 2 * truncated[:, None, None] * (fit.of_noise @ W)
        of_W = vector.start.mask_gradient(of_W).ravel()
        return fit.value, np.concatenate([*of_theta, of_noise, of_W])

    return log_likelihood


def _optimise(fit: FourierFit, max_iter: int, execution: Execution) -> tuple[FourierFit, str]:
    """Optimise all parameters; if the features prove too coarse, choose new ones and repeat.

    Also return the reason why the optimisation did not converge, or "" if it converged.
    """
    history: list[Stage] = []
    n, D = fit.sums.n_readings, len(fit.scaler.names)
    for _ in range(MAX_FEATURE_CHOICES):
        vector, features = fit.vector, fit.features
        x0 = vector.pack(fit.parameters, fit.parameters.W)
        bounded = slice(len(vector.bounds))
        x0[bounded] = np.clip(x0[bounded], *vector.bounds.T)
        with limit_threads(2 * len(features.m) * D):
            result, values = maximise(
                vector,
                log_likelihood_function(vector, FourierLikelihood(fit.sums, features, D)),
                x0,
                n_readings=n,
                max_iter=max_iter,
                min_gain=MIN_GAIN / n,
                expected_gain=EXPECTED_GAIN,
                label="Fitting to sums",
                execution=execution,
            )
        history += [Stage("start", values[0]), *(Stage("everything", v) for v in values[1:])]
        parameters, W = vector.unpack(result.x[0], fit.parameters.W)
        fit = replace(fit, vector=replace(vector, start=replace(parameters, W=W)))
        choice = _feature_choice(fit.parameters, len(fit.box.T), fit.resolution)
        finer = replace(fit, features=choice.on_grid(fit.sums.grid, features.strides))
        share, finer_share = (each.model.truncated_shares.max() for each in (fit, finer))
        if share <= fit.resolution.tolerance or finer_share > 0.9 * share:
            break
        fit = finer
    message = vector.describe_end(result, max_iter)
    n_iter = int(result.n_iter[0])
    return replace(fit, history=history, n_iter=n_iter, converged=not message), message


def _feature_choice(
    parameters: LMCParameters, n_inputs: int, resolution: Resolution
) -> FeatureChoice:
    shares = latent_shares(parameters, n_inputs).max(axis=0)
    return FeatureChoice(parameters.kernels, shares, resolution)


def _choose_features(
    parameters: LMCParameters, box: Float[Array, "2 P"], resolution: Resolution
) -> FourierFeatures:
    """Choose features for the kernels on the padded box."""
    return _feature_choice(parameters, box.shape[1], resolution).for_region(*pad(box))


def _standardise(
    sample: TableSample, columns: Columns, scaler: OutputScaler, normalize: bool
) -> Observations:
    Z = scaler.standardise(sample.Y)
    if normalize:  # Without this, rounding would give constant outputs a tiny signal.
        Z = np.where(is_constant(sample.Y) & ~np.isnan(Z), 0.0, Z)
    return Observations.from_table(columns.inputs.to_kernel(sample.X), Z)


def _two_steps(
    observations: Observations,
    settings: FourierSettings,
    rng: np.random.Generator,
    execution: Execution,
) -> LMCParameters:
    """Fit kernels, noise and weights to a sample of sites, using the two-step method."""
    D = observations.n_outputs
    Q = D if settings.n_latents is None else int(settings.n_latents)
    rank = min(2 if settings.rank is None else int(settings.rank), D)
    kernels = kernels_per_output(settings.kernel, Q, observations)
    for kernel in kernels:
        signal, _ = split_noise(kernel)
        if signal is not None:
            # This raises if the spectral density is unknown.
            spectral_density(signal, np.zeros((1, observations.x.shape[1])), 1.0)
    with warnings.catch_warnings(), limit_threads(observations.n_readings):
        # Warnings are given only for the later optimisation, which uses all readings.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", JitterWarning)
        latents = fit_latents(
            observations, kernels, n_restarts=settings.n_restarts, max_iter=settings.max_iter,
            rng=rng, execution=execution,
        )  # fmt: skip
        own_kernels = isinstance(settings.kernel, list | tuple)
        start = initial_parameters(latents, observations, Q, rank, own_kernels=own_kernels)
        start = decouple_constant_outputs(start, observations.constant)
        members = fit_weights(
            observations, [np.arange(observations.n_sites)], start, max_iter=settings.max_iter,
            before_joint=True, execution=execution.quiet(),
        )  # fmt: skip
    return replace(start, W=members.W[0]) if members.succeeded[0] else start


def _parameter_vector(
    start: LMCParameters, observations: Observations, correlated: bool, names: Sequence[str]
) -> ParameterVector:
    """Return the vector of parameters to optimise, with bounds derived from a sample of sites."""
    vector = ParameterVector.around(start, observations, correlated=correlated, output_names=names)
    # Many sites determine correlated noise well, so its lower bounds can be smaller than usual.
    first = vector.n_kernel_parameters
    bounds = vector.bounds.copy()
    bounds[first : first + len(names), 0] = np.log(start.noise_bounds[:, 0])
    return replace(vector, bounds=bounds)


def _check_still_constant(fit: FourierFit) -> None:
    """Raise ValueError if an output that was constant at the start of the fit varies now."""
    parameters, scaler = fit.parameters, fit.scaler
    rounding = ROUNDING * np.abs(scaler.shift) / scaler.scale
    limits = 4 * np.diagonal(parameters.noise) + rounding**2
    for d, name in enumerate(scaler.names):
        was_constant = parameters.free is not None and not parameters.free[:, d].any()
        if was_constant and fit.sums.mean_square(d) > limits[d]:
            raise ValueError(
                f"Output {name!r} was constant at the start but varies now, so its scale is "
                "unknown. Start again with start(X, y), using a sample in which it varies."
            )
