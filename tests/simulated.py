"""Tables drawn from a known model, and its predictions written out reading by reading."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.kernels import kernel_matrix
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, LMCPosterior, ParameterDirections
from emgpr.weights import LMCParameters, initial_parameters

KERNELS = (RBF(0.3), Matern(0.5, nu=1.5), RationalQuadratic(0.4, alpha=2.0), Matern(0.8, nu=0.5))


@dataclass(frozen=True)
class World:
    """Known kernels, weights (Q, D, k) and noise (D, D), and a table Y drawn from them."""

    X: np.ndarray
    Y: np.ndarray
    kernels: tuple
    W: np.ndarray
    noise: np.ndarray

    @property
    def observations(self) -> Observations:
        return Observations.from_table(self.X, self.Y)

    observed = observations

    @property
    def model(self) -> LMCModel:
        """The model with one member."""
        return self.ensemble(self.W[None])

    def ensemble(self, W) -> LMCModel:
        """The model with the weights (L, Q, D, k) of several members."""
        return LMCModel(self.kernels, W, self.noise)

    @property
    def K(self) -> np.ndarray:
        return np.stack([kernel_matrix(kernel, self.X) for kernel in self.kernels])

    def table(self, Y) -> "World":
        return replace(self, Y=Y)


def world(rng, *, N=12, D=3, Q=3, k=2, P=2, missing=0.0, noise=0.1, correlated=False) -> World:
    """Draw a table at sites in the unit cube; `missing` is the share of missing readings.

    `noise` is about the noise variance; with `correlated`, noises of a row are correlated.
    """
    X = rng.uniform(size=(N, P))
    W = rng.normal(size=(Q, D, k))
    variances = noise * rng.uniform(0.5, 2.0, size=D)
    correlation = a_correlation(rng, D) if correlated else np.eye(D)
    cov = correlation * np.sqrt(np.outer(variances, variances))
    made = World(X, np.zeros((N, D)), KERNELS[:Q], W, cov)
    Y = (np.linalg.cholesky(gram(made)) @ rng.normal(size=N * D)).reshape(D, N).T
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return made.table(Y)


def a_correlation(rng, D):
    """A correlation matrix without zeros and without eigenvalues near zero."""
    root = rng.normal(size=(D, D))
    cov = root @ root.T + 0.5 * np.eye(D)
    scale = np.sqrt(np.diag(cov))
    return cov / np.outer(scale, scale)


def readings(made: World):
    """Sites, outputs and values of all readings, output by output."""
    output, row = which_were_read(made)
    return made.X[row], output, made.Y[row, output]


def which_were_read(made: World):
    """Output and row of the table of every reading, output by output."""
    return np.nonzero(~np.isnan(made.Y.T))


def covariance(made: World, x, output, z, other):
    """Signal covariance of readings (output, x) with readings (other, z): eq. 3, pair by pair."""
    return sum(
        (w @ w.T)[np.ix_(output, other)] * kernel(x, z)
        for w, kernel in zip(made.W, made.kernels, strict=True)
    )


def noise_between(made: World, output, row, other, other_row):
    """Noise covariance of readings: Σ[l, m] between two of the same row, else zero."""
    return np.equal.outer(row, other_row) * made.noise[np.ix_(output, other)]


def gram(made: World):
    """Covariance of all readings, signal and noise, in the order of `readings`."""
    (x, output, _), (_, row) = readings(made), which_were_read(made)
    return covariance(made, x, output, x, output) + noise_between(made, output, row, output, row)


def posterior(made: World, x_new):
    """Mean (M, D) and covariance (M, D, D) of the signals at new locations, by plain inversion."""
    x, output, y = readings(made)
    outputs = np.arange(made.Y.shape[1])
    means, covs = [], []
    for location in x_new:
        there = np.tile(location, (len(outputs), 1))
        cross = covariance(made, there, outputs, x, output)
        prior = covariance(made, there, outputs, there, outputs)
        means.append(cross @ np.linalg.solve(gram(made), y))
        covs.append(prior - cross @ np.linalg.solve(gram(made), cross.T))
    return np.array(means), np.array(covs)


def reading_posterior(made: World, x_new, same_as):
    """Mean and covariance of new readings at new locations, by plain inversion.

    Location i is the sample of row `same_as[i]` of the table: its outputs that were not read share
    the noise of those that were, and of those that were a repeated reading is predicted. −1 is a
    new sample.
    """
    (x, output, y), (_, row) = readings(made), which_were_read(made)
    N, D = made.Y.shape
    outputs = np.arange(D)
    means, covs = [], []
    for i, (location, same) in enumerate(zip(x_new, same_as, strict=True)):
        there, another = np.tile(location, (D, 1)), N + i
        own = np.full(D, another) if same < 0 else np.where(np.isnan(made.Y[same]), same, another)
        cross = covariance(made, there, outputs, x, output)
        cross = cross + noise_between(made, outputs, own, output, row)
        prior = covariance(made, there, outputs, there, outputs)
        prior = prior + noise_between(made, outputs, own, outputs, own)
        means.append(cross @ np.linalg.solve(gram(made), y))
        covs.append(prior - cross @ np.linalg.solve(gram(made), cross.T))
    return np.array(means), np.array(covs)


def nearest(made: World, location, n, scale=1.0) -> World:
    """The table reduced to the sites with the n readings of each output nearest to a location."""
    distance = np.linalg.norm((made.X - location) / scale, axis=1)
    distances = np.where(np.isnan(made.Y), np.inf, distance[:, None])
    chosen = [np.argsort(column)[: min(n, np.isfinite(column).sum())] for column in distances.T]
    rows = np.unique(np.concatenate(chosen))
    return replace(made, X=made.X[rows], Y=made.Y[rows])


def lmc_posterior(made: World, W=None, **settings) -> LMCPosterior:
    """The posterior of an ensemble with these weights (L, Q, D, k), by default one member."""
    W = made.W[None] if W is None else W
    N, D = made.Y.shape
    L, Q = W.shape[:2]
    alone = LMCModel(
        tuple(made.kernels[d % Q] for d in range(D)),
        np.eye(D)[None, :, :, None],
        np.diag(np.diag(made.noise)),
    )
    batches = tuple(np.arange(N)[i::L] for i in range(L))
    given = {"conditioning": "all", "batches": batches, "independent": alone} | settings
    return LMCPosterior(made.observations, made.ensemble(W), **given)


def known_model(made: World, **settings) -> IndependentGP:
    """An estimator with known kernels, noise and weights (for Q = D): nothing is optimised."""
    variances = np.diag(made.noise)
    fixed = [
        kernel.set_params(**{f"{p.name}_bounds": "fixed" for p in kernel.hyperparameters})
        + WhiteKernel(noise, "fixed")
        for kernel, noise in zip(map(clone_kernel, made.kernels), variances, strict=True)
    ]
    settings = {"parameter_uncertainty": False, "random_state": 0} | settings
    model = IndependentGP(fixed, normalize_y=False, **settings)
    return with_weights(model.fit(made.X, made.Y), made.W[None], made.noise)


def with_weights(model, W, noise=None):
    """A fitted estimator, with these weights (L, Q, D, k) in place of its own."""
    own = model.posterior_.model
    known = LMCModel(own.kernels, W, own.noise if noise is None else noise)
    model.posterior_ = replace(model.posterior_, model=known)
    correlated = known.correlated_noise
    model.resolved_params_ = replace(model.resolved_params_, correlated=correlated)
    return model


def paper(kernel=None, **settings) -> EMGPR:
    """The paper's model with random batches and these settings."""
    return EMGPR.paper(**({"kernel": kernel, "partition": "random", "combine": "mean"} | settings))


