"""The benchmark problems: training tables with held-out readings.

Outputs are standardised (for Jura, after taking logarithms), so that results do not depend on how a
method scales them. Inputs are in units in which 0.1 is a reasonable initial length-scale. To add a
problem, add a function to `PROBLEMS`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

Array = np.ndarray

SIDE = 5.0  # longer side of a rescaled swath, similar to the Jura region in km
SIMULATED = (
    (200, 3), (359, 3), (500, 3), (1000, 3), (2000, 3), (200, 5), (600, 6), (200, 10), (800, 10),
    (606, 30),
)  # fmt: skip
OFFSETS = ((160, 90), (310, 170), (90, 220))  # shifts of the gaps of `heaton`, in cells


class DataNotAvailable(RuntimeError):
    """The data of a problem are not available on this machine."""


@dataclass(frozen=True)
class Problem:
    """A training table (X, Y), and the `truth` to predict at X_new.

    NaN in Y marks a missing reading, and NaN in `truth` a value that is not evaluated.
    """

    X: Array  # (N, P)
    Y: Array  # (N, D), standardised
    X_new: Array  # (M, P)
    truth: Array  # (M, D), on the scale of Y
    error: str = "MSE"  # name of the loss
    loss: Callable[[Array, Array], Array] = lambda truth, mean: (truth - mean) ** 2
    methods: tuple[str, ...] | None = None  # methods that can fit so many readings; None means all

    def save(self, path: Path) -> None:
        """Write the arrays that are passed to a method."""
        np.savez(path, X=self.X, Y=self.Y, X_new=self.X_new)


def jura() -> Problem:
    """Return the paper's problem: predict log Cd at 100 of 359 sites, given Ni and Zn at all."""
    from emgpr.datasets import jura_table  # imported here, since `simulated` does not need pandas

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
    """Return six AMSU-A channels at 630 sites, of which a random half is held out."""
    from emgpr.datasets import load_amsua

    swath = load_amsua()
    Y = swath.Y[["ch01", "ch03", "ch05", "ch08", "ch11", "ch15"]].to_numpy()
    order = np.random.default_rng(seed).permutation(len(Y))
    return _hold_out(_rescale(swath.X.to_numpy()), Y, order[: len(Y) // 2])


def amsua_all(n_sites: int = 504, seed: int = 0) -> Problem:
    """Return all complete AMSU-A channels at `n_sites` random sites; the other sites are held out.

    In the embedded swath, fourteen of fifteen channels are complete.
    """
    from emgpr.datasets import load_amsua

    swath = load_amsua()
    Y = swath.Y.to_numpy()
    Y = Y[:, ~np.isnan(Y).any(axis=0)]
    order = np.random.default_rng(seed).permutation(len(Y))
    return _hold_out(_rescale(swath.X.to_numpy()), Y, order[n_sites:])


def atms() -> Problem:
    """Return ten ATMS channels at 800 sites and 200 held-out sites, as in the paper's first fold.

    The granule is read from the folder that the environment variable EMGPR_ATMS names.
    """
    from emgpr.experiments.atms import AS_PRINTED

    X, Y = atms_table(AS_PRINTED.sites)
    return _hold_out(X, Y, np.flatnonzero(np.arange(len(Y)) % AS_PRINTED.folds == 0))


def atms_table(n_sites: int) -> tuple[Array, Array]:
    """Return rescaled coordinates and ten channels at random sites of an ATMS granule."""
    from emgpr.datasets import read_atms
    from emgpr.experiments.atms import AS_PRINTED, usable

    folder = Path(os.environ.get("EMGPR_ATMS", "."))
    files = [next(iter(sorted(folder.glob(f"{kind}_*.h5"))), None) for kind in ("TATMS", "GATMO")]
    tdr, geo = files
    if "EMGPR_ATMS" not in os.environ or tdr is None or geo is None:
        raise DataNotAvailable(
            "there is no granule; set EMGPR_ATMS to the folder with its TATMS and GATMO files"
        )
    try:
        table = usable(read_atms(tdr, geo), AS_PRINTED)
    except ImportError as reason:
        raise DataNotAvailable(str(reason)) from reason
    chosen = table.iloc[np.random.default_rng(0).permutation(len(table))[:n_sites]]
    return _rescale(chosen[["lat", "lon"]].to_numpy()), chosen[list(AS_PRINTED.channels)].to_numpy()


def heaton(offset: tuple[int, int]) -> Problem:
    """Return a satellite image of land-surface temperatures with gaps (Heaton et al. 2019).

    The training part of the image is read from the file that the environment variable EMGPR_HEATON
    names: an array `temperature` at `lon_lat`, and the cells `asked_lon_lat` that the study asks
    for, most of which lie in large gaps. The pattern of these cells is shifted on the grid by
    `offset`, and the training readings that it then covers are held out.
    """
    file = Path(os.environ.get("EMGPR_HEATON", ""))
    if not file.is_file():
        raise DataNotAvailable(
            "there is no image; set EMGPR_HEATON to a file satellite_training.npz with the arrays "
            "lon_lat, temperature and asked_lon_lat"
        )
    with np.load(file) as image:
        X, y, asked = (image[name] for name in ("lon_lat", "temperature", "asked_lon_lat"))
    axes = [np.unique(column) for column in np.concatenate([X, asked]).T]

    def cells(places: Array) -> tuple[Array, ...]:
        return tuple(np.searchsorted(axis, x) for axis, x in zip(axes, places.T, strict=True))

    masked = np.zeros([len(axis) for axis in axes], bool)
    masked[cells(asked)] = True
    masked = np.roll(masked, offset, axis=(0, 1))
    problem = _hold_out(_rescale(X), y[:, None], np.flatnonzero(masked[cells(X)]))
    return replace(problem, methods=("emgpr, defaults", "GPBoost, Vecchia"))


def simulated(N: int, D: int, *, M: int = 200, noise: float = 0.1) -> Problem:
    """Return D weighted sums of three smooth processes on the unit square, with noise.

    The kernels are RBF with length-scales 0.1, 0.2 and 0.4. The weights are random, and the signals
    have variance one. The expected MSE of any method is at least noise / (1 + noise).
    """
    rng = np.random.default_rng([N, D])
    X = rng.uniform(size=(N + M, 2))
    latents = np.column_stack([_draw(RBF(scale), X, rng) for scale in (0.1, 0.2, 0.4)])
    W = rng.normal(size=(3, D))
    W /= np.linalg.norm(W, axis=0)
    Y = latents @ W + np.sqrt(noise) * rng.normal(size=(N + M, D))
    return _hold_out(X, Y, np.arange(N, N + M))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "jura": jura,
    "amsua": amsua,
    "amsua-all": amsua_all,
    "atms": atms,
    **{f"heaton-{i}": partial(heaton, offset) for i, offset in enumerate(OFFSETS, start=1)},
    **{f"simulated-{N}x{D}": partial(simulated, N, D) for N, D in SIMULATED},
}


def _hold_out(X: Array, Y: Array, rows: Array) -> Problem:
    """Hold out all outputs in these rows, and standardise with statistics of the other rows."""
    train = np.setdiff1d(np.arange(len(Y)), rows)
    Y = (Y - Y[train].mean(axis=0)) / Y[train].std(axis=0)
    return Problem(X[train], Y[train], X[rows], Y[rows])


def _rescale(X: Array) -> Array:
    """Shift coordinates to start at zero, and scale them so that the longer side is SIDE."""
    X = X - X.min(axis=0)
    return SIDE * X / X.max()


def _draw(kernel: RBF, X: Array, rng: np.random.Generator) -> Array:
    return np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(len(X))) @ rng.normal(size=len(X))
