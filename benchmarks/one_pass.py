"""One pass over any number of places: time, memory, and how near the exact model it is.

    PYTHONPATH=src python -m benchmarks.one_pass [--places 10000 100000 1000000] [--dense 2000]

Three outputs are drawn from a known model (three latent processes, correlated noise, a fifth of the
readings missing), a chunk of 100,000 places at a time, so that no more are ever in memory. A row
for each number of places: seconds of the start, of the pass, of learning and of predicting 100,000
places with standard deviations; peak memory; the error beside that of the same prediction with
the true kernels, weights and noise; and the share of new readings, and of signals, inside their
95% intervals. `--dense N` compares with the model that keeps all readings, on N places.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from functools import reduce
from operator import add

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr import OnePassGP
from emgpr.covariance import Basis, Expansion, Fineness, Lattice, basis_on, log_likelihood
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction import condition

Array = np.ndarray

CHUNK = 100_000
NEW = 100_000
KERNELS: tuple[Kernel, ...] = (RBF(0.12), RBF(0.2), RBF(0.35))
W = np.array([[1.0, 0.6, -0.4], [0.0, 0.8, 0.5], [0.3, -0.2, 0.9]])[..., None]
NOISE = 0.15 * (0.7 * np.eye(3) + 0.3)
MISSING = 0.2
COLUMNS = (
    "places", "functions", "start", "pass", "learning", "predicting", "GiB", "error",
    "inside", "signals", "noise", "length-scales",
)  # fmt: skip


class Truth:
    """A field drawn from the model, on a box so wide that it does not repeat itself here."""

    def __init__(self, rng: np.random.Generator) -> None:
        lattice = Lattice((0.0, 0.0), (3.5, 3.5), (28, 28))
        every = np.stack(np.meshgrid(np.arange(29), np.arange(-28, 29), indexing="ij"), axis=-1)
        m = every.reshape(-1, 2)
        m = m[(m[:, 0] > 0) | (m[:, 1] >= 0)]
        basis = Basis(lattice, m, (1,) * len(KERNELS))
        spread = np.tile(np.sqrt(basis.variances(KERNELS)), 2)
        self.lattice = lattice
        self.waves = basis.packed(
            np.einsum("qdk,qj,qj->dj", W, spread, rng.normal(size=spread.shape))
        )

    def signals(self, x: Array) -> Array:
        """Of all outputs, at these places."""
        return self.lattice.evaluate(x, self.waves)

    def chunk(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n places, and what was read there."""
        x = rng.uniform(size=(n, 2))
        Y = self.signals(x) + rng.multivariate_normal(np.zeros(3), NOISE, size=n)
        return x, np.where(rng.uniform(size=Y.shape) < MISSING, np.nan, Y)

    def chunks(self, places: int, seed: int) -> Iterator[tuple[Array, Array]]:
        """All places, some at a time; the same for the same seed."""
        rng = np.random.default_rng(seed)
        for start in range(0, places, CHUNK):
            yield self.chunk(min(CHUNK, places - start), rng)


def measured(places: int, seed: int = 0, verbose: int = 0) -> dict[str, object]:
    """One row."""
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    model = OnePassGP(box=([0, 0], [1, 1]), random_state=seed, verbose=verbose)
    clock = [time.perf_counter()]
    model.start(*next(truth.chunks(places, seed)))
    clock.append(time.perf_counter())
    drawing = 0.0
    sums = []
    for chunk in truth.chunks(places, seed):
        drawing += time.perf_counter() - clock[-1] if not sums else time.perf_counter() - drawn
        sums.append(model.summed(*chunk))
        drawn = time.perf_counter()
    total = reduce(add, sums)
    clock.append(time.perf_counter() - drawing)
    began = time.perf_counter()
    model.absorb(total)
    learning = time.perf_counter() - began
    x, read = truth.chunk(NEW, rng)
    began = time.perf_counter()
    mean, std = model.predict(x, return_std=True)
    predicting = time.perf_counter() - began
    signals = truth.signals(x)
    f, s = model.predict(x, return_std=True, include_noise=False)
    ideal = with_the_truth(model, x)
    inside = np.abs(read - mean) < 1.96 * std
    return {
        "places": places,
        "functions": model.n_functions_,
        "start": clock[1] - clock[0],
        "pass": clock[2] - clock[1],
        "learning": learning,
        "predicting": predicting,
        "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "error": float(np.sqrt(((f - signals) ** 2).mean() / ((ideal - signals) ** 2).mean())),
        "inside": float(inside[~np.isnan(read)].mean()),
        "signals": float((np.abs(signals - f) < 1.96 * s).mean()),
        "noise": float(np.abs(unscaled(model, model._noise) / NOISE - 1).max()),
        "length-scales": " ".join(f"{kernel.length_scale:.3f}" for kernel in model.kernels_),
    }


def unscaled(model: OnePassGP, cov: Array) -> Array:
    """A covariance of standardised outputs, of the outputs themselves."""
    return cov * np.outer(model._scale.scale, model._scale.scale)


def with_the_truth(model: OnePassGP, x: Array) -> Array:
    """Signals predicted from the same sums with the true kernels, weights and noise."""
    scale = model._scale.scale
    expansion = Expansion(model._sums, model._basis, 3)
    posterior = expansion.posterior(
        W / scale[:, None], NOISE / np.outer(scale, scale), model._basis.variances(KERNELS)
    )
    told = model._basis.lattice.evaluate(x, posterior.mean_waves())
    return told * scale + model._scale.shift


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--verbose", type=int, default=0)
    args = parser.parse_args()
    print(" | ".join(COLUMNS))
    for places in args.places:
        row = measured(places, verbose=args.verbose)
        cells = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()]
        print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
