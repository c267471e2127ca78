"""The problems: a table to learn from and the readings held out of it.

Outputs are standardised (Jura's after logarithms), so that no method gains or loses by its own
scaling; inputs are in units in which 0.1 is a sensible first guess of a length-scale. A new
problem is a function in `PROBLEMS`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

Array = np.ndarray

SIDE = 5.0  # of a swath, as of Jura in km
SIMULATED = ((200, 3), (500, 3), (1000, 3), (2000, 3), (200, 5), (200, 10), (800, 10))


class Absent(RuntimeError):
    """The data of a problem are not on this machine."""


@dataclass(frozen=True)
class Problem:
    """Learn from (X, Y), predict the `truth` at X_new. NaN: not measured, or not asked for."""

    X: Array  # (N, P)
    Y: Array  # (N, D), standardised
    X_new: Array  # (M, P)
    truth: Array  # (M, D), on the scale of Y
    error: str = "MSE"  # what the loss is called
    loss: Callable[[Array, Array], Array] = lambda truth, mean: (truth - mean) ** 2

    def save(self, path: Path) -> None:
        """What a method may see."""
        np.savez(path, X=self.X, Y=self.Y, X_new=self.X_new)


def jura() -> Problem:
    """The paper's experiment: Cd at 100 of 359 sites, Ni and Zn known there; logarithms."""
    from emgpr.datasets import jura_table  # here, as `simulated` does without pandas

    data = jura_table()
    logs, held_out = np.log(data.Y.to_numpy()), np.log(data.truth.to_numpy())
    mean, sd = np.nanmean(logs, axis=0), np.nanstd(logs, axis=0)
    truth = (held_out - mean) / sd
    truth[:, 1:] = np.nan

    def in_mg_per_kg(truth: Array, mean_log: Array) -> Array:
        return np.abs(np.exp(mean + sd * truth) - np.exp(mean + sd * mean_log))

    X = data.X.to_numpy()
    return Problem(X, (logs - mean) / sd, X[data.test], truth, "MAE (mg/kg)", in_mg_per_kg)


def amsua(seed: int = 0) -> Problem:
    """Six channels of AMSU-A at 630 sites: a random half from the other half."""
    from emgpr.datasets import load_amsua

    swath = load_amsua()
    Y = swath.Y[["ch01", "ch03", "ch05", "ch08", "ch11", "ch15"]].to_numpy()
    order = np.random.default_rng(seed).permutation(len(Y))
    return _held_out(_sized(swath.X.to_numpy()), Y, order[: len(Y) // 2])


def atms() -> Problem:
    """Ten channels of ATMS at 800 sites, 200 held out: the first fold of the paper's protocol.

    The granule is read from the folder that EMGPR_ATMS names, and never copied.
    """
    from emgpr.datasets import read_atms
    from emgpr.experiments.atms import AS_PRINTED, usable

    folder = Path(os.environ.get("EMGPR_ATMS", "."))
    files = [next(iter(sorted(folder.glob(f"{kind}_*.h5"))), None) for kind in ("TATMS", "GATMO")]
    tdr, geo = files
    if "EMGPR_ATMS" not in os.environ or tdr is None or geo is None:
        raise Absent("no granule: set EMGPR_ATMS to the folder of its TATMS and GATMO files")
    try:
        table = usable(read_atms(tdr, geo), AS_PRINTED)
    except ImportError as reason:
        raise Absent(str(reason)) from reason
    chosen = table.iloc[np.random.default_rng(0).permutation(len(table))[: AS_PRINTED.sites]]
    held_out = np.flatnonzero(np.arange(len(chosen)) % AS_PRINTED.folds == 0)
    X, Y = chosen[["lat", "lon"]].to_numpy(), chosen[list(AS_PRINTED.channels)].to_numpy()
    return _held_out(_sized(X), Y, held_out)


def simulated(N: int, D: int, *, M: int = 200, noise: float = 0.1) -> Problem:
    """Readings of D mixtures of three smooth processes on the unit square, noise variance 0.1.

    All is known: RBF kernels of length-scales 0.1, 0.2 and 0.4, weights drawn, each output of
    variance one beside its noise. No method can have a lower MSE than noise / (1 + noise).
    """
    rng = np.random.default_rng([N, D])
    X = rng.uniform(size=(N + M, 2))
    latents = np.column_stack([_draw(RBF(scale), X, rng) for scale in (0.1, 0.2, 0.4)])
    W = rng.normal(size=(3, D))
    W /= np.linalg.norm(W, axis=0)
    Y = latents @ W + np.sqrt(noise) * rng.normal(size=(N + M, D))
    return _held_out(X, Y, np.arange(N, N + M))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "jura": jura,
    "amsua": amsua,
    "atms": atms,
    **{f"simulated-{N}x{D}": partial(simulated, N, D) for N, D in SIMULATED},
}


def _held_out(X: Array, Y: Array, rows: Array) -> Problem:
    """All outputs at these rows are asked for; the others are learned from, and set the scale."""
    seen = np.setdiff1d(np.arange(len(Y)), rows)
    Y = (Y - Y[seen].mean(axis=0)) / Y[seen].std(axis=0)
    return Problem(X[seen], Y[seen], X[rows], Y[rows])


def _sized(X: Array) -> Array:
    """Coordinates from zero, both by one factor, the longer side SIDE."""
    X = X - X.min(axis=0)
    return SIDE * X / X.max()


def _draw(kernel: RBF, X: Array, rng: np.random.Generator) -> Array:
    return np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(len(X))) @ rng.normal(size=len(X))
