"""transform="auto": the simplest maps under which readings left out are likeliest, together.

For each output and candidate a Gaussian process is learned from the transformed readings (step 1,
with Matern(nu=0.5), which supposes least of how smooth they are), and every reading is predicted
from all others. Its log density is taken on the user's scale, Jacobian included, less what the
map's own parameters would gain by chance (Akaike: one in all for each), so that a normal-score,
with its many knots, competes fairly with a log, which has none.

A positive output gets the log unless the data speak against it: its predictions then stay
positive. Others are left as they are unless the data ask for more. To speak, a difference must be
beyond two standard errors.

Outputs are not chosen for one by one: what is left of them at a site should be jointly
Gaussian too, or their correlation is lost on the model. So the density of a site is that of its
readings' residuals with their correlations, and outputs take turns until none would change.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Matern

from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.execution import each
from emgpr.latents import Latent, fit_latents
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.prediction import held_out
from emgpr.transforms.maps import centre_and_spread, is_constant
from emgpr.transforms.marginals import NAMED, Marginals

Array = np.ndarray

ENOUGH = 400  # sites
FEWEST = 20  # readings
STARTS = 3
ROUNDS = 4


@dataclass(frozen=True)
class Held:
    """Log density and standardised residual of each reading of an output, left out; NaN if none."""

    density: Float[Array, " n"]
    residual: Float[Array, " n"]


def choose_transforms(
    X: Float[Array, "N P"],
    Y: Float[Array, "N D"],
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[str | None]:
    """None, "log", "yeo-johnson" or "normal-score" for each output.

    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> level = np.sin(X) + 0.3 * rng.normal(size=(80, 1))
    >>> choose_transforms(X, np.hstack([level, np.exp(level)]))
    [None, 'log']
    """
    rng = np.random.default_rng(0)  # the choice is the data's, not the seed's
    # The sites with most readings, at random among equals: they tell most of the outputs jointly.
    order = np.lexsort([rng.uniform(size=len(Y)), np.isnan(Y).sum(axis=1)])
    rows = np.sort(order[:ENOUGH])
    X, Y = X[rows], Y[rows]
    problems = [(X, Y[:, d]) for d in range(Y.shape[1])]
    label = "Transforms: outputs"
    held = each(_candidates, problems, n_jobs=n_jobs, label=label, verbose=verbose, ledger=ledger)
    chosen = [max(own, key=lambda name: np.nansum(own[name].density)) for own in held]
    for _ in range(ROUNDS):
        before = list(chosen)
        for d in range(len(chosen)):
            chosen[d] = _simplest(held, chosen, d)
        if chosen == before:
            break
    return chosen


def candidates(values: Float[Array, " n"]) -> list[str | None]:
    """What an output of these readings may get, the simplest first: it needs no reason.

    >>> candidates(np.arange(1.0, 30.0))[0], candidates(np.arange(9.0))
    ('log', [None])
    """
    if len(values) < FEWEST or is_constant(values[:, None])[0]:
        return [None]
    names: list[str | None] = ["log", None] if values.min() > 0 else [None]
    return names + [name for name in NAMED if name not in ("log", None)]


def _candidates(problem: tuple[Array, Array]) -> dict[str | None, Held]:
    X, y = problem
    there = ~np.isnan(y)
    values = y[there]
    names = candidates(values)
    if len(names) == 1:
        nothing = np.zeros(len(y))
        return {None: Held(nothing, nothing)}
    # In units of its own: a density in others may overflow.
    values = values / centre_and_spread(values[:, None])[1]
    answer = {}
    for name in names:
        held = _left_out(X[there], values, name)
        density, residual = np.full((2, len(y)), np.nan)
        density[there], residual[there] = held.density, held.residual
        answer[name] = Held(density, residual)
    return answer


def _left_out(X: Array, y: Float[Array, " n"], name: str | None) -> Held:
    """Every reading given all others."""
    marginals = Marginals.learned(y[:, None], name)
    z = marginals.forward(y[:, None])
    latent = _learned(X, z)
    noise = np.array([[latent.noise]])
    table = Observations.from_table(X, z)
    each_alone = np.arange(len(y))[None]
    belief = held_out(table, each_alone, [latent.kernel], np.ones((1, 1, 1, 1)), noise)
    density = marginals.log_density(belief, y[:, None])[:, 0]
    residual = (z[:, 0] - belief.mean[0, :, 0]) / np.sqrt(belief.cov[0, :, 0, 0])
    return Held(density - marginals.maps[0].n_parameters / len(y), residual)


def _learned(X: Array, z: Float[Array, "n 1"]) -> Latent:
    table = Observations.from_table(X, z)
    starts = np.random.default_rng(0)
    return fit_latents(table, [Matern(nu=0.5)], n_restarts=STARTS, max_iter=30, rng=starts)[0]


def _simplest(held: list[dict[str | None, Held]], chosen: list[str | None], d: int) -> str | None:
    """Of output d's candidates the first, in order of simplicity, that is as good as the best."""
    densities = {
        name: _joint_density([held[i][c if i != d else name] for i, c in enumerate(chosen)])
        for name in held[d]
    }
    best = max(densities, key=lambda name: float(densities[name].sum()))
    for name, density in densities.items():
        lead = paired_difference(densities[best], density)
        if name == best or lead.mean <= 2 * lead.standard_error:
            return name
    return best


def _joint_density(held: list[Held]) -> Float[Array, " n"]:
    """Log density of what was read at each site, residuals correlated as they are where all are."""
    density = np.nansum([own.density for own in held], axis=0)
    r = np.array([own.residual for own in held])
    whole = ~np.isnan(r).any(axis=0)
    D = len(r)
    if D == 1 or whole.sum() < 5 * D:
        return density
    r = np.clip(r[:, whole], -5.0, 5.0)  # a single wild reading should not set the correlation
    R = r @ r.T / r.shape[1]
    spread = np.sqrt(np.maximum(np.diagonal(R), 1e-12))
    R = R / spread[:, None] / spread + 1e-6 * np.eye(D)
    told = np.einsum("in,ij,jn->n", r, np.linalg.inv(R) - np.eye(D), r)
    density[whole] -= 0.5 * (told + np.linalg.slogdet(R)[1])
    return density
