"""One process that is measured with footprints of different widths: CMOGP and linear models.

Three outputs are the same process on the unit square, smoothed by Gaussian footprints with standard
deviations of 0, 0.08 and 0.16, as the channels of a sounder are. The sharp output is withheld at
100 of 250 sites and predicted from the others, and from the smooth outputs at all sites.
`python -m benchmarks.footprints` prints the table of docs/cmogp.md.
"""

import argparse
import warnings

import numpy as np

from emgpr import CMOGP, EMGPR, SLFM
from emgpr.convolution import ConvolvedCovariance
from emgpr.experiments.tables import markdown_table
from emgpr.prediction import ReadingLocations

Array = np.ndarray

LENGTH_SCALE, WIDTHS, NOISE = 0.08, (0.0, 0.08, 0.16), 0.05
N_SITES, N_WITHHELD = 250, 100
SETTINGS = {"output_transform": None, "output_bounds": None}
MODELS = {
    "CMOGP": lambda seed: CMOGP(random_state=seed, **SETTINGS),
    "EMGPR": lambda seed: EMGPR(random_state=seed, **SETTINGS),
    "SLFM, two latent processes": lambda seed: SLFM(random_state=seed, **SETTINGS),
}


def draw(seed: int) -> tuple[Array, Array]:
    """Return sites (N, 2) and readings (N, 3)."""
    rng = np.random.default_rng(seed)
    x, D = rng.uniform(size=(N_SITES, 2)), len(WIDTHS)
    covariance = ConvolvedCovariance(
        np.array([LENGTH_SCALE]), np.array(WIDTHS), np.ones((1, D)), n_inputs=2
    )
    places = ReadingLocations.all_outputs(x, D)
    cov = covariance.between(places, places) + NOISE * np.eye(len(places.output))
    return x, (np.linalg.cholesky(cov) @ rng.normal(size=len(cov))).reshape(D, -1).T


def scores(name: str, seed: int) -> Array:
    """Return the mean absolute error, the mean negative log density and the coverage."""
    x, Y = draw(seed)
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
    """Print means over draws, and differences from CMOGP paired by draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprints", description=__doc__)
    parser.add_argument("--draws", type=int, default=10, help="number of simulated tables")
    n = parser.parse_args().draws
    found = {name: np.array([scores(name, seed) for seed in range(n)]) for name in MODELS}
    body = []
    for name, values in found.items():
        differences = values - found["CMOGP"]
        mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n)
        pairs = [f"{m:+.3f} ± {e:.3f}" for m, e in zip(mean[:2], error[:2], strict=True)]
        mae, nlpd, coverage = values.mean(axis=0)
        shown = ["–", "–"] if name == "CMOGP" else pairs
        body.append([name, f"{mae:.3f}", shown[0], f"{nlpd:.3f}", shown[1], f"{coverage:.0%}"])
    header = ["model", "MAE", "minus CMOGP", "NLPD", "minus CMOGP", "95% coverage"]
    print(markdown_table(header, body))


if __name__ == "__main__":
    main()
