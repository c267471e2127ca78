"""Tables drawn from the model, so that the truth is known: is it found, do intervals hold?

Four outputs at 400 sites of the unit square, mixtures of four latents whose ranges are short
beside it, and noise that is correlated. Of each draw: the noise and the covariance at lag zero as
learned, relative to the true ones, and the share of 100 further readings of each output inside
their 95% intervals.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr import __version__
from emgpr.experiments.fitting import Settings, build, quietly
from emgpr.experiments.rows import Job, Row, complete
from emgpr.experiments.text import aligned

Array = np.ndarray

CAPTION = """Means over draws, with their standard errors: noise variances and variances of the
outputs as learned, relative to the true ones; the largest error of the mean covariance at lag zero,
relative to the outputs' true variances; the share of new readings inside their 95% intervals."""

N_NEW = 100
KERNELS: tuple[Kernel, ...] = (RBF(0.05), RBF(0.07), Matern(0.1, nu=1.5), RBF(0.12))
W = np.array(
    [[0.9, 0.5, 0.0, 0.3], [0.0, 0.7, -0.5, 0.3], [0.3, 0.0, 0.7, 0.2], [0.2, 0.3, 0.3, 0.8]]
)
NOISE = 0.15 * (0.7 * np.eye(4) + 0.3)
SETTINGS: Settings = {"estimator": "EMGPR"}


def reproduce(
    path: Path,
    *,
    draws: int = 50,
    sites: int = 400,
    settings: Settings = SETTINGS,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """A row a draw; those already in the file at `path` are kept."""
    asked: list[Job] = [
        {"draw": draw, "sites": sites, "settings": settings, "version": __version__}
        for draw in range(draws)
    ]
    return complete(asked, work, path, n_jobs=n_jobs, label="Known truth", verbose=verbose)


def work(job: Job) -> Row:
    """What is learned of one draw."""
    X, Y = drawn(np.random.default_rng(job["draw"]), job["sites"] + N_NEW)
    seen = slice(job["sites"])
    with quietly() as notes:
        model = build(job["settings"], random_state=job["draw"]).fit(X[seen], Y[seen])
        low, high = model.predict_quantiles(X[job["sites"] :], [0.025, 0.975])
    units = np.outer(model._scale.scale, model._scale.scale)
    noise = np.atleast_2d(model.noise_)
    noise = np.diag(model.noise_) if noise.shape[0] == 1 else noise
    new = Y[job["sites"] :]
    return {
        "noise": (units * noise).tolist(),
        "covariance": (units * model.coregionalization_.sum(axis=0)).tolist(),
        "coverage": ((new >= low) & (new <= high)).mean(axis=0).tolist(),
        "notes": notes(),
    }


def drawn(rng: np.random.Generator, N: int) -> tuple[Float[Array, "N 2"], Float[Array, "N D"]]:
    """Sites and readings."""
    X = rng.uniform(size=(N, 2))
    latents = [
        np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N) for kernel in KERNELS
    ]
    errors = rng.normal(size=(N, len(NOISE))) @ np.linalg.cholesky(NOISE).T
    return X, np.column_stack(latents) @ W + errors


def text(rows: Sequence[Row]) -> str:
    """One line: what was learned beside what is true."""
    covariance = W.T @ W
    variances = np.diagonal(covariance)
    noise = np.array([np.diagonal(row["noise"]) for row in rows]) / np.diagonal(NOISE)
    learned = np.array([row["covariance"] for row in rows])
    own = np.einsum("ndd->nd", learned) / variances
    worst = np.abs(learned.mean(axis=0) - covariance) / np.sqrt(np.outer(variances, variances))
    coverage = np.array([row["coverage"] for row in rows])
    cells = [
        str(len(rows)),
        _spread(noise),
        _spread(own),
        f"{100 * worst.max():.0f}%",
        _spread(coverage, 3),
    ]
    return aligned(["draws", "noise", "variance", "covariance, worst", "inside 95%"], [cells])


def _spread(values: Float[Array, "n D"], digits: int = 2) -> str:
    """The range over outputs of the mean over draws, and the largest standard error."""
    mean = values.mean(axis=0)
    error = values.std(axis=0).max() / np.sqrt(max(1, len(values) - 1))
    return f"{mean.min():.{digits}f}-{mean.max():.{digits}f} ± {error:.{digits}f}"
