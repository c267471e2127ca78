"""The weights of the models that an output is predicted by, at each location."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from emgpr.prediction import GaussianMixture
from emgpr.stacking import CANDIDATES
from emgpr.statistics.base import Statistic
from emgpr.transforms import OutputScaler

Array = np.ndarray


class CandidateShares(Statistic):
    """The weights of own process, joint model and regression in each prediction."""

    suffix: ClassVar[str] = "_weights"
    axis: ClassVar[str | None] = "model"
    n_values = len(CANDIDATES)

    def __call__(
        self, scaler: OutputScaler, distribution: GaussianMixture
    ) -> Float[Array, "k M D"]:
        """Return the weight of each model, zero for models that are not used.

        A single output is predicted by its own process alone, unless models are averaged.
        """
        shares = np.zeros((len(CANDIDATES), *distribution.mean.shape[1:]))
        if distribution.names is None or distribution.weights is None:
            if shares.shape[-1] == 1:
                shares[CANDIDATES.index("own")] = 1.0
                return shares
            raise ValueError(
                "explain=True asks for the weights of several models, but each output of this "
                'estimator is predicted by one model. EMGPR with transfer="auto" and ConditionalGP '
                "have such weights if they are fitted to several outputs."
            )
        shares[[CANDIDATES.index(name) for name in distribution.names]] = distribution.weights
        return shares

    def columns(self, name: str, d: int) -> list[str]:
        """Return a name such as Cd_weight_joint for each model."""
        return [f"{name}_weight_{candidate}" for candidate in CANDIDATES]

    def describe(self, name: str, d: int, units: Mapping[str, str]) -> str:
        """Return a description such as "weights of the models that predict Cd"."""
        return f"weights of the models that predict {name}"

    def unit(self, name: str, units: Mapping[str, str]) -> str | None:
        """Return the unit of a share."""
        return "1"

    def coordinate(self) -> dict[str, Any]:
        """Return the names of the models along the axis."""
        return {"model": (("model",), list(CANDIDATES), {"long_name": "model"})}
