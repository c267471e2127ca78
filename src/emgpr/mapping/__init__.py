"""Predictions on grids and at the coordinates of an xarray.Dataset."""

from emgpr.mapping.predict import predict_dataset, predict_grid
from emgpr.mapping.variables import MapVariables, select_map_outputs, units_by_name

__all__ = ["MapVariables", "predict_dataset", "predict_grid", "select_map_outputs", "units_by_name"]
