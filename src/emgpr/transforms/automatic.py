"""Choice of transforms for output_transform="auto", using leave-one-out cross-validation.

For each output, a Gaussian process is fitted to the normal scores of its readings. Its kernel is
Matern(nu=0.5), which assumes little smoothness. Increasing transforms of an output hardly differ in
their correlations, so all candidate transforms share its length-scale and its ratio of noise to
signal. If P is the inverse covariance of the readings and z are the transformed readings, each
reading is predicted from all others with the residual (Pz)_i / P_ii and the variance c / P_ii, so
that one inverse is enough for all candidates. The factor c is estimated for each candidate. The
score is the log density of the readings in original units, including the Jacobian, minus Akaike's
penalty of one for each parameter of the transform. With this penalty, the normal score, which has
many knots, can be compared with the log, which has no parameters. The normal score is not a
candidate if more than half of the readings repeat others, as prices do: its density is then high at
the repeated values, even if its predictions are worse.

Candidates are ordered by simplicity: None (no transform), the log, then the others. The choice is
the simplest candidate whose score is at most two standard errors below the best score. If None is
chosen for an output with bounds, such as an output without negative readings, "softplus" takes its
place: the map onto the interval that is nearly the identity away from the bounds. The log is thus
taken where left-out readings clearly prefer it to no transform.

The transforms of the outputs are not chosen independently of each other. The residuals of all
outputs at a site should be jointly Gaussian, since otherwise the model cannot use their
correlations. The comparison therefore uses the joint density of the readings at a site, which
includes the correlations of the residuals. The choices are revised for one output after the other
until none of them changes. This can end in a combination in which no single change is better,
although several are. The revision therefore starts from the simplest candidate of every output, and
from the one with the best score. The second result is chosen only if it is significantly better.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from sklearn.gaussian_process.kernels import Matern

from emgpr.arrays import cholesky, diagonal, inv
from emgpr.kernels import kernel_matrix
from emgpr.latents import Exact, Latent, fit_latents
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.prediction import GaussianMixture
from emgpr.transforms.location_scale import is_constant, mean_and_std
from emgpr.transforms.output_bounds import NON_NEGATIVE, Interval, bounds_per_output
from emgpr.transforms.scaler import OutputScaler

Array = np.ndarray

MAX_SITES = 400  # number of sites used to compare transforms
MIN_READINGS = 20  # An output with fewer readings is not transformed.
MIN_DISTINCT = 0.5  # share of distinct readings, without which the normal score is not a candidate
FIT_SITES = 200  # number of these sites used to fit the length-scale and the noise
N_RESTARTS, MAX_ITER = 3, 30  # for the optimisation in each fit
MAX_ROUNDS = 4  # number of times that the choices are revised
MIN_COMPLETE_SITES = 5  # for each output; with fewer, correlations are not estimated
MAX_RESIDUAL = 5.0  # in standard deviations, to limit the influence of outliers on correlations


@dataclass(frozen=True)
class LeftOutScores:
    """Leave-one-out log density and standardised residual of each reading of one output.

    Both are NaN for missing readings.
    """

    log_density: Float[Array, " n"]
    residual: Float[Array, " n"]


Scores = dict[str | None, LeftOutScores]  # scores of one output, with names of transforms as keys


def choose_transforms(
    X: Float[Array, "N P"],
    Y: Float[Array, "N D"],
    bounds: Sequence[Interval | None] | None = None,
    *,
    execution: Execution = DEFAULT_EXECUTION,
) -> list[str | None]:
    """Choose None, "softplus", "log", "yeo-johnson" or "normal-score" for each output.

    `bounds` are those of every output; by default, they are derived from the readings.

    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> f = np.sin(X + [0, 2, 4]) + 0.3 * rng.normal(size=(80, 3))
    >>> choose_transforms(X, np.column_stack([f[:, 0], np.exp(2 * f[:, 1]), 20 + f[:, 2]]))
    [None, 'log', 'softplus']
    """
    if bounds is None:
        names = [str(d) for d in range(Y.shape[1])]
        bounds = bounds_per_output("auto", names, Y, ["auto"] * len(names))
    rng = np.random.default_rng(0)  # With a fixed seed, the choice depends only on the data.
    # Use the sites with the most readings, which are most informative about joint densities. Sites
    # with equally many readings are in random order.
    order = np.lexsort([rng.uniform(size=len(Y)), np.isnan(Y).sum(axis=1)])
    rows = np.sort(order[:MAX_SITES])
    X, Y = X[rows], Y[rows]
    outputs = [_Candidates.fit(Y[:, d], bounds[d]) for d in range(Y.shape[1])]
    problems = list(
        zip([X] * len(outputs), outputs, _fit_scores(X, outputs, execution), strict=True)
    )
    scores = parallel_map(_score_candidates, problems, execution, label="Transforms: outputs")
    simplest = [next(iter(by_name)) for by_name in scores]
    best = [
        max(by_name, key=lambda name: np.nansum(by_name[name].log_density)) for by_name in scores
    ]
    chosen, other = (_revise(scores, start) for start in (simplest, best))
    lead = paired_difference(_joint_density(scores, other), _joint_density(scores, chosen))
    if lead.mean > 2 * lead.standard_error:
        chosen = other
    return [
        "softplus" if name is None and bound is not None else name
        for name, bound in zip(chosen, bounds, strict=True)
    ]


def candidates(values: Float[Array, " n"], bounds: Interval | None) -> list[str | None]:
    """Return the transforms to compare for an output with the given readings, simplest first.

    >>> candidates(np.arange(1.0, 30.0), NON_NEGATIVE)
    [None, 'log', 'softplus', 'yeo-johnson', 'normal-score']
    >>> candidates(np.arange(30.0), NON_NEGATIVE)
    ['softplus', 'yeo-johnson', 'normal-score']
    >>> candidates(np.arange(90.0) // 3 - 9.0, None)
    [None, 'yeo-johnson']
    """
    if len(values) < MIN_READINGS or is_constant(values[:, None])[0]:
        return [None if bounds is None else "softplus"]
    inside = values if bounds is None else values[(values > bounds[0]) & (values < bounds[1])]
    normal_score = ["normal-score"] if len(np.unique(inside)) >= MIN_DISTINCT * len(inside) else []
    if bounds is None:
        return [None, "yeo-johnson", *normal_score]
    takes_log: list[str | None] = (
        [None, "log"] if bounds == NON_NEGATIVE and values.min() > 0 else []
    )
    return [*takes_log, "softplus", "yeo-johnson", *normal_score]


@dataclass(frozen=True)
class _Candidates:
    """The readings of one output, and its candidate transforms with the transformed readings."""

    names: list[str | None]
    measured: Bool[Array, " N"]
    values: Float[Array, " n"]
    scalers: list[OutputScaler]  # empty if there is a single candidate, which needs no score
    z: Float[Array, "n C"]
    normal_scores: Float[Array, " n"] | None  # to which the kernel is fitted

    @classmethod
    def fit(cls, y: Float[Array, " N"], bounds: Interval | None) -> "_Candidates":
        """Fit all candidate transforms to the readings y, of which NaN are missing."""
        measured = ~np.isnan(y)
        values = y[measured]
        names = candidates(values, bounds)
        if len(names) == 1:
            return cls(names, measured, values, [], np.empty((len(values), 0)), None)
        unit = mean_and_std(values[:, None])[1][0]  # In other units, densities could overflow.
        values = values / unit
        if bounds is not None:
            bounds = bounds[0] / unit, bounds[1] / unit
        *scalers, of_scores = [
            OutputScaler.fit(values[:, None], name, bounds=None if name is None else bounds)
            for name in [*names, "normal-score"]
        ]
        z = [scaler.standardise(values[:, None])[:, 0] for scaler in scalers]
        normal_scores = of_scores.standardise(values[:, None])[:, 0]
        return cls(names, measured, values, scalers, np.column_stack(z), normal_scores)


class _ExactOnSomeSites(Exact):
    """Learner that uses at most `FIT_SITES` readings of an output."""

    def select_sites(self, table: Observations) -> Observations:
        return table.at(table.subsample(FIT_SITES))


def _fit_scores(
    X: Float[Array, "N P"], outputs: Sequence[_Candidates], execution: Execution
) -> list[Latent | None]:
    """Fit a kernel and a noise variance to the normal scores of outputs with several candidates."""
    compared = [output for output in outputs if output.scalers]
    if not compared:
        return [None] * len(outputs)
    scores = np.full((len(X), len(compared)), np.nan)
    for column, output in zip(scores.T, compared, strict=True):
        column[output.measured] = output.normal_scores
    fitted = fit_latents(
        Observations.from_table(X, scores),
        [Matern(nu=0.5)] * len(compared),
        _ExactOnSomeSites(),
        n_restarts=N_RESTARTS,
        max_iter=MAX_ITER,
        rng=np.random.default_rng(0),
        execution=execution,
    )
    latents = iter(fitted)
    return [next(latents) if output.scalers else None for output in outputs]


def _score_candidates(problem: tuple[Array, _Candidates, Latent | None]) -> Scores:
    """Score every candidate transform of an output by predicting each reading from the others."""
    X, output, latent = problem
    if latent is None:
        zeros = np.zeros(len(output.measured))
        return {name: LeftOutScores(zeros, zeros) for name in output.names}
    residuals, variances = leave_one_out(X[output.measured], output.z, latent)
    n, scores = len(output.values), {}
    for name, scaler, z, r, variance in zip(
        output.names, output.scalers, output.z.T, residuals.T, variances.T, strict=True
    ):
        left_out = GaussianMixture((z - r)[None, :, None], variance[None, :, None, None])
        log_density, residual = np.full((2, len(output.measured)), np.nan)
        log_density[output.measured] = scaler.log_density(left_out, output.values[:, None])[:, 0]
        log_density -= scaler.transforms[0].n_parameters / n
        residual[output.measured] = r / np.sqrt(variance)
        scores[name] = LeftOutScores(log_density, residual)
    return scores


def leave_one_out(
    X: Float[Array, "n P"], z: Float[Array, "n C"], latent: Latent
) -> tuple[Float[Array, "n C"], Float[Array, "n C"]]:
    """Return residual and variance of each reading given the others, for each column of z.

    The covariance is that of the latent, multiplied by the factor for which the squares of the
    standardised residuals have mean 1.
    """
    covariance = kernel_matrix(latent.kernel, X)
    diagonal(covariance)[...] += latent.noise
    P = cholesky(covariance).checked("covariance of the readings").inverse()
    precision = np.diagonal(P)[:, None]
    residuals = P @ z / precision
    factor = (residuals**2 * precision).mean(axis=0)
    return residuals, factor / precision


def _revise(scores: list[Scores], start: list[str | None]) -> list[str | None]:
    """Choose the candidate of one output after the other, given those of the others."""
    chosen = list(start)
    for _ in range(MAX_ROUNDS):
        before = list(chosen)
        for d in range(len(chosen)):
            chosen[d] = _simplest(scores, chosen, d)
        if chosen == before:
            break
    return chosen


def _simplest(scores: list[Scores], chosen: list[str | None], d: int) -> str | None:
    """Return the simplest candidate for output d that is not significantly worse than the best."""
    densities = {
        name: _joint_density(scores, [*chosen[:d], name, *chosen[d + 1 :]]) for name in scores[d]
    }
    best = max(densities, key=lambda name: float(densities[name].sum()))

    def as_good_as_best(name: str | None) -> bool:
        lead = paired_difference(densities[best], densities[name])
        return name == best or lead.mean <= 2 * lead.standard_error

    return next(filter(as_good_as_best, densities))


def _joint_density(scores: list[Scores], chosen: list[str | None]) -> Float[Array, " n"]:
    """Return the joint log density of the readings at each site, for one candidate per output."""
    return _joint_log_density([of[name] for of, name in zip(scores, chosen, strict=True)])


def _joint_log_density(scores: list[LeftOutScores]) -> Float[Array, " n"]:
    """Return the joint log density of the readings at each site.

    Correlations of the residuals are included only for sites where all outputs were measured.
    """
    log_density = np.nansum([score.log_density for score in scores], axis=0)
    r = np.array([score.residual for score in scores])
    complete = ~np.isnan(r).any(axis=0)
    D = len(r)
    if D == 1 or complete.sum() < MIN_COMPLETE_SITES * D:
        return log_density
    r = np.clip(r[:, complete], -MAX_RESIDUAL, MAX_RESIDUAL)
    R = r @ r.T / r.shape[1]
    std = np.sqrt(np.maximum(np.diagonal(R), 1e-12))
    R = R / std[:, None] / std + 1e-6 * np.eye(D)
    quadratic_form = np.einsum("in,ij,jn->n", r, inv(R) - np.eye(D), r)
    log_density[complete] -= 0.5 * (quadratic_form + np.linalg.slogdet(R)[1])
    return log_density
