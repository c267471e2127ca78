"""The variables of a map: statistics of every output, with CF names and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from emgpr.geo import Variable, variable_name
from emgpr.parameter_checks import with_string_keys
from emgpr.predictor import Predictor
from emgpr.statistics import Statistic, requested

Array = np.ndarray


@dataclass(frozen=True)
class MapVariables:
    """Statistics of every output in every cell of a map."""

    predictor: Predictor
    statistics: tuple[Statistic, ...]
    include_noise: bool
    dtype: Literal["float64", "float32"]

    @classmethod
    def requested(
        cls,
        predictor: Predictor,
        quantiles: Any,
        exceedance: Any,
        statistic: str,
        include_noise: bool,
        dtype: Any,
    ) -> "MapVariables":
        """Create the variables of a map, after validating the requested statistics."""
        statistics = requested(
            predictor.scaler.names,
            statistic=statistic,
            quantiles=quantiles,
            exceedance=exceedance,
        )
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype={dtype!r}; expected 'float64' or 'float32'.")
        _check_names(predictor.scaler.names, statistics)
        return cls(predictor, tuple(statistics), include_noise, dtype)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.predictor.scaler.names

    @property
    def n_values(self) -> int:
        """Number of values for each output and cell."""
        return sum(statistic.n_values for statistic in self.statistics)

    def for_worker(self) -> "MapVariables":
        """Return a copy for a worker process, with serial execution and without progress bars."""
        return replace(self, predictor=self.predictor.for_worker())

    def cells(
        self, locations: Float[Array, "M P"], inside: Bool[Array, " M"] | None = None
    ) -> Float[Array, "M D k"]:
        """Evaluate all statistics at the locations inside the map, block by block.

        Values at other locations are NaN. By default, all locations without NaN inputs are inside.
        """
        if inside is None:
            inside = np.isfinite(locations).all(axis=1)
        rows = np.flatnonzero(inside)
        shape = (len(locations), len(self.outputs), self.n_values)
        values = np.full(shape, np.nan, dtype=self.dtype)
        if not len(rows):
            return values
        predictor = self.predictor
        x = predictor.inputs.read(predictor.inputs.named(locations[rows]))
        label = "Predicting: blocks of cells"
        for block, distribution in predictor.blocks(x, label, include_noise=self.include_noise):
            parts = [statistic(predictor.scaler, distribution) for statistic in self.statistics]
            values[rows[block]] = np.moveaxis(np.concatenate(parts), 0, -1)
        return values

    def coordinates(self) -> dict[str, Variable]:
        """Return the coordinate variables of statistics with several values, such as quantiles."""
        return {
            name: axis
            for statistic in self.statistics
            for name, axis in statistic.coordinate().items()
        }

    def variables(
        self, values: Any, dims: tuple[str, ...], units: Mapping[str, str]
    ) -> dict[str, Variable]:
        """Return the variables for every output, given values of shape (*dims, D, k)."""
        variables: dict[str, Variable] = {}
        for d, output in enumerate(self.outputs):
            start, names = 0, []
            for statistic in self.statistics:
                part = values[..., d, start : start + statistic.n_values]
                start += statistic.n_values
                if not statistic.applies_to(d):
                    continue
                names.append(variable_name(output) + statistic.suffix)
                unit = statistic.unit(output, units)
                attributes = {"long_name": statistic.describe(output, d, units)}
                attributes |= {} if unit is None else {"units": unit}
                if statistic.axis is None:
                    variables[names[-1]] = (dims, part[..., 0], attributes)
                else:
                    all_dims = (statistic.axis, *dims)
                    variables[names[-1]] = (all_dims, np.moveaxis(part, -1, 0), attributes)
            variables[names[0]][2]["ancillary_variables"] = " ".join(names[1:])
        return variables

    def comment(self) -> str:
        """Return a description of the mapped statistics."""
        what = "a new reading" if self.include_noise else "the signal without noise"
        centre = self.statistics[0].describe("the predictive distribution", 0, {})
        return f"Each output is the {centre} of {what}."


def map_title(outputs: Sequence[str]) -> str:
    """Return the title of a map of these outputs."""
    return f"Predictions of {', '.join(outputs)}"


def select_map_outputs(data: Any, outputs: Sequence[str]) -> Any:
    """Return a map with the variables of these outputs only."""
    kept = []
    for output in outputs:
        centre = variable_name(output)
        kept += [centre, *data[centre].attrs["ancillary_variables"].split()]
    kept += [name for name in data.data_vars if not data[name].dims]  # the reference system
    return data[kept].assign_attrs(title=map_title(outputs))


def _check_names(outputs: Sequence[str], statistics: Sequence[Statistic]) -> None:
    """Raise ValueError if two variables of a map would have the same name."""
    suffixes = {"", "_std", "_quantiles", "_exceedance", *(s.suffix for s in statistics)}
    used = [variable_name(name) + suffix for name in outputs for suffix in suffixes]
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise ValueError(
            f"A map of the outputs {list(outputs)} would have several variables with the names "
            f"{repeated}. Rename the outputs before fit, using letters, digits and underscores."
        )


def units_by_name(
    given: Any, outputs: Sequence[str], inputs: Sequence[str], stored: Mapping[str, str]
) -> dict[str, str]:
    """Return a dict from column names to units: those given, or else those stored.

    A single given unit applies to all outputs.

    >>> units_by_name("mg/kg", ["Cd", "Ni"], ["x"], {"Cd": "ppm", "x": "km"})
    {'Cd': 'mg/kg', 'x': 'km', 'Ni': 'mg/kg'}
    """
    if given is None:
        return dict(stored)
    if isinstance(given, str):
        return {**stored, **dict.fromkeys(outputs, given)}
    given = with_string_keys(given, "units")
    unknown = [name for name in given if name not in (*outputs, *inputs)]
    if unknown:
        raise ValueError(
            f"units has the keys {unknown}, which are neither outputs nor inputs of this model; "
            f"expected any of the outputs {list(outputs)} and inputs {list(inputs)}."
        )
    return {**stored, **given}
