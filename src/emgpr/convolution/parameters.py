"""Parameters of convolved processes, and the vector that is optimised."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from emgpr.convolution.covariance import ConvolvedCovariance

Array = np.ndarray

MIN_WIDTH = 1e-12  # replaces a width of zero, which has no logarithm


@dataclass(frozen=True)
class ConvolutionParameters:
    """The covariance of the signals, and the noise variance of each output."""

    covariance: ConvolvedCovariance
    noise: Float[Array, " D"]

    def select_outputs(self, which: Int[Array, " d"]) -> "ConvolutionParameters":
        """Return the parameters of these outputs, in this order."""
        return ConvolutionParameters(self.covariance.select_outputs(which), self.noise[which])

    @property
    def shares(self) -> Float[Array, "D Rn"]:
        """Shares of each output's variance due to each term of the covariance and to noise."""
        parts = np.column_stack([(self.covariance.all_weights**2).T, self.noise])
        return parts / parts.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class ConvolutionVector:
    """Conversion between parameters and the vector that is optimised.

    The vector holds the logarithms of the latent length-scales, the widths, the own length-scales
    and the noise variances, followed by the weights and the own weights.
    """

    D: int
    Q: int
    n_inputs: int
    own: bool  # whether the outputs have processes of their own

    @property
    def sizes(self) -> tuple[int, ...]:
        """Lengths of the parts of the vector."""
        own = self.D if self.own else 0
        return self.Q, self.D, own, self.D, self.Q * self.D, own

    @property
    def parts(self) -> list[slice]:
        """The parts of the vector: logarithms, then weights."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def pack(self, parameters: ConvolutionParameters) -> Float[Array, " p"]:
        """Return the vector of the parameters."""
        cov = parameters.covariance
        widths = np.maximum(cov.widths, MIN_WIDTH)
        positive = (cov.length_scales, widths, cov.own_length_scales, parameters.noise)
        return np.concatenate([*map(np.log, positive), cov.weights.ravel(), cov.own_weights])

    def unpack(self, vector: Float[Array, " p"]) -> ConvolutionParameters:
        """Return the parameters that a vector represents."""
        scales, widths, own_scales, noise = (np.exp(vector[part]) for part in self.parts[:4])
        weights, own_weights = (vector[part] for part in self.parts[4:])
        covariance = ConvolvedCovariance(
            scales, widths, weights.reshape(self.Q, self.D), self.n_inputs, own_scales, own_weights
        )
        return ConvolutionParameters(covariance, noise)

    def derivatives(
        self, covariance: ConvolvedCovariance
    ) -> tuple[Float[Array, "p R D D"], Float[Array, "p R D D"]]:
        """Return the derivatives of A and T with respect to each element of the vector.

        ∂ log overlap = P/4 (∂T_dd / T_dd + ∂T_ee / T_ee) − P/2 ∂T_de / T_de.
        """
        (of_scales, of_widths, of_own_scales, _, of_weights, of_own_weights) = self.parts
        D, Q, T = self.D, self.Q, covariance.T
        dT = np.zeros((sum(self.sizes), *T.shape))
        latents, outputs = np.arange(Q), np.arange(D)
        dT[of_scales][latents, latents] = 2 * (covariance.length_scales**2)[:, None, None]
        of_width = dT[of_widths]  # a view
        for d, v in enumerate(covariance.widths**2):
            of_width[d, :Q, d, :] += 2 * v
            of_width[d, :Q, :, d] += 2 * v
        if self.own:
            dT[of_own_scales][outputs, Q, outputs, outputs] = 2 * covariance.own_length_scales**2
        relative = dT / T
        own = np.diagonal(relative, axis1=2, axis2=3)
        log_slope = 0.25 * (own[..., :, None] + own[..., None, :]) - 0.5 * relative
        dA = covariance.A * (covariance.n_inputs * log_slope)
        # A_r[d, e] = w_rd w_re overlap_r[d, e]
        w, overlap = covariance.all_weights, covariance.overlap
        rows = np.zeros((len(w), D, *T.shape))  # derivative with respect to the weight (r, d)
        for r in range(len(w)):
            rows[r, outputs, r, outputs, :] += w[r] * overlap[r]
            rows[r, outputs, r, :, outputs] += w[r] * overlap[r]
        dA[of_weights] += rows[:Q].reshape(Q * D, *T.shape)
        if self.own:
            dA[of_own_weights] += rows[Q]
        return dA, dT
