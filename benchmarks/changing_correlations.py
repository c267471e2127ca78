"""Two outputs whose correlation changes over the region: GPRN and linear models.

At the location x in the unit square, the correlation of the two signals is cos(π x₁): they agree at
the left and are opposite at the right. One output is withheld at 100 of 250 sites, where the other
is known. With `--constant`, the correlation is 0.7 everywhere.
`python -m benchmarks.changing_correlations` prints the tables of docs/gprn.md.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from emgpr import EMGPR, GPRN, ICM, LMC
from emgpr.estimators import GPRegressor
from emgpr.experiments.tables import markdown_table

Array = np.ndarray

N_SITES, N_WITHHELD = 250, 100
LENGTH_SCALE, NOISE = 0.05, 0.01
CONSTANT = 0.7
SETTINGS = {"output_transform": None, "output_bounds": None}
LINEAR = {"n_latents": 2, "kernel": "rbf", **SETTINGS}
MODELS: dict[str, Callable[[int], GPRegressor]] = {
    "GPRN": lambda seed: GPRN(random_state=seed, **SETTINGS),
    "LMC of rank 1 (= SLFM)": lambda seed: LMC(random_state=seed, **LINEAR),
    "ICM": lambda seed: ICM("rbf", rank=2, random_state=seed, **SETTINGS),
    "EMGPR": lambda seed: EMGPR(random_state=seed, **SETTINGS),
}


def draw(seed: int, *, constant: bool = False) -> tuple[Array, Array]:
    """Return sites (N, 2) and readings (N, 2)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N_SITES, 2))
    squared = ((x[:, None] - x) ** 2).sum(axis=2)
    K = np.exp(-0.5 * squared / LENGTH_SCALE**2) + 1e-10 * np.eye(N_SITES)
    f, g = (np.linalg.cholesky(K) @ rng.normal(size=(N_SITES, 2))).T
    correlation = np.full(N_SITES, CONSTANT) if constant else np.cos(np.pi * x[:, 0])
    signal = np.column_stack([correlation * f + np.sqrt(1 - correlation**2) * g, f])
    return x, signal + np.sqrt(NOISE) * rng.normal(size=signal.shape)


def scores(name: str, seed: int, *, constant: bool = False) -> Array:
    """Return the mean absolute error, the mean negative log density and the coverage."""
    x, Y = draw(seed, constant=constant)
    table, new = Y.copy(), slice(N_WITHHELD)
    table[new, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about bounds and iterations
        model = MODELS[name](seed).fit(x, table)
    mean, std = (part[:, 0] for part in model.predict(x[new], return_std=True))
    error = Y[new, 0] - mean
    nlpd = 0.5 * np.log(2 * np.pi * std**2) + 0.5 * (error / std) ** 2
    return np.array([np.abs(error).mean(), nlpd.mean(), (np.abs(error) < 1.96 * std).mean()])


def main() -> None:
    """Print means over draws, and differences from GPRN paired by draw."""
    name = "python -m benchmarks.changing_correlations"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--draws", type=int, default=10, help="number of simulated tables")
    parser.add_argument("--constant", action="store_true", help="do not change the correlation")
    args = parser.parse_args()
    n, constant = args.draws, args.constant
    found = {
        name: np.array([scores(name, seed, constant=constant) for seed in range(n)])
        for name in MODELS
    }
    body = []
    for name, values in found.items():
        differences = values - found["GPRN"]
        mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n)
        pairs = [f"{m:+.3f} ± {e:.3f}" for m, e in zip(mean[:2], error[:2], strict=True)]
        mae, nlpd, coverage = values.mean(axis=0)
        shown = ["–", "–"] if name == "GPRN" else pairs
        body.append([name, f"{mae:.3f}", shown[0], f"{nlpd:.3f}", shown[1], f"{coverage:.0%}"])
    header = ["model", "MAE", "minus GPRN", "NLPD", "minus GPRN", "95% coverage"]
    print(markdown_table(header, body))


if __name__ == "__main__":
    main()
