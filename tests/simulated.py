"""Data drawn from the model, and the model written out reading by reading: the tests' twin."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.kernels import matrix
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.weights import Mixture, arrange

KERNELS = (RBF(0.3), Matern(0.5, nu=1.5), RationalQuadratic(0.4, alpha=2.0), Matern(0.8, nu=0.5))


@dataclass(frozen=True)
class World:
    """Kernels, weights (Q, D, k) and noise (D, D) that are known, and a table Y drawn from them."""

    X: np.ndarray
    Y: np.ndarray
    kernels: tuple
    W: np.ndarray
    noise: np.ndarray

    @property
    def seen(self) -> Observations:
        return Observations.from_table(self.X, self.Y)

    @property
    def K(self) -> np.ndarray:
        return np.stack([matrix(kernel, self.X) for kernel in self.kernels])

    def table(self, Y) -> "World":
        return replace(self, Y=Y)


def world(rng, *, N=12, D=3, Q=3, k=2, P=2, missing=0.0, noise=0.1, correlated=False) -> World:
    """Sites in the unit cube; `missing` is the share of readings that were not made.

    `noise` is about its variance; `correlated` joins the noises of a row.
    """
    X = rng.uniform(size=(N, P))
    W = rng.normal(size=(Q, D, k))
    variances = noise * rng.uniform(0.5, 2.0, size=D)
    joined = a_correlation(rng, D) if correlated else np.eye(D)
    cov = joined * np.sqrt(np.outer(variances, variances))
    made = World(X, np.zeros((N, D)), KERNELS[:Q], W, cov)
    Y = (np.linalg.cholesky(gram(made)) @ rng.normal(size=N * D)).reshape(D, N).T
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return made.table(Y)


def a_correlation(rng, D):
    """A correlation matrix with no zeros, and no eigenvalue near zero."""
    root = rng.normal(size=(D, D))
    cov = root @ root.T + 0.5 * np.eye(D)
    scale = np.sqrt(np.diag(cov))
    return cov / np.outer(scale, scale)


def readings(made: World):
    """What was measured, one reading a row: its site, its task, its value. Tasks in order."""
    task, row = which_were_read(made)
    return made.X[row], task, made.Y[row, task]


def which_were_read(made: World):
    """Task and row of the table of every reading, tasks in order."""
    return np.nonzero(~np.isnan(made.Y.T))


def covariance(made: World, x, task, z, other):
    """Signal covariance of readings (task, x) with readings (other, z): eq. 3, pair by pair."""
    return sum(
        (w @ w.T)[np.ix_(task, other)] * kernel(x, z)
        for w, kernel in zip(made.W, made.kernels, strict=True)
    )


def noise_between(made: World, task, row, other, their_row):
    """Noise covariance of readings: Σ[l, m] between two of the same row, else nothing."""
    return np.equal.outer(row, their_row) * made.noise[np.ix_(task, other)]


def gram(made: World):
    """Covariance of what was measured, signal and noise, in the order of `readings`."""
    (x, task, _), (_, row) = readings(made), which_were_read(made)
    return covariance(made, x, task, x, task) + noise_between(made, task, row, task, row)


def posterior(made: World, x_new):
    """Mean (M, D) and covariance (M, D, D) of the signals at new sites, by plain inversion."""
    x, task, y = readings(made)
    D = made.Y.shape[1]
    means, covs = [], []
    for site in x_new:
        there, all_tasks = np.tile(site, (D, 1)), np.arange(D)
        cross = covariance(made, there, all_tasks, x, task)
        prior = covariance(made, there, all_tasks, there, all_tasks)
        means.append(cross @ np.linalg.solve(gram(made), y))
        covs.append(prior - cross @ np.linalg.solve(gram(made), cross.T))
    return np.array(means), np.array(covs)


def reading_posterior(made: World, x_new, same_as):
    """Mean and covariance of what would be read at new sites, by plain inversion.

    Site i is row `same_as[i]` of the table: the outputs that were not read of that sample
    share its noise, and of those that were another reading is taken. −1 is a new sample.
    """
    (x, task, y), (_, row) = readings(made), which_were_read(made)
    N, D = made.Y.shape
    all_tasks = np.arange(D)
    means, covs = [], []
    for i, (site, same) in enumerate(zip(x_new, same_as, strict=True)):
        there, another = np.tile(site, (D, 1)), N + i
        own = np.full(D, another) if same < 0 else np.where(np.isnan(made.Y[same]), same, another)
        cross = covariance(made, there, all_tasks, x, task)
        cross = cross + noise_between(made, all_tasks, own, task, row)
        prior = covariance(made, there, all_tasks, there, all_tasks)
        prior = prior + noise_between(made, all_tasks, own, all_tasks, own)
        means.append(cross @ np.linalg.solve(gram(made), y))
        covs.append(prior - cross @ np.linalg.solve(gram(made), cross.T))
    return np.array(means), np.array(covs)


def nearest(made: World, site, n, scale=1.0) -> World:
    """The world reduced to the sites with the n readings of each output nearest to one."""
    distance = np.linalg.norm((made.X - site) / scale, axis=1)
    apart = np.where(np.isnan(made.Y), np.inf, distance[:, None])
    chosen = [np.argsort(column)[: min(n, np.isfinite(column).sum())] for column in apart.T]
    rows = np.unique(np.concatenate(chosen))
    return replace(made, X=made.X[rows], Y=made.Y[rows])


def known_model(made: World, **settings) -> IndependentGP:
    """An estimator that learns nothing: it has the world's kernels, noise and weights (Q = D)."""
    variances = np.diag(made.noise)
    fixed = [
        kernel.set_params(**{f"{p.name}_bounds": "fixed" for p in kernel.hyperparameters})
        + WhiteKernel(noise, "fixed")
        for kernel, noise in zip(map(clone_kernel, made.kernels), variances, strict=True)
    ]
    model = IndependentGP(fixed, normalize_y=False, random_state=0, **settings)
    model.fit(made.X, made.Y)
    model.weights_ = made.W[None]
    model.coregionalization_ = made.W @ np.swapaxes(made.W, 1, 2)
    if np.any(made.noise != np.diag(variances)):  # which no kernel of one task can say
        model.noise, model.noise_, model._noise = "correlated", made.noise, made.noise
        model._settled = replace(model._settled, correlated=True)
    return model


