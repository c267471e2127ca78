"""Names short enough for a picture: one of a hundred letters would leave no room for it."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emgpr.estimators import CrossValidation

LONGEST = 20


def short(names: Iterable[Any]) -> dict[str, str]:
    """A short name for each, none twice.

    >>> list(short(["Cd", "a very long name of an output", "a very long name of another"]).values())
    ['Cd', 'a very long name of…', 'a very long name o…2']
    """
    found: dict[str, str] = {}
    for name in map(str, names):
        plain = " ".join(name.split())
        cut = plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"
        n = 2
        while cut in found.values():
            cut = f"{plain[: LONGEST - 1 - len(str(n))]}…{n}"
            n += 1
        found[name] = cut
    return found


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
