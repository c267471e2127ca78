"""Coverage of 95% intervals with and without the uncertainty of the parameters.

Four outputs are simulated at a few sites in the unit square as weighted sums of four latent
processes plus correlated noise, and `EMGPR()` is fitted to them. The table shows the shares of new
readings and of new signals inside the 95% intervals that the estimator predicts: with fitted
parameters treated as known (`parameter_uncertainty=False`), and by default. The last columns show
the average widths of the default intervals relative to the others. Run
`python -m benchmarks.coverage 100` for 100 tables of each size.
"""

import sys
import warnings

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR
from emgpr.experiments.truth import NOISE, W

Array = np.ndarray

KERNELS = (RBF(0.2), RBF(0.3), Matern(0.4, nu=1.5), RBF(0.5))
SIZES = (12, 30, 80)
N_NEW = 100


def draw(seed: int, N: int) -> tuple[Array, Array, Array]:
    """Return sites (N, 2), signals (N, 4) and readings (N, 4)."""
    rng = np.random.default_rng([N - N_NEW, seed])
    X = rng.uniform(size=(N, 2))
    latents = [
        np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N) for kernel in KERNELS
    ]
    signals = np.column_stack(latents) @ W
    return X, signals, signals + rng.normal(size=(N, 4)) @ np.linalg.cholesky(NOISE).T


def coverage(seed: int, N: int) -> tuple[Array, Array]:
    """Return shares of readings and signals inside, known and uncertain, and relative widths."""
    X, signals, readings = draw(seed, N + N_NEW)
    shares, widths = [], []
    for uncertain in (False, True):
        model = EMGPR(
            random_state=0, output_transform=None, output_bounds=None,
            parameter_uncertainty=uncertain,
        )  # fmt: skip
        with warnings.catch_warnings(action="ignore"):
            model.fit(X[:N], readings[:N])
        for truth, include_noise in ((readings, True), (signals, False)):
            mean, std = model.predict(X[N:], return_std=True, include_noise=include_noise)
            shares.append((np.abs(truth[N:] - mean) < 1.96 * std).mean())
            widths.append(std.mean())
    return np.array(shares), np.array(widths[2:]) / widths[:2]


def main(n_tables: int) -> None:
    """Print a row for each number of sites."""
    print(
        "| sites | readings, known | signals, known | readings, uncertain | signals, uncertain "
        "| width, readings | width, signals |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for N in SIZES:
        shares, widths = map(np.array, zip(*(coverage(s, N) for s in range(n_tables)), strict=True))
        mean, error = shares.mean(axis=0), shares.std(axis=0) / np.sqrt(n_tables)
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
        cells += [f"{width:.2f}" for width in widths.mean(axis=0)]
        print(f"| {N} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
