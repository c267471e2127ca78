"""Gaussian process regression networks (Wilson, Knowles & Ghahramani, 2012).

Each output is a combination of latent processes, the nodes of the network, with weights that are
themselves Gaussian processes, so that correlations between outputs can change over the region:

    y_d(x) = Σ_q w_dq(x) f_q(x) + noise

If the weights are constant, the model is the semiparametric latent factor model (SLFM), in which
the weights have a prior.

The posterior is approximated by q(f) Π_d q(w_d), in which all nodes are jointly Gaussian, and so
are all weights of an output. `NodePosterior` and `WeightPosterior` are the two blocks, `updates`
maximises the bound on the log-likelihood with respect to one of them, `fit_network` alternates
between them from several starting points, and `NetworkPosterior` predicts.
"""

from emgpr.regression_network.fit import (
    MAX_SITES,
    FittedNetwork,
    NetworkSearch,
    fit_network,
)
from emgpr.regression_network.nodes import NodePosterior
from emgpr.regression_network.posterior import NetworkPosterior, signal_covariances
from emgpr.regression_network.problem import (
    NetworkKernels,
    NetworkParameters,
    NetworkProblem,
)
from emgpr.regression_network.terms import Moments, SiteTerms
from emgpr.regression_network.weights import WeightBasis, WeightPosterior

__all__ = [
    "MAX_SITES",
    "FittedNetwork",
    "Moments",
    "NetworkKernels",
    "NetworkParameters",
    "NetworkPosterior",
    "NetworkProblem",
    "NetworkSearch",
    "NodePosterior",
    "SiteTerms",
    "WeightBasis",
    "WeightPosterior",
    "fit_network",
    "signal_covariances",
]
