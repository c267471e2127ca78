"""Coverage of 95% intervals with and without the uncertainty of the parameters.

Four outputs are simulated at a few sites in the unit square as weighted sums of four latent
processes plus correlated noise, and `EMGPR()` is fitted to them. The table shows the shares of new
readings and of new signals inside their 95% intervals: with fitted parameters treated as known, and
with their uncertainty. Run `python -m benchmarks.coverage 100` for 100 tables of each size.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR
from emgpr.covariance.vecchia_table import VecchiaTable
from emgpr.experiments.truth import NOISE, W
from emgpr.fitting.parameter_uncertainty import independent_directions
from emgpr.noise import NoiseParameters, noise_prior, output_variances
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, LMCPosterior, principal_directions
from emgpr.weights.sill_prior import PRECISION

Array = np.ndarray

KERNELS = (RBF(0.2), RBF(0.3), Matern(0.4, nu=1.5), RBF(0.5))
SIZES = (12, 30, 80)
N_NEW = 100
STEP = 1e-5


def draw(seed: int, N: int) -> tuple[Array, Array, Array]:
    """Return sites (N, 2), signals (N, 4) and readings (N, 4)."""
    rng = np.random.default_rng([N - N_NEW, seed])
    X = rng.uniform(size=(N, 2))
    latents = [
        np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N) for kernel in KERNELS
    ]
    signals = np.column_stack(latents) @ W
    return X, signals, signals + rng.normal(size=(N, 4)) @ np.linalg.cholesky(NOISE).T


def with_uncertainty(posterior: LMCPosterior) -> LMCPosterior:
    """Return the posterior with directions from the exact information matrix."""
    model, table = posterior.model, posterior.observations
    noise = NoiseParameters(len(model.noise), model.correlated_noise)
    (weights,), theta = model.weights, np.concatenate([kernel.theta for kernel in model.kernels])
    basis = noise.derivatives(noise.vector(model.noise))
    blocks = VecchiaTable.from_sites(table, model.kernels, table.n_sites - 1)
    information = blocks.information(theta, weights, model.noise, basis)
    information += prior_curvature(table, model, noise)
    alone = None
    if posterior.independent is not None:
        alone = independent_directions(table, posterior.independent)
    return replace(
        posterior,
        directions=principal_directions(information, model, noise, table),
        independent_directions=alone,
    )


def prior_curvature(table: Observations, model: LMCModel, noise: NoiseParameters) -> Array:
    """Return the positive part of the curvature of the priors on the noise and on the sills."""
    (weights,), vector = model.weights, noise.vector(model.noise)
    t, c = sum(kernel.n_dims for kernel in model.kernels), noise.size
    curvature = np.zeros((t + c + weights.size,) * 2)
    prior = noise_prior(output_variances(table), weak=True)

    def gradient(v: Array) -> Array:
        return noise.pullback(v, prior(noise.matrix(v))[1])

    hessian = [(gradient(vector - e) - gradient(vector + e)) / (2 * STEP) for e in STEP * np.eye(c)]
    values, vectors = np.linalg.eigh(0.5 * (np.array(hessian) + np.transpose(hessian)))
    curvature[t : t + c, t : t + c] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    variance = np.array([kernel.diag(table.x).mean() for kernel in model.kernels])
    sill = np.einsum("qdk,q->d", weights**2, variance) + np.diagonal(model.noise)
    of_noise = noise.derivatives(vector)
    for d in np.flatnonzero(~table.constant):
        of_weights = np.zeros_like(weights)
        of_weights[:, d] = 2 * weights[:, d] * variance[:, None]
        of_sill = np.concatenate([np.zeros(t), of_noise[:, d, d], of_weights.ravel()]) / sill[d]
        curvature += PRECISION * np.outer(of_sill, of_sill)
    return curvature


def coverage(seed: int, N: int) -> Array:
    """Return shares of readings and signals inside: known parameters, then uncertain ones."""
    X, signals, readings = draw(seed, N + N_NEW)
    with warnings.catch_warnings(action="ignore"):
        model = EMGPR(random_state=0, output_transform=None, parameter_uncertainty=False)
        model.set_params(output_bounds=None).fit(X[:N], readings[:N])
    scaler, x = model.output_scaler_, model.input_spec_.read(X[N:])
    shares = []
    for posterior in (model.posterior_, with_uncertainty(model.posterior_)):
        for truth, include_noise in ((readings, True), (signals, False)):
            predicted = posterior.predict(x, include_noise=include_noise)
            std = np.sqrt(np.einsum("mdd->md", predicted.cov[0]))
            z = (truth[N:] - scaler.shift) / scaler.scale
            shares.append((np.abs(z - predicted.mean[0]) < 1.96 * std).mean())
    return np.array(shares)


def main(n_tables: int) -> None:
    """Print a row for each number of sites."""
    print("| sites | readings, known | signals, known | readings, uncertain | signals, uncertain |")
    print("|--:|--:|--:|--:|--:|")
    for N in SIZES:
        shares = np.array([coverage(seed, N) for seed in range(n_tables)])
        mean, error = shares.mean(axis=0), shares.std(axis=0) / np.sqrt(n_tables)
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
        print(f"| {N} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
