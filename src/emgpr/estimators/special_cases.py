"""Special cases of EMGPR: models that are fitted in the same way with certain settings fixed."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np

from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.multi_output import MultiOutputGP

Array = np.ndarray


@declare_parameters
class IndependentGP(MultiOutputGP):
    """Independent Gaussian processes: one for every output, without transfer (only step 1).

    This is the baseline for multi-output models. The parameters have the same meaning as in
    `EMGPR`.

    >>> from emgpr import IndependentGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)]) + 0.1 * np.random.default_rng(0).normal(size=(30, 2))
    >>> IndependentGP(random_state=0).fit(X, Y).predict([[1.57]]).round()
    array([[1., 0.]])
    """

    fixed: ClassVar[Mapping[str, Any]] = {"refine": 0, "couples_outputs": False}


@declare_parameters
class LMC(MultiOutputGP):
    """Linear model of coregionalisation: Q latent processes, with B_q = W_q W_qᵀ of rank k.

    Kernels, noise and weights are optimised jointly for all readings, after a fit of each output
    alone. The parameters have the same meaning as in `EMGPR`.

    >>> from emgpr import LMC
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.sin(X) + 0.5 * np.cos(3 * X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> LMC(n_latents=2, rank=1, random_state=0).fit(X, Y).coregionalization_.shape
    (2, 2, 2)
    """

    _: KW_ONLY
    n_latents: int | None = None
    prior: Literal["weak"] | None = "weak"
    rank: int = 1


@declare_parameters
class ICM(MultiOutputGP):
    """Intrinsic coregionalisation model: one kernel, and B = WWᵀ + diag(κ) with W of rank `rank`.

    The last D columns of `weights_` are diag(√κ). The parameters are optimised jointly, as in
    `LMC`; if every output was measured at every site, an iteration takes O(N³ + D³) operations
    instead of O(N³D³).

    >>> from emgpr import ICM
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), 2 - np.sin(X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> model = ICM(rank=1, random_state=0).fit(X, Y)
    >>> np.sign(model.coregionalization_[0])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    fixed: ClassVar[Mapping[str, Any]] = {"n_latents": 1, "output_variances": True}

    _: KW_ONLY
    rank: int = 1
    prior: Literal["weak"] | None = "weak"


@declare_parameters
class SLFM(MultiOutputGP):
    """Semiparametric latent factor model: Q latent processes of rank one, usually fewer than D.

    The parameters are optimised jointly, as in `LMC`.

    >>> from emgpr import SLFM
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(3 * X), np.sin(X) - np.cos(3 * X)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> SLFM(n_latents=2, random_state=0).fit(X, Y).weights_.shape
    (1, 2, 3, 1)
    """

    _: KW_ONLY
    n_latents: int = 2
    prior: Literal["weak"] | None = "weak"
