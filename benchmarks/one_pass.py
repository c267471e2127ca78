"""OnePassGP with many sites: its time and memory, and its difference from the exact model.

    PYTHONPATH=src python -m benchmarks.one_pass [--places 10000 100000 1000000]
    PYTHONPATH=src python -m benchmarks.one_pass --dense 2000 [--learn] [--device cuda]

Three outputs are simulated from a known model with three latent processes and correlated noise. A
fifth of the readings is missing. To limit memory, sites are simulated in chunks of 100,000. A row
is printed for each number of sites, with these columns:

- processor time in seconds for the start of the fit, the pass over the data, the optimisation, and
  100,000 predictions with standard deviations
- peak memory
- error of the predicted signals, and its ratio to the error with the true parameters
- shares of new readings and of signals inside their 95% intervals
- largest relative error of the noise covariance
- length-scales

`--dense N` compares OnePassGP with the exact model at N sites: the predictions and likelihood with
the same parameters and, with `--learn`, the likelihood of an exact model fitted to the same data.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr import EMGPR, OnePassGP
from emgpr.covariance import log_likelihood
from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.grid import FourierSums, FrequencyGrid
from emgpr.fourier.likelihood import FourierLikelihood
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, condition

Array = np.ndarray
Row = dict[str, float | int | str]

CHUNK_SITES = 100_000
N_LOCATIONS = 100_000
KERNELS: tuple[Kernel, ...] = (RBF(0.12), RBF(0.2), RBF(0.35))
W = np.array([[1.0, 0.6, -0.4], [0.0, 0.8, 0.5], [0.3, -0.2, 0.9]])[..., None]
NOISE = 0.15 * (0.7 * np.eye(3) + 0.3)
MISSING = 0.2  # share of the readings
BOX = ([0.0, 0.0], [1.0, 1.0])


class Truth:
    """Signals simulated from the model in a box wide enough to avoid periodic repetition."""

    def __init__(self, rng: np.random.Generator) -> None:
        most = 28
        self.grid = FrequencyGrid((0.0, 0.0), (3.5, 3.5), (most, most))
        axes = np.arange(most + 1), np.arange(-most, most + 1)
        m = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        features = FourierFeatures(self.grid, m[most:], (1,) * len(KERNELS))
        sd = np.tile(np.sqrt(features.variances(KERNELS)), 2)
        coefficients = np.einsum("qdk,qj->dj", W, sd * rng.normal(size=sd.shape))
        self.coefficients = features.to_grid(coefficients)

    def signals(self, x: Array) -> Array:
        """Return the signals of all outputs at locations x."""
        return self.grid.evaluate(x, self.coefficients)

    def chunk(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw n sites, and readings at these sites."""
        x = rng.uniform(size=(n, 2))
        Y = self.signals(x) + rng.multivariate_normal(np.zeros(3), NOISE, size=n)
        return x, np.where(rng.uniform(size=Y.shape) < MISSING, np.nan, Y)

    def chunks(self, n_sites: int, seed: int) -> Iterator[tuple[Array, Array]]:
        """Yield all sites and readings in chunks, which depend only on the seed."""
        rng = np.random.default_rng(seed + 1)
        for start in range(0, n_sites, CHUNK_SITES):
            yield self.chunk(min(CHUNK_SITES, n_sites - start), rng)


def measure(n_sites: int, seed: int = 0, **settings: Any) -> Row:
    """Return the cost and the accuracy of a fit to `n_sites` sites."""
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    model = OnePassGP(box=BOX, random_state=seed, **settings)
    first = next(truth.chunks(n_sites, seed))
    began = time.process_time()
    model.start(*first)
    starting, passing = time.process_time() - began, 0.0
    total: FourierSums | None = None
    for chunk in truth.chunks(n_sites, seed):
        began = time.process_time()
        sums = model.summed(*chunk)
        total = sums if total is None else total + sums
        passing += time.process_time() - began
    assert total is not None
    began = time.process_time()
    model.absorb(total)
    optimising = time.process_time() - began
    x, readings = truth.chunk(N_LOCATIONS, rng)
    began = time.process_time()
    mean, std = model.predict(x, return_std=True)
    predicting = time.process_time() - began
    signals = truth.signals(x)
    f, s = model.predict(x, return_std=True, include_noise=False)
    error, ideal = (
        np.sqrt(((found - signals) ** 2).mean()) for found in (f, predict_with_truth(model, x))
    )
    scale = model.output_scaler_.scale
    noise = model.noise_ * np.outer(scale, scale)
    return {
        "sites": n_sites,
        "functions": model.n_functions_,
        "start, s": starting,
        "pass, s": passing,
        "optimisation, s": optimising,
        "prediction, s": predicting,
        "peak, GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "error": float(error),
        "error over ideal": float(error / ideal),
        "readings inside": float(
            (np.abs(readings - mean) < 1.96 * std)[~np.isnan(readings)].mean()
        ),
        "signals inside": float((np.abs(signals - f) < 1.96 * s).mean()),
        "error of noise": float(np.abs(noise / NOISE - 1).max()),
        "length-scales": " ".join(sorted(f"{k.length_scale:.3f}" for k in model.kernels_)),
    }


