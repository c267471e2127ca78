"""The first step of a fit: transforms and standardisation of the outputs."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from emgpr.arrays import limit_threads
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.input_columns import are_coordinates
from emgpr.fitting.output_order import OutputOrder
from emgpr.inputs import TrainingTable
from emgpr.latents import column_scales
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import is_auto
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import (
    OutputScaler,
    bounds_per_output,
    choose_transforms,
    is_constant,
    transforms_to_fit,
)

Array = np.ndarray


def standardise(
    table: TrainingTable, settings: FitSettings, order: OutputOrder, execution: Execution
) -> tuple[OutputScaler, Observations]:
    """Fit the output transforms and scales, and return them with the standardised readings.

    The results are in the given order of the outputs, but error messages name the outputs in the
    order of the columns.
    """
    as_given = table, settings
    table, settings = order.table(table), order.settings(settings)
    with rows_of_table(table.inputs.rows):
        try:
            scaler, Z = _scaled(table, settings, execution)
        except ValueError:
            _scaled(*as_given, execution)
            raise
    if settings.normalize_y:  # rounding errors would give a constant output a tiny signal
        Z = np.where(is_constant(table.Y) & ~np.isnan(Z), 0.0, Z)
    return scaler, Observations.from_table(table.x, Z)


def _scaled(
    table: TrainingTable, settings: FitSettings, execution: Execution
) -> tuple[OutputScaler, Float[Array, "N D"]]:
    given = transforms_to_fit(settings.output_transform, settings.compositions, table.output_names)
    if any(map(is_auto, given)):
        with limit_threads(0):  # few sites are used
            bounds = bounds_per_output(settings.output_bounds, table.output_names, table.Y, given)
            # A single length-scale, as used here, requires columns in comparable units.
            x = table.x
            x = x if are_coordinates(table.inputs, x) else x / column_scales(x)
            execution = replace(execution, device="cpu")
            chosen = choose_transforms(x, table.Y, bounds, execution=execution)
        given = [c if is_auto(g) else g for c, g in zip(chosen, given, strict=True)]
    scaler = OutputScaler.fit(
        table.Y,
        given,
        bounds=settings.output_bounds,
        compositions=settings.compositions,
        normalize=settings.normalize_y,
        names=table.output_names,
        one_dimensional=table.one_dimensional,
    )
    return scaler, scaler.standardise(table.Y)
