"""Maps: predictions on grids and on the coordinates of data sets, following the CF conventions."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from sklearn.utils.validation import check_is_fitted

from emgpr import __version__, geo
from emgpr.estimators.door import enter_inputs, input_names
from emgpr.estimators.gathered import is_lazy
from emgpr.estimators.lazy import lazy_map
from emgpr.estimators.predictor import Predictor
from emgpr.estimators.wanted import Wanted
from emgpr.io import read_region

Array = np.ndarray


class Mapper(Predictor):
    """A fitted model that draws maps."""

    crs: str | None
    verbose: int

    @abstractmethod
    def _around(self) -> Float[Array, "N P"]:
        """Places, as kernels see them, around which a map is drawn if no bounds are given."""

    @property
    @abstractmethod
    def _n_sites(self) -> int:
        """How many sites were learned from."""

    def predict_grid(
        self,
        spacing: float | Sequence[float] | None = None,
        *,
        shape: tuple[int, int] | None = None,
        bounds: Sequence[float] | None = None,
        inside: Any = None,
        crs: str | None = None,
        units: str | Mapping[str, str] | None = None,
        quantiles: Sequence[float] | None = None,
        exceedance: Any = None,
        statistic: Literal["median", "mean"] = "median",
        include_noise: bool = True,
        dtype: Literal["float64", "float32"] = "float64",
    ) -> Any:
        """Predict every output on a regular grid, as an `xarray.Dataset` that follows CF-1.11.

        It holds each output and its `<output>_std`, units, the reference system and coordinates.
        Needs `pip install 'emgpr[geo]'`, and a model of two input columns; with more, see
        `predict_dataset`. Cells are predicted in blocks, so that memory does not grow with them.

        Parameters
        ----------
        spacing : number, or (along x, along y)
            Distance of cells, in the coordinates' units. Without bounds, they lie at its multiples.
        shape : (rows, columns), in place of a spacing
        bounds : (west, south, east, north), optional
            Of the cells' centres; around the training sites if not given. Longitudes with
            west > east go across the date line.
        inside : GeoJSON file or dict, shapely or geopandas geometry, or function, optional
            Cells whose centre is outside are NaN, and take no time. GeoJSON is in longitude and
            latitude unless it says otherwise; with a model of no `crs`, in its coordinates. A
            function takes x and y of the cells and gives an array of bool.
        crs : str, optional
            Reference system of the grid, if not the model's own: "EPSG:32632" for a map in UTM
            from a model in longitude and latitude. Of a model without one: what its inputs are in.
        units : str or dict, optional
            Units of the outputs: of all, or by name. Those of inputs without a `crs` may be there.
        quantiles : list of probabilities, optional
            Adds `<output>_quantiles`.
        exceedance : threshold, list with one for each output, or dict by name, optional
            Adds `<output>_exceedance`, the probability to be above it; of the outputs in the dict.
        statistic, include_noise
            As in `predict`.
        dtype : {"float64", "float32"}
            "float64" is bit for bit what `predict` says; "float32" has seven digits, and is half
            the size.

        Examples
        --------
        >>> from emgpr import IndependentGP
        >>> from emgpr.datasets import load_jura
        >>> sites = load_jura().train
        >>> model = IndependentGP(random_state=0).fit(sites[["Xloc", "Yloc"]], sites[["Cd", "Ni"]])
        >>> jura = model.predict_grid(0.5, units={"Cd": "mg/kg", "Ni": "mg/kg", "Xloc": "km"})
        >>> list(jura.data_vars), dict(jura.sizes)
        (['Cd', 'Cd_std', 'Ni', 'Ni_std'], {'Yloc': 12, 'Xloc': 10})
        """
        check_is_fitted(self)
        names = input_names(self)
        if len(names) != 2:
            raise ValueError(
                f"predict_grid maps models of two input columns, and this one has {len(names)}: "
                f"{names}. Use predict_dataset with a Dataset that holds all of them."
            )
        wanted = Wanted.asked(self, quantiles, exceedance, statistic, include_noise, dtype)
        units = wanted.units(units, names)
        own, target = self.crs, crs or self.crs
        if own is None and geo.is_geographic(target):
            warnings.warn(str(geo.doubt_flat(["lon", "lat"])), UserWarning, stacklevel=2)
        places = geo.Places.of(names, own)
        x = y = np.empty(0)
        if bounds is None:
            x, y = places.leave(self._around())
            if own is not None and target is not None:
                x, y = geo.moved(x, y, own, target)
        degrees = geo.is_geographic(target)
        grid = geo.regular(x, y, spacing, shape, bounds, degrees=degrees)
        at_x, at_y = grid.cells()
        within = np.ones(len(at_x), bool)
        if inside is not None:
            within = _within(inside, at_x, at_y, target, degrees)
            geo.covered(grid, within)
        if own is not None and target is not None:
            at_x, at_y = geo.moved(at_x, at_y, target, own)
            within &= np.isfinite(at_x) & np.isfinite(at_y)
        cells = np.empty((len(at_x), 2))
        cells[:, places.x], cells[:, places.y] = at_x, at_y
        axes = [names[places.x], names[places.y]]
        dims, coordinates = geo.grid_coordinates(grid, axes, target, units)
        values = self._mapped(cells, within, wanted)
        asked = f"spacing={spacing!r}" if shape is None else f"shape={shape!r}"
        return self._as_dataset(
            coordinates, dims, grid.shape, values, wanted, units, target, f"predict_grid({asked})"
        )

    def predict_dataset(
        self,
        data: Any,
        *,
        units: str | Mapping[str, str] | None = None,
        quantiles: Sequence[float] | None = None,
        exceedance: Any = None,
        statistic: Literal["median", "mean"] = "median",
        include_noise: bool = True,
        dtype: Literal["float64", "float32"] = "float64",
    ) -> Any:
        """Predict at every place of an `xarray.Dataset` whose variables are the model's inputs.

        Inputs are found by name among coordinates and variables (longitude and latitude by their
        `standard_name` too), and may have different dimensions: a time axis, x, y, and an
        elevation of (y, x) give a map of (time, y, x). Where an input is NaN, so are predictions.
        Other parameters as in `predict_grid`.

        Of a Dataset in chunks (`data.chunk(...)`) the map is lazy and in the same chunks: it is
        worked out as it is written, `to_zarr` or `to_netcdf`, and may be larger than memory.

        >>> import xarray
        >>> from emgpr import IndependentGP
        >>> X = pd.DataFrame({"depth": np.linspace(0, 6, 30)})
        >>> salt = np.sin(X["depth"]) + 0.01 * np.random.default_rng(0).normal(size=30)
        >>> model = IndependentGP(random_state=0).fit(X, salt.to_frame("salt"))
        >>> model.predict_dataset(xarray.Dataset(coords={"depth": [1.57]}))["salt"].values.round(1)
        array([1.])
        """
        check_is_fitted(self)
        xarray = geo.needed("xarray", "A map")
        wanted = Wanted.asked(self, quantiles, exceedance, statistic, include_noise, dtype)
        names = input_names(self)
        inputs = [_found(data, name, self, names) for name in names]
        if not any(one.dims for one in inputs):
            raise ValueError("The inputs have no dimensions; give at least one coordinate.")
        dims = _dims_in_order(inputs, names)
        if is_lazy(data):
            shape, values = lazy_map(self, inputs, dims, data.chunksizes, wanted)
        else:
            inputs = [one.transpose(*dims) for one in xarray.broadcast(*inputs)]
            shape = inputs[0].shape
            places = np.column_stack([np.asarray(one.values, float).ravel() for one in inputs])
            values = self._mapped(places, np.isfinite(places).all(axis=1), wanted)
        kept = {name: data[name] for name in data.coords if set(data[name].dims) <= set(dims)}
        return self._as_dataset(
            kept, dims, shape, values, wanted, wanted.units(units, names), self.crs,
            "predict_dataset",
        )  # fmt: skip

    def _mapped(
        self, places: Float[Array, "M P"], within: Bool[Array, " M"], wanted: Wanted
    ) -> dict[str, Float[Array, "... M D"]]:
        """What is wanted at these places, block after block; NaN where they are not within."""
        names = getattr(self, "feature_names_in_", None)
        rows, D = np.flatnonzero(within), self.n_outputs_
        answer = {
            name: np.full((*lead, len(places), D), np.nan, dtype=wanted.dtype)
            for name, lead in wanted.shapes().items()
        }
        X = places[rows] if names is None else pd.DataFrame(places[rows], columns=list(names))
        x = enter_inputs(self, X) if len(rows) else places[rows]
        for block, belief in self._beliefs(x, wanted.include_noise, "Predicting: blocks of cells"):
            at = rows[block]
            for name, part in wanted.of(self._scale, belief).items():
                answer[name][..., at, :] = part
        return answer

    def _as_dataset(
        self,
        coordinates: Mapping[str, Any],
        dims: tuple[str, ...],
        shape: tuple[int, ...],
        values: Mapping[str, Any],
        wanted: Wanted,
        units: Mapping[str, str],
        crs: str | None,
        call: str,
    ) -> Any:
        kind = type(self).__name__
        extra = wanted.coordinates()
        return geo.dataset(
            dict(coordinates) | extra,
            wanted.variables(values, dims, shape, units),
            crs=crs,
            title=f"Predictions of {', '.join(self.output_names_)}",
            source=f"Gaussian process regression ({kind}) on {self._n_sites} sites, "
            f"emgpr {__version__}",
            comment=wanted.comment(),
            history=f"{kind}.{call}",
        )


def _within(
    region: Any, x: Float[Array, " M"], y: Float[Array, " M"], crs: str | None, degrees: bool
) -> Bool[Array, " M"]:
    if callable(region):
        return np.array(region(x, y), dtype=bool)
    geometry, of = read_region(region)
    turning = geo.is_geographic(of) if of and crs else degrees
    return geo.inside(geometry, x, y, crs=crs, geometry_crs=of, degrees=turning)


def _dims_in_order(inputs: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Dimensions of a map as CF has them, (time, y, x); a variable of both y and x keeps its order.

    Programs that know no names of dimensions, and GeoTIFF, take the last one for x.
    """
    widest = sorted(inputs, key=lambda one: -one.ndim)
    dims = list(dict.fromkeys(dim for one in widest for dim in one.dims))
    if len(names) < 2:
        return tuple(dims)
    places = geo.Places.of(names, None)
    x, y = inputs[places.x].dims, inputs[places.y].dims
    at = [dim for dim in dims if dim in {*x, *y}]
    if len(x) == len(y) == 1 and not any({*x, *y} <= {*one.dims} for one in inputs):
        at = [*y, *x]
    return (*(dim for dim in dims if dim not in at), *at)


def _found(data: Any, name: str, model: Any, names: Sequence[str]) -> Any:
    """The variable of an input: by name, or longitude and latitude by what they say they are."""
    if name in data.variables:
        return data[name]
    places = geo.Places.of(names, model.crs)
    if places.degrees and name in (names[places.x], names[places.y]):
        meaning = "longitude" if name == names[places.x] else "latitude"
        for other in data.variables:
            if data[other].attrs.get("standard_name") == meaning:
                return data[other]
    raise ValueError(
        f"The Dataset has no variable {name!r}, an input of this model ({list(names)}); it has "
        f"{sorted(map(str, data.variables))}. Rename what it is, or assign it."
    )
