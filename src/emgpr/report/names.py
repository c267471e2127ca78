"""Names short enough for a picture: one of a hundred letters would leave no room for it."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emgpr.estimators import CrossValidation
from emgpr.plots.labels import short


@dataclass(frozen=True)
class Named:
    """What pictures are drawn from, under short names."""

    model: Any
    found: CrossValidation
    units: Mapping[str, str]

    @classmethod
    def of(cls, model: Any, found: CrossValidation, units: Mapping[str, str]) -> "Named":
        """The same model and findings; they are not changed."""
        outputs = short(model.output_names_)
        inputs = short(model.training_data()[0].columns)
        named = copy.copy(model)
        named.output_names_ = list(outputs.values())
        named.variance_shares_ = model.variance_shares_.rename(index=outputs)
        if hasattr(model, "feature_names_in_"):
            named.feature_names_in_ = np.array(list(inputs.values()), dtype=object)
        frames = {k: v.rename(columns=outputs) for k, v in vars(found).items() if k != "by"}
        units = {(inputs | outputs)[name]: short([unit])[unit] for name, unit in units.items()}
        return cls(named, replace(found, **frames), units)
