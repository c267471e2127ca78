"""Multi-output Gaussian process regression for outputs that are correlated and partly missing.

The steps of the method (Ruan & Miller 2017), and the packages that implement them:

- Model: every output is a linear combination of latent Gaussian processes plus noise,
  cov = Σ_q W_q W_qᵀ ⊗ K_q + Σ ⊗ I (`emgpr.covariance`).
- Step 1 fits a kernel and a noise variance to each output separately (`emgpr.latents`).
- The sites are divided among the L members of an ensemble (`emgpr.ensemble`).
- Step 2 fits the weights of each member, starting from independent outputs (`emgpr.weights`).
- Kernels, noise and weights are then optimised jointly (`emgpr.weights.joint`).
- Each member predicts from the readings, and the predictions are combined (`emgpr.prediction`).

`EMGPR` implements this method as a scikit-learn estimator. `EMGPR.paper()` is the published method,
without the joint optimisation. `OnePassGP` fits the same model in one pass over any number of
sites. `ConditionalGP` predicts an output from the outputs known at the same location
(`emgpr.regression`). `CMOGP` smooths the latent processes differently for each output
(`emgpr.convolution`), `GPRN` lets correlations change over the region
(`emgpr.regression_network`), and `CoKriging` fits variograms (`emgpr.cokriging`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emgpr.version import __version__

if TYPE_CHECKING:
    from emgpr.estimators import (
        CMOGP,
        EMGPR,
        GPRN,
        ICM,
        LMC,
        SLFM,
        CoKriging,
        ConditionalGP,
        EnsembleWarning,
        IndependentGP,
        ModelFileError,
        OnePassGP,
        compare,
        load,
        spatial_blocks,
    )
    from emgpr.sphere import on_sphere

__all__ = [
    "CMOGP",
    "EMGPR",
    "GPRN",
    "ICM",
    "LMC",
    "SLFM",
    "CoKriging",
    "ConditionalGP",
    "EnsembleWarning",
    "IndependentGP",
    "ModelFileError",
    "OnePassGP",
    "__version__",
    "compare",
    "load",
    "on_sphere",
    "spatial_blocks",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `emgpr --help` does not import SciPy."""
    if name in __all__:
        module = "emgpr.sphere" if name == "on_sphere" else "emgpr.estimators"
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'emgpr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
