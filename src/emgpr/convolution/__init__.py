"""Convolved multiple-output Gaussian processes (Álvarez & Lawrence, 2011).

Each output is a sum of latent processes, smoothed by a Gaussian kernel of its own, of a process of
its own, and of noise:

    y_d(x) = Σ_q s_dq ∫ N(x − z; 0, v_d I) u_q(z) dz + h_d(x) + noise

The latent processes u_q have RBF kernels with length-scales √λ_q. All integrals are Gaussian, so
that the covariance of two outputs is a sum of Gaussians with the variances v_d + v_e + λ_q. Outputs
can therefore have different length-scales, although they share the latent processes. If the widths
v_d are equal, the model is a linear model of coregionalisation.

`ConvolvedCovariance` is the covariance, `ReadingPairs` evaluates the likelihood and its
derivatives, and `fit_convolution` maximises it from several starting points.
"""

from emgpr.convolution.covariance import ConvolvedCovariance
from emgpr.convolution.fit import (
    MAX_READINGS,
    SEARCH_READINGS,
    FittedConvolution,
    SearchResult,
    fit_convolution,
)
from emgpr.convolution.likelihood import ReadingPairs
from emgpr.convolution.parameters import ConvolutionParameters, ConvolutionVector

__all__ = [
    "MAX_READINGS",
    "SEARCH_READINGS",
    "ConvolutionParameters",
    "ConvolutionVector",
    "ConvolvedCovariance",
    "FittedConvolution",
    "ReadingPairs",
    "SearchResult",
    "fit_convolution",
]
