"""Predictions of one output by its regression on the known outputs (kriging with external drift).

With H the features of the readings y, R the precision matrix of their residuals, and β and V the
mean and covariance of the coefficients given the readings, the prediction at a new row with
features h and residual covariances k is

    mean = kᵀRy + uᵀβ,     variance = prior variance of the residual − kᵀRk + uᵀVu,

where u = h − HᵀRk. With many readings, the coefficients are estimated from a part of them, and the
residual is predicted from the nearest readings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from emgpr.arrays import cholesky, chunks, diagonal, limit_threads
from emgpr.mixture_weights import mixture_moments
from emgpr.neighbours import pseudo_random_order
from emgpr.prediction import sample_gaussian
from emgpr.regression.drift import Drift
from emgpr.regression.fit import FittedRegression, coefficients, left_out_of_residual
from emgpr.regression.rows import RegressionRows
from emgpr.regression.settings import Residual

Array = np.ndarray
Moments = tuple[Float[Array, " m"], Float[Array, " m"]]  # mean and variance at each new row

MAX_EXACT = 600  # readings that a prediction uses; with more, it uses neighbours
N_NEIGHBOURS = 32
POOL = 3  # times as many neighbours are searched if some of them are left out
ARRAYS_PER_LOCATION = 4.0  # of the size of a covariance of neighbours, in memory at the same time


class Kriged(NamedTuple):
    """The residual process at m new rows, given readings with residual precision matrix R."""

    mean: Float[Array, " m"]  # kᵀRy
    projection: Float[Array, "m q"]  # HᵀRk
    variance: Float[Array, " m"]  # prior variance − kᵀRk, and the noise, if it is predicted


@dataclass(frozen=True)
class Regression:
    """A fitted regression, conditioned on readings y of its output at `rows`."""

    kernel: str
    fitted: FittedRegression
    rows: RegressionRows
    y: Float[Array, " n"]

    @limit_threads(0)  # covariances have at most `MAX_EXACT` rows
    def predict(
        self, new: RegressionRows, far: Float[Array, " m"], *, include_noise: bool = True
    ) -> Moments:
        """Return mean and variance of readings, or of the signal, at new rows.

        `far` is the share of the pattern "far" at each row: 0 among the output's own readings, and
        1 in a gap.
        """
        if len(self.y) > MAX_EXACT:
            neighbours = self._nearest(new.x, N_NEIGHBOURS)
            return self._from_neighbours(new, neighbours, far, include_noise=include_noise)
        given = np.arange(len(self.y))

        def krige(at: Int[Array, " b"], residual: Residual) -> Kriged:
            return self._krige(residual, new.at(at), include_noise, given)[0]

        return self._mix_in_blocks(new, far, ARRAYS_PER_LOCATION * 8 * len(given), krige)

    @limit_threads(0)
    def leave_out(
        self, sets: Int[Array, " n"], targets: Int[Array, " m"], far: Float[Array, " m"]
    ) -> Moments:
        """Predict the readings at the rows `targets` from the readings in other sets."""
        if len(self.y) > MAX_EXACT:
            nearest = self._nearest(self.rows.x[targets], POOL * N_NEIGHBOURS + 1)
            allowed = sets[nearest] != sets[targets][:, None]
            first = np.argsort(~allowed, axis=1, kind="stable")[:, :N_NEIGHBOURS]
            nearest, allowed = (np.take_along_axis(a, first, axis=1) for a in (nearest, allowed))
            return self._from_neighbours(
                self.rows.at(targets), np.where(allowed, nearest, -1), far, include_noise=True
            )
        members = [np.flatnonzero(sets == label) for label in np.unique(sets[targets])]
        found = []
        for residual, prior in self.fitted.kept:
            mean, variance = left_out_of_residual(
                self.kernel, residual, self.rows, self.y, self._features,
                prior.deviations(self._drift)[None], members,
            )  # fmt: skip
            found.append((mean[1, 0, targets], variance[1, 0, targets]))
        mean, variance = (np.stack(part) for part in zip(*found, strict=True))
        return mixture_moments(self._weights(far), mean, self._scales(far) * variance)

    def sample(
        self,
        new: RegressionRows,
        far: Float[Array, " m"],
        n: int,
        rng: np.random.Generator,
        *,
        include_noise: bool = True,
    ) -> Float[Array, "n m"]:
        """Draw joint samples at new rows, from a Gaussian distribution.

        Mean and covariance are those of the mixture of all settings, so that samples agree with the
        predicted distribution of each row.
        """
        given = np.arange(len(self.y))
        if len(self.y) > MAX_EXACT:
            given = np.unique(self._nearest(new.x, N_NEIGHBOURS))
        weights, scales = np.sqrt(self._weights(far)), np.sqrt(self._scales(far))
        mean, cov = np.empty((len(weights), len(new))), np.zeros((len(new), len(new)))
        for c, (residual, prior) in enumerate(self.fitted.kept):
            kriged, k = self._krige(residual, new, include_noise, given)
            beta, root = self._coefficients(residual, prior.deviations(self._drift))
            u = self._drift.features(new) - kriged.projection
            mean[c] = kriged.mean + u @ beta
            of_setting = residual.covariance(self.kernel, new, new) - k.T @ k
            of_setting += (u @ root) @ (u @ root).T
            if include_noise:
                of_setting[np.diag_indices_from(cov)] += residual.noise(new)
            scale = weights[c] * scales[c]
            cov += scale[:, None] * of_setting * scale
        centre = (weights**2 * mean).sum(axis=0)
        offsets = weights * (mean - centre)
        return centre + sample_gaussian(cov + offsets.T @ offsets, n, rng)

    def _mix(
        self, new: RegressionRows, far: Float[Array, " m"], krige: Callable[[Residual], Kriged]
    ) -> Moments:
        """Return mean and variance of the mixture of all settings."""
        h, kriged = self._drift.features(new), dict[Residual, Kriged]()
        mean, variance = np.empty((2, len(self.fitted.kept), len(new)))
        for c, (residual, prior) in enumerate(self.fitted.kept):
            if residual not in kriged:
                kriged[residual] = krige(residual)
            given, u = kriged[residual], h - kriged[residual].projection
            beta, root = self._coefficients(residual, prior.deviations(self._drift))
            mean[c] = given.mean + u @ beta
            variance[c] = given.variance + ((u @ root) ** 2).sum(axis=1)
        return mixture_moments(self._weights(far), mean, self._scales(far) * variance)

    def _from_neighbours(
        self,
        new: RegressionRows,
        neighbours: Int[Array, "m n"],
        far: Float[Array, " m"],
        *,
        include_noise: bool,
    ) -> Moments:
        """Predict each row from its own neighbours; −1 means no neighbour."""

        def krige(at: Int[Array, " b"], residual: Residual) -> Kriged:
            return self._krige_locally(residual, new.at(at), neighbours[at], include_noise)

        n_bytes = ARRAYS_PER_LOCATION * 8 * neighbours.shape[1] ** 2
        return self._mix_in_blocks(new, far, n_bytes, krige)

    def _mix_in_blocks(
        self,
        new: RegressionRows,
        far: Float[Array, " m"],
        n_bytes: float,
        krige: Callable[[Int[Array, " b"], Residual], Kriged],
    ) -> Moments:
        """Return mean and variance of the mixture, in blocks of rows that need `n_bytes` each."""
        parts = []
        for run in chunks(len(new), n_bytes, 1):
            at = np.arange(run.start, run.stop)
            parts.append(self._mix(new.at(at), far[at], partial(krige, at)))
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, variance

    def _krige(
        self, residual: Residual, new: RegressionRows, include_noise: bool, given: Int[Array, " g"]
    ) -> tuple[Kriged, Float[Array, "g m"]]:
        """Predict the residual process from given readings.

        Also return k, with which the covariance of the process at the new rows is lower by kᵀk.
        """
        rows = self.rows.at(given)
        cov = residual.covariance(self.kernel, rows, rows)
        cov[np.diag_indices_from(cov)] += residual.noise(rows)
        factor = cholesky(cov).checked("covariance of a regression on known outputs")
        cross = residual.covariance(self.kernel, rows, new)
        half = factor.half_solve(np.column_stack([cross, self._features[given], self.y[given]]))
        m = len(new)
        k, H, y = half[:, :m], half[:, m:-1], half[:, -1]
        variance = residual.variance(new) - (k**2).sum(axis=0)
        if include_noise:
            variance = variance + residual.noise(new)
        return Kriged(k.T @ y, k.T @ H, np.maximum(variance, 0.0)), k

    def _krige_locally(
        self,
        residual: Residual,
        new: RegressionRows,
        neighbours: Int[Array, "m n"],
        include_noise: bool,
    ) -> Kriged:
        """Predict the residual process at each row from its own neighbours."""
        rows, exists = self.rows.at(neighbours), neighbours >= 0
        cov = residual.covariance(self.kernel, rows, rows)
        diagonal(cov)[...] += residual.noise(rows)
        cov *= exists[:, :, None] & exists[:, None, :]
        diagonal(cov)[~exists] = 1.0
        cross = residual.covariance(self.kernel, rows, new.each()) * exists[..., None]
        features = self._features[neighbours] * exists[..., None]
        y = (self.y[neighbours] * exists)[..., None]
        factor = cholesky(cov).checked("covariance of a regression on known outputs")
        half = factor.half_solve(np.concatenate([cross, features, y], axis=-1))
        k, H, y = half[..., :1], half[..., 1:-1], half[..., -1:]
        variance = residual.variance(new) - (k**2).sum(axis=(1, 2))
        if include_noise:
            variance = variance + residual.noise(new)
        return Kriged(
            (k * y).sum(axis=(1, 2)), (k * H).sum(axis=1), np.maximum(variance, 0.0)
        )  # fmt: skip

    def _weights(self, far: Float[Array, " m"]) -> Float[Array, "C m"]:
        near, distant = self.fitted.weights[..., None]
        return (1 - far) * near + far * distant

    def _scales(self, far: Float[Array, " m"]) -> Float[Array, "C m"]:
        near, distant = self.fitted.variances[..., None]
        return (1 - far) * near + far * distant

    def _nearest(self, x: Float[Array, "m P"], n: int) -> Int[Array, "m n"]:
        return self._tree.query(x, k=range(1, min(n, len(self.y)) + 1))[1]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.rows.x)

    @cached_property
    def _sample(self) -> Int[Array, " s"]:
        """Rows from which the coefficients are estimated."""
        n = len(self.y)
        return np.arange(n) if n <= MAX_EXACT else pseudo_random_order(self.rows.x)[:MAX_EXACT]

    @cached_property
    def _drift(self) -> Drift:
        return Drift.around(self.rows.at(self._sample))

    @cached_property
    def _features(self) -> Float[Array, "n q"]:
        return self._drift.features(self.rows)

    def _coefficients(
        self, residual: Residual, deviations: Float[Array, " q"]
    ) -> tuple[Float[Array, " q"], Float[Array, "q q"]]:
        """Return mean and root of the covariance of the coefficients."""
        return coefficients(*self._normal_equations(residual), deviations)

    def _normal_equations(
        self, residual: Residual
    ) -> tuple[Float[Array, "q q"], Float[Array, " q"]]:
        """Return HᵀRH and HᵀRy."""
        found = self._solved.get(residual)
        if found is None:
            rows = self.rows.at(self._sample)
            cov = residual.covariance(self.kernel, rows, rows)
            cov[np.diag_indices_from(cov)] += residual.noise(rows)
            factor = cholesky(cov).checked("covariance of a regression on known outputs")
            sample = np.column_stack([self._features, self.y])[self._sample]
            half = factor.half_solve(sample)
            H, y = half[:, :-1], half[:, -1]
            found = self._solved[residual] = H.T @ H, H.T @ y
        return found

    @cached_property
    def _solved(self) -> dict[Residual, tuple[Array, Array]]:
        return {}