def paper(kernel=None, **settings) -> EMGPR:
    """The paper's model, but for its batches dealt at random and the settings that are given."""
    return EMGPR.paper(**({"kernel": kernel, "partition": "random", "combine": "mean"} | settings))


def start_of(made: World, **changed) -> Mixture:
    """The world's kernels, noise and weights as a start, some of them changed."""
    tasks = [Latent(RBF(), float(noise), 0.0) for noise in np.diag(made.noise)]
    Q, _, k = made.W.shape
    own = {"kernels": made.kernels, "noise": made.noise, "W": made.W}
    return replace(arrange(tasks, made.seen, Q, k), **(own | changed))


def clone_kernel(kernel):
    return kernel.clone_with_theta(kernel.theta)


def symmetric_part(A):
    """Of matrices: all that a contraction with symmetric ones sees. Whatever is none stays."""
    A = np.asarray(A)
    square = A.ndim >= 2 and A.shape[-1] == A.shape[-2]
    return (A + np.swapaxes(A, -1, -2)) / 2 if square else A


def smooth_table(rng, *, N=60, noise=0.1):
    """Three outputs that share smooth functions, in three units."""
    X = rng.uniform(size=(N, 2))
    f, g, h = np.sin(6 * X[:, 0]) + np.cos(4 * X[:, 1]), np.cos(5 * X[:, 0]), np.sin(5 * X[:, 1])
    Y = np.column_stack([f, f + g, g - h]) + noise * rng.normal(size=(N, 3))
    return X, Y * [1.0, 100.0, 0.01] + [0.0, 500.0, -1.0]
