"""One pass over any number of places: time, memory, and how near the exact model it is.

    PYTHONPATH=src python -m benchmarks.one_pass [--places 10000 100000 1000000]
    PYTHONPATH=src python -m benchmarks.one_pass --dense 2000 [--learn] [--device cuda]

Three outputs are drawn from a known model (three latent processes, correlated noise, a fifth of the
readings missing), a chunk of 100,000 places at a time, so that no more are ever in memory. A row
for each number of places: seconds of a core for the start, the pass, learning, and predicting
100,000 places with standard deviations; peak memory; the error of the signals, and beside that of
the same prediction with the true kernels, weights and noise; the share of new readings, and of
signals, inside their 95% intervals; the largest relative error of the noise; length-scales.

`--dense N` compares, on N places, with the model that keeps all readings: predictions and
likelihood with the same parameters and, with `--learn`, the likelihood that it learns itself.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr import EMGPR, OnePassGP
from emgpr.covariance import Basis, Expansion, Lattice, Sums, log_likelihood
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction import condition

Array = np.ndarray
Row = dict[str, float | int | str]

CHUNK = 100_000
NEW = 100_000
KERNELS: tuple[Kernel, ...] = (RBF(0.12), RBF(0.2), RBF(0.35))
W = np.array([[1.0, 0.6, -0.4], [0.0, 0.8, 0.5], [0.3, -0.2, 0.9]])[..., None]
NOISE = 0.15 * (0.7 * np.eye(3) + 0.3)
MISSING = 0.2
BOX = ([0.0, 0.0], [1.0, 1.0])


class Truth:
    """A field drawn from the model, on a box so wide that it does not repeat itself here."""

    def __init__(self, rng: np.random.Generator) -> None:
        top = 28
        self.lattice = Lattice((0.0, 0.0), (3.5, 3.5), (top, top))
        axes = np.arange(top + 1), np.arange(-top, top + 1)
        m = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        basis = Basis(self.lattice, m[top:], (1,) * len(KERNELS))
        spread = np.tile(np.sqrt(basis.variances(KERNELS)), 2)
        drawn = spread * rng.normal(size=spread.shape)
        self.waves = basis.packed(np.einsum("qdk,qj->dj", W, drawn))

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
        rng = np.random.default_rng(seed + 1)
        for start in range(0, places, CHUNK):
            yield self.chunk(min(CHUNK, places - start), rng)


def row_of(places: int, seed: int = 0, **settings: Any) -> Row:
    """What one pass over so many places costs and gives."""
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    model = OnePassGP(box=BOX, random_state=seed, **settings)
    first = next(truth.chunks(places, seed))
    began = time.process_time()
    model.start(*first)
    starting, passing = time.process_time() - began, 0.0
    total: Sums | None = None
    for chunk in truth.chunks(places, seed):
        began = time.process_time()
        sums = model.summed(*chunk)
        total = sums if total is None else total + sums
        passing += time.process_time() - began
    assert total is not None
    began = time.process_time()
    model.absorb(total)
    learning = time.process_time() - began
    x, read = truth.chunk(NEW, rng)
    began = time.process_time()
    mean, std = model.predict(x, return_std=True)
    predicting = time.process_time() - began
    signals = truth.signals(x)
    f, s = model.predict(x, return_std=True, include_noise=False)
    error, least = (np.sqrt(((told - signals) ** 2).mean()) for told in (f, ideal(model, x)))
    units = np.outer(model._scale.scale, model._scale.scale)
    return {
        "places": places,
        "functions": model.n_functions_,
        "start, s": starting,
        "pass, s": passing,
        "learning, s": learning,
        "predicting, s": predicting,
        "peak, GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "error": float(error),
        "beside the least": float(error / least),
        "readings inside": float((np.abs(read - mean) < 1.96 * std)[~np.isnan(read)].mean()),
        "signals inside": float((np.abs(signals - f) < 1.96 * s).mean()),
        "noise off by": float(np.abs(units * model._noise / NOISE - 1).max()),
        "length-scales": " ".join(sorted(f"{k.length_scale:.3f}" for k in model.kernels_)),
    }


def ideal(model: OnePassGP, x: Array) -> Array:
    """Signals predicted from the same sums with the true kernels, weights and noise."""
    scale = model._scale.scale
    # Latents in the model's order: each has waves of its own.
    order = np.argsort(np.argsort([kernel.length_scale for kernel in model.kernels_]))
    kernels, weights = [KERNELS[q] for q in order], W[order] / scale[:, None]
    noise = NOISE / np.outer(scale, scale)
    basis = model._basis
    left = np.einsum("qdk,qek,q->de", weights, weights, basis.left_out(kernels))
    expansion = Expansion(model._sums, basis, 3)
    posterior = expansion.posterior(weights, noise + left, basis.variances(kernels))
    told = model._basis.lattice.evaluate(x, posterior.mean_waves())
    return told * scale + model._scale.shift


def beside_dense(places: int, seed: int = 0, device: str = "cpu", learn: bool = False) -> Row:
    """One pass, and the model that keeps all readings."""
    rng = np.random.default_rng(seed)
    truth = Truth(rng)
    X, Y = truth.chunk(places, rng)
    x, _ = truth.chunk(500, rng)
    settings: dict[str, Any] = {
        "n_latents": 3, "rank": 2, "noise": "correlated", "random_state": seed,
    }  # fmt: skip
    model = OnePassGP(box=BOX, **settings).fit(X, Y)
    mean, std = model.predict(x, return_std=True, include_noise=False)
    scale = model._scale
    seen = Observations.from_table(X, scale.forward(Y))
    dense = condition(seen, x, model.kernels_, model.weights_, model._noise, device=device)
    expected, cov = scale.median(dense), scale.covariance(dense)
    spread = np.sqrt(np.einsum("mdd->md", cov))
    K = matrices(model.kernels_, seen.x)
    off = np.abs(mean - expected) / spread
    row: Row = {
        "places": places,
        "functions": model.n_functions_,
        "predictions off by, in sd": float(np.sqrt((off**2).mean())),
        "at most": float(off.max()),
        "sd over dense, least": float((std / spread).min()),
        "sd over dense, most": float((std / spread).max()),
        "log-likelihood": model.log_marginal_likelihood_value_,
        "dense, there": float(log_likelihood(seen, model.weights_[0], model._noise, K).value),
    }
    if learn:
        exact = EMGPR(
            kernel=None, transform=None, prior=None, transfer="full", batch_size=None,
            refine="joint", conditioning="all", device=device, max_iter=250, **settings,
        ).fit(X, Y)  # fmt: skip
        # Both are of outputs in units of their own scale.
        units = np.log(exact._scale.scale / scale.scale)
        readings = float(((~np.isnan(Y)) * units).sum())
        row["dense, learned"] = exact.log_marginal_likelihood_value_ - readings
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dense", type=int, nargs="*")
    parser.add_argument("--learn", action="store_true", help="the dense model too")
    parser.add_argument("--device", default="cpu", help="of the dense model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", type=int, default=0)
    args = parser.parse_args()
    rows = (
        (row_of(n, args.seed, verbose=args.verbose) for n in args.places)
        if args.dense is None
        else (beside_dense(n, args.seed, args.device, args.learn) for n in args.dense)
    )
    for i, row in enumerate(rows):
        if i == 0:
            print(" | ".join(row))
        cells = [f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
