"""What a map is to show of each output, and what CF calls it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from emgpr.geo import variable_name
from emgpr.prediction import Belief
from emgpr.transforms import Marginals

Array = np.ndarray
Variable = tuple[tuple[str, ...], Any, dict[str, Any]]  # an array of NumPy or Dask

SUFFIX = {"centre": "", "std": "_std", "quantiles": "_quantiles", "exceedance": "_exceedance"}


@dataclass(frozen=True)
class Wanted:
    """Centre and standard deviation of every output, and perhaps quantiles and exceedances."""

    outputs: tuple[str, ...]
    quantiles: Float[Array, " n"] | None
    thresholds: Float[Array, " D"] | None
    statistic: Literal["median", "mean"]
    include_noise: bool
    dtype: Literal["float64", "float32"]

    @classmethod
    def asked(
        cls,
        model: Any,
        quantiles: Any,
        exceedance: Any,
        statistic: Any,
        include_noise: bool,
        dtype: Any,
    ) -> "Wanted":
        """As the user said, checked before any work starts."""
        if statistic not in ("median", "mean"):
            raise ValueError(f"statistic={statistic!r}; expected 'median' or 'mean'.")
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype={dtype!r}; expected 'float64' or 'float32'.")
        outputs = tuple(model.output_names_)
        q = None if quantiles is None else quantiles_of(quantiles)
        thresholds = None if exceedance is None else thresholds_of(exceedance, outputs)
        made = cls(outputs, q, thresholds, statistic, include_noise, dtype)
        made.names()
        return made

    def names(self) -> list[dict[str, str]]:
        """Variables of every output; all differ."""
        plain = [variable_name(name) for name in self.outputs]
        every = [{kind: name + end for kind, end in SUFFIX.items()} for name in plain]
        used = [name for names in every for name in names.values()]
        if len(set(used)) < len(used):
            twice = sorted({name for name in used if used.count(name) > 1})
            raise ValueError(
                f"Outputs {list(self.outputs)} would share the variables {twice} in a map; rename "
                "them before fit, with letters, digits and underscores."
            )
        return every

    def units(self, given: Any, inputs: Sequence[str]) -> dict[str, str]:
        """Units by name, of outputs and inputs."""
        return units_by_name(given, self.outputs, inputs)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Leading axes of everything wanted."""
        found: dict[str, tuple[int, ...]] = {"centre": (), "std": ()}
        if self.quantiles is not None:
            found["quantiles"] = (len(self.quantiles),)
        if self.thresholds is not None:
            found["exceedance"] = ()
        return found

    def of(self, scale: Marginals, belief: Belief) -> dict[str, Float[Array, "... m D"]]:
        """All of it, from one belief."""
        centre = scale.median if self.statistic == "median" else scale.mean
        variance = np.einsum("mdd->md", scale.covariance(belief))
        found = {"centre": centre(belief), "std": np.sqrt(np.maximum(variance, 0.0))}
        if self.quantiles is not None:
            found["quantiles"] = scale.quantiles(belief, self.quantiles)
        if self.thresholds is not None:
            found["exceedance"] = scale.exceedance(belief, self.thresholds)
        return found

    def coordinates(self) -> dict[str, Variable]:
        """The axis of quantiles, if there is one."""
        if self.quantiles is None:
            return {}
        what = {"long_name": "probability to be below", "units": "1"}
        return {"quantile": (("quantile",), self.quantiles, what)}

    def variables(
        self,
        values: Mapping[str, Any],
        dims: tuple[str, ...],
        shape: tuple[int, ...],
        units: Mapping[str, str],
    ) -> dict[str, Variable]:
        """Everything by name, output after output, with its attributes."""
        found: dict[str, Variable] = {}
        for d, names in enumerate(self.names()):
            asked = [kind for kind in values if self._is_asked(kind, d)]
            for kind, table in ((kind, values[kind]) for kind in asked):
                lead = ("quantile",) if kind == "quantiles" else ()
                array = table[..., d].reshape(*table.shape[: len(lead)], *shape)
                found[names[kind]] = ((*lead, *dims), array, self._attributes(kind, d, units))
            beside = [names[kind] for kind in asked if kind != "centre"]
            found[names["centre"]][2]["ancillary_variables"] = " ".join(beside)
        return found

    def _is_asked(self, kind: str, d: int) -> bool:
        """Whether it is wanted of this output: thresholds may be given for some only."""
        return kind != "exceedance" or not np.isnan(self.thresholds[d])  # type: ignore[index]

    def _attributes(self, kind: str, d: int, units: Mapping[str, str]) -> dict[str, Any]:
        name = self.outputs[d]
        if kind == "exceedance" and self.thresholds is not None:
            limit = f"{self.thresholds[d]:g} {units.get(name, '')}".strip()
            return {"long_name": f"probability that {name} is above {limit}", "units": "1"}
        what = {
            "centre": f"{self.statistic} of {name}",
            "std": f"standard deviation of {name}",
            "quantiles": f"quantiles of {name}",
        }[kind]
        return {"long_name": what} | ({"units": units[name]} if name in units else {})

    def comment(self) -> str:
        """What the numbers are of."""
        of = "a new reading" if self.include_noise else "the signal beneath the noise"
        return f"Each output is the {self.statistic} of the predictive distribution of {of}."


def units_by_name(given: Any, outputs: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Units of outputs and inputs: one for all outputs, or by name; none may be of something else.

    >>> units_by_name("mg/kg", ["Cd", "Ni"], ["x"])
    {'Cd': 'mg/kg', 'Ni': 'mg/kg'}
    """
    if given is None:
        return {}
    if isinstance(given, str):
        return dict.fromkeys(outputs, given)
    unknown = [name for name in given if name not in (*outputs, *inputs)]
    if unknown:
        raise ValueError(
            f"units has {unknown}, which this model has not; its outputs are {list(outputs)}, its "
            f"inputs {list(inputs)}."
        )
    return dict(given)


def thresholds_of(given: Any, outputs: Sequence[str]) -> Float[Array, " D"]:
    """One for each output; NaN for those that a dict leaves out.

    >>> thresholds_of({"Cd": 0.8}, ["Cd", "Zn"])
    array([0.8, nan])
    """
    if isinstance(given, Mapping):
        unknown = [str(name) for name in given if name not in outputs]
        if unknown or not given:
            raise ValueError(
                f"exceedance has thresholds for {unknown}; expected names of outputs, which are "
                f"{list(outputs)}."
            )
        given = [given.get(name, np.nan) for name in outputs]
    limits = np.asarray(given, dtype=float)
    if limits.shape not in ((), (len(outputs),)):
        raise ValueError(
            f"exceedance has shape {limits.shape}; expected a threshold for all outputs, or "
            f"{len(outputs)}: one for each."
        )
    return np.broadcast_to(limits, (len(outputs),))


def quantiles_of(given: Any) -> Float[Array, " n"]:
    """Probabilities, one or several."""
    q = np.atleast_1d(np.asarray(given, dtype=float))
    if q.ndim > 1 or not len(q) or not ((q > 0) & (q < 1)).all():
        raise ValueError(f"quantiles={given!r}; expected probabilities between 0 and 1.")
    return q