def start_of(made: World, **changed) -> LMCParameters:
    """The known kernels, noise and weights as a start, some of them changed."""
    latents = [Latent(RBF(), float(noise), 0.0) for noise in np.diag(made.noise)]
    Q, _, k = made.W.shape
    own = {"kernels": made.kernels, "noise": made.noise, "W": made.W}
    return replace(initial_parameters(latents, made.observations, Q, k), **(own | changed))


def clone_kernel(kernel):
    return kernel.clone_with_theta(kernel.theta)


def symmetric_part(A):
    """The symmetric part of matrices, all that a contraction with symmetric ones depends on.

    Anything else is returned as it is.
    """
    A = np.asarray(A)
    square = A.ndim >= 2 and A.shape[-1] == A.shape[-2]
    return (A + np.swapaxes(A, -1, -2)) / 2 if square else A


def smooth_table(rng, *, N=60, noise=0.1):
    """Three outputs in different units that are sums of the same smooth functions."""
    X = rng.uniform(size=(N, 2))
    f, g, h = np.sin(6 * X[:, 0]) + np.cos(4 * X[:, 1]), np.cos(5 * X[:, 0]), np.sin(5 * X[:, 1])
    Y = np.column_stack([f, f + g, g - h]) + noise * rng.normal(size=(N, 3))
    return X, Y * [1.0, 100.0, 0.01] + [0.0, 500.0, -1.0]


def agrees(drawn, mean, cov, errors=5):
    """Whether samples (n, m) have this mean and covariance, to so many standard errors each."""
    n = len(drawn)
    deviation = drawn - mean
    products = deviation[:, :, None] * deviation[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    return bool(
        np.all(np.abs(deviation.mean(axis=0)) < errors * np.sqrt(np.diag(cov) / n))
        and np.all(np.abs(products.mean(axis=0) - cov) < errors * error)
    )


def some_directions(rng, model: LMCModel, r=4, size=0.1, means=False) -> ParameterDirections:
    """Random directions of the parameters of a model with one member.

    With `means`, the means and the variances of the signals are uncertain, too.
    """
    (W,), D = model.weights, len(model.noise)
    t = sum(kernel.n_dims for kernel in model.kernels)
    of_noise = size * model.noise * rng.normal(size=(r, D, D))
    varies = means * (W != 0).any(axis=(0, 2))
    return ParameterDirections(
        size * rng.normal(size=(r, t)),
        size * rng.normal(size=(r, *W.shape)) * (W != 0),
        of_noise + np.swapaxes(of_noise, 1, 2),
        size * rng.normal(size=(r, D)) * varies,
        1 + rng.uniform(0.2, 1.0, size=D) * varies,
    )


def moved(model: LMCModel, directions: ParameterDirections, i: int, step: float) -> LMCModel:
    """A model whose parameters are changed by a step along direction i."""
    n_dims = [kernel.n_dims for kernel in model.kernels]
    changes = np.split(step * directions.theta[i], np.cumsum(n_dims)[:-1])
    pairs = zip(model.kernels, changes, strict=True)
    return LMCModel(
        tuple(kernel.clone_with_theta(kernel.theta + change) for kernel, change in pairs),
        model.weights + step * directions.W[i],
        model.noise + step * directions.noise[i],
    )
