"""Several correlated outputs, predicted with honest uncertainty where they were not measured.

The method (Ruan & Miller 2017), and where each step lives:

1. every output is a mixture of latent Gaussian processes plus noise:
   cov = Σ_q W_q W_qᵀ ⊗ K_q + Σ ⊗ I                   -> `emgpr.covariance`
2. step 1 learns a kernel and a noise from each output alone  -> `emgpr.latents`
3. the sites are dealt to L members of an ensemble            -> `emgpr.ensemble`
4. step 2 learns each member's weights w, starting from δ,
   the model without transfer                                 -> `emgpr.weights`
5. kernels, noise and weights are learned on jointly          -> `emgpr.weights.refine`
6. each member predicts from the readings; beliefs are joined -> `emgpr.prediction`

`EMGPR` is all of this as a scikit-learn estimator; `EMGPR.paper()` stops before 5, as published.
`OnePassGP` is the same model for any number of sites, of which it keeps sums.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emgpr.estimators import (
        EMGPR,
        ICM,
        LMC,
        SLFM,
        EnsembleWarning,
        IndependentGP,
        ModelFileError,
        OnePassGP,
        compare,
        load,
        spatial_blocks,
    )
    from emgpr.sphere import on_sphere

__version__ = "0.1.0"
__all__ = [
    "EMGPR",
    "ICM",
    "LMC",
    "SLFM",
    "EnsembleWarning",
    "IndependentGP",
    "ModelFileError",
    "OnePassGP",
    "compare",
    "load",
    "on_sphere",
    "spatial_blocks",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when first asked for: `emgpr --help` should not wait for SciPy."""
    if name in __all__:
        home = "emgpr.sphere" if name == "on_sphere" else "emgpr.estimators"
        return getattr(import_module(home), name)
    raise AttributeError(f"module 'emgpr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
