"""Choice of transforms for output_transform="auto", using leave-one-out cross-validation.

For each output and each candidate transform, a Gaussian process is fitted to the transformed
readings. Its kernel is Matern(nu=0.5), which assumes little smoothness. Every reading is then
predicted from all other readings. The score is the log density of the readings in original units,
including the Jacobian, minus Akaike's penalty of one for each parameter of the transform. With this
penalty, the normal score, which has many knots, can be compared with the log, which has no
parameters.

Candidates are ordered by simplicity: None (no transform), the log, then the others. The choice is
the simplest candidate whose score is at most two standard errors below the best score. If None is
chosen for an output with bounds, such as an output without negative readings, "softplus" takes its
place: the map onto the interval that is nearly the identity away from the bounds. The log is thus
taken where left-out readings clearly prefer it to no transform.

The transforms of the outputs are not chosen independently of each other. The residuals of all
outputs at a site should be jointly Gaussian, since otherwise the model cannot use their
correlations. The comparison therefore uses the joint density of the readings at a site, which
includes the correlations of the residuals. The choices are revised for one output after the other
until none of them changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Matern

from emgpr.arrays import inv
from emgpr.latents import fit_latents
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.prediction import LMCModel, leave_out
from emgpr.transforms.location_scale import is_constant, mean_and_std
from emgpr.transforms.output_bounds import NON_NEGATIVE, Interval, bounds_per_output
from emgpr.transforms.scaler import OutputScaler

Array = np.ndarray

MAX_SITES = 400  # number of sites used to compare transforms
MIN_READINGS = 20  # An output with fewer readings is not transformed.
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
    problems = [(X, Y[:, d], bounds[d]) for d in range(Y.shape[1])]
    scores = parallel_map(_score_candidates, problems, execution, label="Transforms: outputs")
    chosen = [
        max(by_name, key=lambda name: np.nansum(by_name[name].log_density)) for by_name in scores
    ]
    for _ in range(MAX_ROUNDS):
        before = list(chosen)
        for d in range(len(chosen)):
            chosen[d] = _simplest(scores, chosen, d)
        if chosen == before:
            break
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
    """
    if len(values) < MIN_READINGS or is_constant(values[:, None])[0]:
        return [None if bounds is None else "softplus"]
    if bounds is None:
        return [None, "yeo-johnson", "normal-score"]
    takes_log: list[str | None] = (
        [None, "log"] if bounds == NON_NEGATIVE and values.min() > 0 else []
    )
    return [*takes_log, "softplus", "yeo-johnson", "normal-score"]


def _score_candidates(problem: tuple[Array, Array, Interval | None]) -> Scores:
    """Score every candidate transform for one output."""
    X, y, bounds = problem
    measured = ~np.isnan(y)
    values = y[measured]
    names = candidates(values, bounds)
    if len(names) == 1:
        zeros = np.zeros(len(y))
        return {names[0]: LeftOutScores(zeros, zeros)}
    unit = mean_and_std(values[:, None])[1][0]  # In other units, densities could overflow.
    values = values / unit
    if bounds is not None:
        bounds = bounds[0] / unit, bounds[1] / unit
    scores = {}
    for name in names:
        of_readings = _score(X[measured], values, name, None if name is None else bounds)
        log_density, residual = np.full((2, len(y)), np.nan)
        log_density[measured], residual[measured] = of_readings.log_density, of_readings.residual
        scores[name] = LeftOutScores(log_density, residual)
    return scores


def _score(
    X: Array, y: Float[Array, " n"], name: str | None, bounds: Interval | None
) -> LeftOutScores:
    """Score a transform by predicting every reading of an output from its other readings."""
    scaler = OutputScaler.fit(y[:, None], name, bounds=bounds)
    z = scaler.standardise(y[:, None])
    table = Observations.from_table(X, z)
    latent = fit_latents(
        table,
        [Matern(nu=0.5)],
        n_restarts=N_RESTARTS,
        max_iter=MAX_ITER,
        rng=np.random.default_rng(0),
    )[0]
    model = LMCModel((latent.kernel,), np.ones((1, 1, 1, 1)), np.array([[latent.noise]]))
    left_out = leave_out(table, np.arange(len(y))[None], model)
    log_density = scaler.log_density(left_out, y[:, None])[:, 0]
    residual = (z[:, 0] - left_out.mean[0, :, 0]) / np.sqrt(left_out.cov[0, :, 0, 0])
    return LeftOutScores(log_density - scaler.transforms[0].n_parameters / len(y), residual)


def _simplest(scores: list[Scores], chosen: list[str | None], d: int) -> str | None:
    """Return the simplest candidate for output d that is not significantly worse than the best."""
    densities = {
        name: _joint_log_density([scores[i][c if i != d else name] for i, c in enumerate(chosen)])
        for name in scores[d]
    }
    best = max(densities, key=lambda name: float(densities[name].sum()))

    def as_good_as_best(name: str | None) -> bool:
        lead = paired_difference(densities[best], densities[name])
        return name == best or lead.mean <= 2 * lead.standard_error

    return next(filter(as_good_as_best, densities))


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
