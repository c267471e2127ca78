"""The covariance of convolved processes, which is a sum of Gaussian functions of the distance."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.kernels import Pairs
from emgpr.prediction import ReadingLocations

Array = np.ndarray


@dataclass(frozen=True)
class ConvolvedCovariance:
    """The covariance of the signals of D outputs that share Q latent processes.

    `length_scales` and `widths` are √λ_q and √v_d. `weights[q, d]` is the standard deviation of the
    part of output d that is due to latent process q. With T_q[d, e] = v_d + v_e + λ_q and P inputs,

        cov[f_d(x), f_e(z)] = Σ_q A_q[d, e] exp(−|x − z|² / (2 T_q[d, e]))
        A_q[d, e] = w_dq w_eq (T_q[d, d] T_q[e, e])^(P/4) / T_q[d, e]^(P/2)

    If every output has a process of its own, with an RBF kernel, these processes are one more term,
    in which A is diagonal.

    >>> unequal = ConvolvedCovariance(np.ones(1), np.array([0.0, 2.0]), np.ones((1, 2)), n_inputs=1)
    >>> unequal.at_each(np.zeros((1, 1))).round(3)
    array([[[1.   , 0.775],
            [0.775, 1.   ]]])
    """

    length_scales: Float[Array, " Q"]
    widths: Float[Array, " D"]
    weights: Float[Array, "Q D"]
    n_inputs: int
    # One for each output, or empty if the outputs have no processes of their own.
    own_length_scales: Float[Array, " O"] = field(default_factory=lambda: np.empty(0))
    own_weights: Float[Array, " O"] = field(default_factory=lambda: np.empty(0))

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return len(self.widths)

    @property
    def all_weights(self) -> Float[Array, "R D"]:
        """Standard deviations of the parts of each output: latent processes, then own process."""
        return np.concatenate([self.weights, self.own_weights.reshape(-1, self.n_outputs)])

    @cached_property
    def couples(self) -> Bool[Array, "R D D"]:
        """Pairs of outputs that each term couples: own processes, an output with itself only."""
        couples = np.ones((len(self.all_weights), self.n_outputs, self.n_outputs), bool)
        couples[len(self.weights) :] = np.eye(self.n_outputs, dtype=bool)
        return couples

    @cached_property
    def T(self) -> Float[Array, "R D D"]:
        """Squared length-scales of the covariance of each pair of outputs, in each term."""
        v, D = self.widths**2, self.n_outputs
        shared = (self.length_scales**2)[:, None, None] + v[:, None] + v
        own = self.own_length_scales.reshape(-1, 1, D) ** 2 * np.ones((D, 1))
        return np.concatenate([shared, own])

    @cached_property
    def overlap(self) -> Float[Array, "R D D"]:
        """Correlation of the parts of each pair of outputs at one location, in each term."""
        own = np.diagonal(self.T, axis1=1, axis2=2)
        ratio = (own[:, :, None] / self.T) * (own[:, None, :] / self.T)
        return ratio ** (0.25 * self.n_inputs) * self.couples

    @cached_property
    def A(self) -> Float[Array, "R D D"]:
        """Covariance of each pair of outputs at one location, in each term."""
        w = self.all_weights
        return w[:, :, None] * w[:, None, :] * self.overlap

    def between(self, a: ReadingLocations, b: ReadingLocations) -> Float[Array, "n m"]:
        """Return the covariances of the signals at two lists of readings."""
        squared_distances = Pairs(a.x, b.x).squared_distances
        pairs, cov = np.ix_(a.output, b.output), np.zeros(squared_distances.shape)
        for A, T in zip(self.A, self.T, strict=True):
            cov += A[pairs] * np.exp((-0.5 / T)[pairs] * squared_distances)
        return cov

    def at_lag(self, h: Float[Array, " J"]) -> Float[Array, "J D D"]:
        """Return the covariance of the signals at two locations with these distances."""
        return (self.A * np.exp(-0.5 * h[:, None, None, None] ** 2 / self.T)).sum(axis=1)

    def at_each(self, x: Float[Array, "M P"]) -> Float[Array, "M D D"]:
        """Return the covariance of the signals at each location, which is the same everywhere."""
        return np.tile(self.A.sum(axis=0), (len(x), 1, 1))

    def select_outputs(self, which: Int[Array, " d"]) -> "ConvolvedCovariance":
        """Return the covariance of these outputs, in this order."""
        own = which[: len(self.own_weights)]
        return replace(
            self,
            widths=self.widths[which],
            weights=self.weights[:, which],
            own_length_scales=self.own_length_scales[own],
            own_weights=self.own_weights[own],
        )

    def with_least_widths(self) -> "ConvolvedCovariance":
        """Return the same covariance with the smallest possible widths.

        If all v_d are reduced by δ and all λ_q increased by 2δ, the covariance does not change. The
        smallest width can therefore be zero: the corresponding output is not smoothed.
        """
        smallest = self.widths.min() ** 2
        return replace(
            self,
            length_scales=np.sqrt(self.length_scales**2 + 2 * smallest),
            widths=np.sqrt(np.maximum(self.widths**2 - smallest, 0.0)),
        )
