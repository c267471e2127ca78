"""Data drawn from the model, and the model written out reading by reading: the tests' twin."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel

from emgpr import IndependentGP
from emgpr.kernels import matrix
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.weights import Mixture, arrange

KERNELS = (RBF(0.3), Matern(0.5, nu=1.5), RationalQuadratic(0.4, alpha=2.0), Matern(0.8, nu=0.5))


@dataclass(frozen=True)
class World:
    """Kernels, weights (Q, D, k) and noise that are known, and a table Y drawn from them."""

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


def world(rng, *, N=12, D=3, Q=3, k=2, P=2, missing=0.0, noise=0.1) -> World:
    """Sites in the unit cube; `missing` is the share of readings that were not made."""
    X = rng.uniform(size=(N, P))
    W = rng.normal(size=(Q, D, k))
    made = World(X, np.zeros((N, D)), KERNELS[:Q], W, noise * rng.uniform(0.5, 2.0, size=D))
    x, task, _ = readings(made)
    cov = covariance(made, x, task, x, task) + np.diag(made.noise[task])
    Y = (np.linalg.cholesky(cov) @ rng.normal(size=len(x))).reshape(D, N).T
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return made.table(Y)


def readings(made: World):
    """What was measured, one reading a row: its site, its task, its value. Tasks in order."""
    task, row = np.nonzero(~np.isnan(made.Y.T))
    return made.X[row], task, made.Y[row, task]


def covariance(made: World, x, task, z, other):
    """Signal covariance of readings (task, x) with readings (other, z): eq. 3, pair by pair."""
    return sum(
        (w @ w.T)[np.ix_(task, other)] * kernel(x, z)
        for w, kernel in zip(made.W, made.kernels, strict=True)
    )


def posterior(made: World, x_new):
    """Mean (M, D) and covariance (M, D, D) of the signals at new sites, by plain inversion."""
    x, task, y = readings(made)
    D = made.Y.shape[1]
    gram = covariance(made, x, task, x, task) + np.diag(made.noise[task])
    means, covs = [], []
    for site in x_new:
        there, all_tasks = np.tile(site, (D, 1)), np.arange(D)
        cross = covariance(made, there, all_tasks, x, task)
        prior = covariance(made, there, all_tasks, there, all_tasks)
        means.append(cross @ np.linalg.solve(gram, y))
        covs.append(prior - cross @ np.linalg.solve(gram, cross.T))
    return np.array(means), np.array(covs)


def known_model(made: World, **settings) -> IndependentGP:
    """An estimator that learns nothing: it has the world's kernels, noise and weights (Q = D)."""
    fixed = [
        kernel.set_params(**{f"{p.name}_bounds": "fixed" for p in kernel.hyperparameters})
        + WhiteKernel(noise, "fixed")
        for kernel, noise in zip(map(clone_kernel, made.kernels), made.noise, strict=True)
    ]
    model = IndependentGP(fixed, normalize_y=False, random_state=0, **settings)
    model.fit(made.X, made.Y)
    model.weights_ = made.W[None]
    return model


def start_of(made: World, **changed) -> Mixture:
    """The world's kernels, noise and weights as a start, some of them changed."""
    tasks = [Latent(RBF(), float(noise), 0.0) for noise in made.noise]
    Q, _, k = made.W.shape
    own = {"kernels": made.kernels, "noise": made.noise, "W": made.W}
    return replace(arrange(tasks, made.seen, Q, k), **(own | changed))


def clone_kernel(kernel):
    return kernel.clone_with_theta(kernel.theta)


def smooth_table(rng, *, N=60, noise=0.1):
    """Three outputs that share smooth functions, in three units."""
    X = rng.uniform(size=(N, 2))
    f, g, h = np.sin(6 * X[:, 0]) + np.cos(4 * X[:, 1]), np.cos(5 * X[:, 0]), np.sin(5 * X[:, 1])
    Y = np.column_stack([f, f + g, g - h]) + noise * rng.normal(size=(N, 3))
    return X, Y * [1.0, 100.0, 0.01] + [0.0, 500.0, -1.0]