def predict_with_truth(model: OnePassGP, x: Array) -> Array:
    """Predict signals from the same accumulated sums, using the true parameters."""
    scaler, fit = model.output_scaler_, model.fourier_fit_
    # The latents are ordered as in the model, since their frequencies differ.
    order = np.argsort(np.argsort([kernel.length_scale for kernel in model.kernels_]))
    kernels, weights = [KERNELS[q] for q in order], W[order] / scaler.scale[:, None]
    noise, features = NOISE / np.outer(scaler.scale, scaler.scale), fit.features
    truncated = features.truncated_variances(kernels)
    noise = noise + np.einsum("qdk,qek,q->de", weights, weights, truncated)
    likelihood = FourierLikelihood(fit.sums, features, 3)
    posterior = likelihood.posterior(weights, noise, features.variances(kernels))
    signals = features.grid.evaluate(x, features.to_grid(posterior.mean))
    return signals * scaler.scale + scaler.shift


def compare_with_dense(
    n_sites: int, seed: int = 0, device: str = "cpu", learn: bool = False
) -> Row:
    """Compare OnePassGP with the exact model, which keeps all readings."""
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    X, Y = truth.chunk(n_sites, rng)
    x, _ = truth.chunk(500, rng)
    settings: dict[str, Any] = {
        "n_latents": 3, "rank": 2, "noise": "correlated", "random_state": seed,
    }  # fmt: skip
    model = OnePassGP(box=BOX, **settings).fit(X, Y)
    mean, std = model.predict(x, return_std=True, include_noise=False)
    scaler = model.output_scaler_
    observations = Observations.from_table(X, scaler.standardise(Y))
    same = LMCModel(tuple(model.kernels_), model.weights_, model.noise_)
    dense = condition(observations, x, same, device=device)
    dense_mean, dense_std = scaler.median(dense), scaler.std(dense)
    K = kernel_matrices(model.kernels_, observations.x)
    difference = np.abs(mean - dense_mean) / dense_std
    dense_likelihood = log_likelihood(observations, model.weights_[0], model.noise_, K).value
    row: Row = {
        "sites": n_sites,
        "functions": model.n_functions_,
        "difference, sd": float(np.sqrt((difference**2).mean())),
        "at most": float(difference.max()),
        "sd over dense, least": float((std / dense_std).min()),
        "sd over dense, most": float((std / dense_std).max()),
        "log-likelihood": model.log_marginal_likelihood_value_,
        "dense": float(dense_likelihood),
    }
    if learn:
        exact = EMGPR(
            kernel=None, output_transform=None, prior=None, transfer="full", batch_size=None,
            refine="joint", conditioning="all", device=device, max_iter=250, **settings,
        ).fit(X, Y)  # fmt: skip
        # Both log-likelihoods refer to standardised outputs, but the scales differ slightly.
        units = np.log(exact.output_scaler_.scale / scaler.scale)
        shift = float(((~np.isnan(Y)) * units).sum())
        row["dense, optimised"] = exact.log_marginal_likelihood_value_ - shift
    return row


def main() -> None:
    """Run the measurements and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--places", type=int, nargs="*", default=[10_000, 100_000, 1_000_000],
        help="numbers of sites",
    )  # fmt: skip
    parser.add_argument("--dense", type=int, nargs="*", help="numbers of sites for the comparison")
    parser.add_argument("--learn", action="store_true", help="also optimise the dense model")
    parser.add_argument("--device", default="cpu", help="device for the dense model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", type=int, default=0)
    args = parser.parse_args()
    rows = (
        (measure(n, args.seed, verbose=args.verbose) for n in args.places)
        if args.dense is None
        else (compare_with_dense(n, args.seed, args.device, args.learn) for n in args.dense)
    )
    for i, row in enumerate(rows):
        if i == 0:
            print(" | ".join(row))
        cells = [f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
