"""Fits to data simulated from the model, so that the true parameters are known.

Four outputs are simulated at 400 sites in the unit square. They are weighted sums of four latent
processes plus correlated noise. The ranges of the processes are short compared with the square. The
results for a simulated data set are the fitted noise covariance, the fitted covariance at lag zero,
and the coverage of 95% intervals for 100 new readings of each output. A table compares these
results with their true or nominal values.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.experiments.fitting import Settings, build, one_thread_with_notes
from emgpr.experiments.rows import Job, Row, complete
from emgpr.experiments.tables import markdown_table

Array = np.ndarray

CAPTION = """Results for simulated data sets (draws). "noise" and "variance" are the ratios of
fitted noise and signal variances to their true values. These ratios are averaged over draws; the
table shows their range over outputs and the largest standard error. "covariance, worst" is the
largest error of the mean fitted covariance at lag zero, relative to the true signal variances.
"inside 95%" is the share of new readings inside their 95% intervals."""

N_NEW = 100  # new readings of each output
KERNELS: tuple[Kernel, ...] = (RBF(0.05), RBF(0.07), Matern(0.1, nu=1.5), RBF(0.12))
W = np.array(
    [[0.9, 0.5, 0.0, 0.3], [0.0, 0.7, -0.5, 0.3], [0.3, 0.0, 0.7, 0.2], [0.2, 0.3, 0.3, 0.8]]
)
NOISE = 0.15 * (0.7 * np.eye(4) + 0.3)
SETTINGS: Settings = {"estimator": "EMGPR"}


def jobs(*, draws: int = 50, sites: int = 400, settings: Settings = SETTINGS) -> list[Job]:
    """Return one job for each simulated table."""
    return [{"draw": draw, "sites": sites, "settings": settings} for draw in range(draws)]


def reproduce(
    path: Path,
    *,
    draws: int = 50,
    sites: int = 400,
    settings: Settings = SETTINGS,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Run the jobs whose results are not in the file at `path` yet, and return all results."""
    all_jobs = jobs(draws=draws, sites=sites, settings=settings)
    return complete(all_jobs, work, path, n_jobs=n_jobs, label="Known truth", verbose=verbose)


def work(job: Job) -> Row:
    """Simulate and fit one data set; return the fitted parameters and the interval coverage."""
    n = job["sites"]
    X, Y = draw_table(np.random.default_rng(job["draw"]), n + N_NEW)
    with one_thread_with_notes() as notes:
        model = build(job["settings"], random_state=job["draw"]).fit(X[:n], Y[:n])
        low, high = model.predict_quantiles(X[n:], [0.025, 0.975])
    units = np.outer(model.output_scaler_.scale, model.output_scaler_.scale)
    noise = model.noise_ if model.noise_.ndim == 2 else np.diag(model.noise_)
    return {
        "noise": (units * noise).tolist(),
        "covariance": (units * model.coregionalization_.sum(axis=0)).tolist(),
        "coverage": ((Y[n:] >= low) & (Y[n:] <= high)).mean(axis=0).tolist(),
        "notes": notes(),
    }


def draw_table(rng: np.random.Generator, N: int) -> tuple[Float[Array, "N 2"], Float[Array, "N D"]]:
    """Draw sites at random, and simulate readings of all outputs at these sites."""
    X = rng.uniform(size=(N, 2))
    latents = [
        np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N) for kernel in KERNELS
    ]
    errors = rng.normal(size=(N, len(NOISE))) @ np.linalg.cholesky(NOISE).T
    return X, np.column_stack(latents) @ W + errors


def text(rows: Sequence[Row]) -> str:
    """Return a table with one row, which compares fitted parameters with their true values."""
    true = W.T @ W
    variances = np.diagonal(true)
    noise = np.array([np.diagonal(row["noise"]) for row in rows]) / np.diagonal(NOISE)
    fitted = np.array([row["covariance"] for row in rows])
    fitted_variances = np.einsum("ndd->nd", fitted) / variances
    worst = np.abs(fitted.mean(axis=0) - true) / np.sqrt(np.outer(variances, variances))
    coverage = np.array([row["coverage"] for row in rows])
    cells = [
        str(len(rows)),
        _range(noise),
        _range(fitted_variances),
        f"{100 * worst.max():.0f}%",
        _range(coverage, 3),
    ]
    header = ["draws", "noise", "variance", "covariance, worst", "inside 95%"]
    return markdown_table(header, [cells])


def _range(values: Float[Array, "n D"], digits: int = 2) -> str:
    """Average the values over draws, and return the range over outputs and the largest s.e."""
    mean = values.mean(axis=0)
    error = values.std(axis=0).max() / np.sqrt(max(1, len(values) - 1))
    return f"{mean.min():.{digits}f}-{mean.max():.{digits}f} ± {error:.{digits}f}"
