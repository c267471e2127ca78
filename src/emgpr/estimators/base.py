"""The base class of all estimators, with the scikit-learn interface and all prediction methods."""

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from emgpr import mapping, statistics
from emgpr.arrays import resolve_device
from emgpr.dask import lazy_evaluate, lazy_frame
from emgpr.declared_parameters import check_renamed
from emgpr.estimators.settable_property import settable_property
from emgpr.inputs import InputSpec, as_table, is_lazy, is_plain, order_outputs, validate_outputs
from emgpr.metrics import over_readings
from emgpr.model_files.files import OwnClasses, load_model, save_model
from emgpr.parallel import Execution, RandomState, check_verbose
from emgpr.parameter_checks import check_count
from emgpr.persistence import PathLike
from emgpr.prediction import Posterior
from emgpr.predictor import Function, Predictor
from emgpr.transforms import OutputScaler

Array = np.ndarray


class GPRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """A regressor with an input specification, an output scaler and a posterior.

    Subclasses set `input_spec_`, `output_scaler_` and `posterior_` in `fit`; predictions use them.
    """

    input_spec_: InputSpec
    output_scaler_: OutputScaler
    posterior_: Posterior
    verbose: int
    n_jobs: int | None
    device: str = "cpu"

    def set_params(self, **params: Any) -> Self:
        """Set parameters; names such as `<parameter>__<name>` refer to nested objects."""
        check_renamed(type(self).__name__, params)
        return super().set_params(**params)

    def _execution(self) -> Execution:
        return Execution(resolve_device(self.device), self.n_jobs, check_verbose(self.verbose))

    def _predictor(self) -> Predictor:
        check_is_fitted(self)
        return Predictor(self.input_spec_, self.output_scaler_, self.posterior_, self._execution())

    def _fitted(self, name: str) -> Any:
        """Return a fitted attribute; raise AttributeError if the estimator is not fitted."""
        if name not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet; call fit first.")
        return vars(self)[name]

    @settable_property
    def n_features_in_(self) -> int:
        """Number of input columns."""
        return self._fitted("input_spec_").n_features

    @settable_property
    def feature_names_in_(self) -> Array:
        """Names of the input columns, if these are strings."""
        names = self._fitted("input_spec_").feature_names
        if names is None:
            raise AttributeError(f"This {type(self).__name__} was fitted without feature names.")
        return np.array(names, dtype=object)

    @property
    def output_names_(self) -> list[str]:
        """Names of the outputs."""
        return list(self._fitted("output_scaler_").names)

    @property
    def n_outputs_(self) -> int:
        """Number of outputs."""
        return self._fitted("output_scaler_").n_outputs

    @property
    def transforms_(self) -> list[Any]:
        """Transform of each output, as set by the user or chosen automatically."""
        return list(self._fitted("output_scaler_").specs)

    @property
    def units_(self) -> dict[str, str]:
        """Known units of inputs and outputs, by name, from the tables passed to `fit`."""
        return dict(self._fitted("input_spec_").units)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        observed: Any = None,
        include_noise: bool = True,
        statistic: Literal["median", "mean"] = "median",
    ) -> Array | tuple[Array, Array]:
        """Predict every output at the locations X (M, P).

        If X is a Dask array or frame, this method and all other prediction methods return lazy
        results, with one block for each block of rows.

        Parameters
        ----------
        X : (M, P)
            New locations, with the same columns as the training inputs.
        return_std, return_cov : bool
            Also return the standard deviation of each prediction, (M, D), or the covariance of the
            outputs at each location, (M, D, D).
        observed : (M, D) array or DataFrame, optional
            Outputs already measured at these locations, NaN where missing; a DataFrame may contain
            only some outputs. Predictions for all rows are conditioned on these readings. For an
            output that was measured, a repeated measurement is predicted.
        include_noise : bool
            Whether to predict a new reading (True) or the signal without noise (False).
        statistic : {"median", "mean"}
            Centre of the distribution in original units. Median and mean differ if an output is
            transformed, or if the predictions of the ensemble members differ.

        Returns
        -------
        median or mean : (M, D), or (M,) after a fit to a 1-D y; also std or cov if requested

        Notes
        -----
        A row of X that equals a training site refers to the sample measured at this site. If noise
        is correlated, predictions of other outputs of the sample use the noise of its readings. If
        training readings are repeated in `observed`, they are counted once; if a row of `observed`
        differs from them, it refers to another sample. These rules do not apply if several training
        rows have the same inputs, or if members predict from batches.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov are both True; set one. The diagonal of cov is std²."
            )
        if statistic not in statistics.CENTRES:
            raise statistics.unknown_centre(statistic)
        functions: list[Function] = [statistics.CENTRES[statistic]]
        if return_std or return_cov:
            functions.append(statistics.covariances if return_cov else OutputScaler.std)
        check_is_fitted(self)
        n_components = self.posterior_.n_components
        only_medians = statistic == "median" and not (return_std or return_cov)
        centre, *spread = self._evaluate(
            X, functions, [1, self.n_outputs_ if return_cov else 1][: len(functions)], observed,
            include_noise=include_noise,
            with_cov=not only_medians or self.output_scaler_.median_needs_covariances(n_components),
        )  # fmt: skip
        centre = self._squeeze(centre[0])
        if return_cov:
            return centre, np.moveaxis(spread[0], 0, 1)
        return (centre, self._squeeze(spread[0][0])) if return_std else centre

    def predict_quantiles(
        self, X: Any, q: Any, *, observed: Any = None, include_noise: bool = True
    ) -> Float[Array, "..."]:
        """Predict quantiles of every output for the probabilities q.

        Quantiles are also exact for transformed outputs and for mixtures of ensemble members. The
        result has the shape (M, D) for one probability, and (len(q), M, D) for a list.

        >>> from emgpr import IndependentGP
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> y = np.exp(np.sin(X)[:, 0] + 0.1 * np.random.default_rng(0).normal(size=30))
        >>> model = IndependentGP(output_transform="log", random_state=0).fit(X, y)
        >>> low, high = model.predict_quantiles([[1.57]], [0.025, 0.975])[:, 0]
        >>> bool(low < np.e < high)
        True
        """
        check_is_fitted(self)
        if np.ndim(q) > 1:
            raise ValueError(
                f"q has shape {np.shape(q)}; expected a probability or a list of probabilities."
            )
        quantiles = statistics.Quantiles(q, "q")
        widths = [quantiles.n_values]
        (values,) = self._evaluate(X, [quantiles], widths, observed, include_noise=include_noise)
        return self._squeeze(values[0] if np.ndim(q) == 0 else values)

    def predict_exceedance(
        self, X: Any, threshold: Any, *, observed: Any = None, include_noise: bool = True
    ) -> Float[Array, "..."]:
        """Predict the probability that each output exceeds a threshold.

        `threshold` is one number for all outputs, a list with one for each output, or a dict whose
        keys are names of outputs (results for all other outputs are NaN). The probability refers to
        a new reading if `include_noise` is True, otherwise to the signal.
        """
        check_is_fitted(self)
        thresholds = statistics.threshold_per_output(threshold, self.output_names_, "threshold")
        exceedance = statistics.Exceedance(thresholds)
        (values,) = self._evaluate(X, [exceedance], [1], observed, include_noise=include_noise)
        return self._squeeze(values[0])

    def predict_frame(
        self,
        X: Any,
        *,
        observed: Any = None,
        include_noise: bool = True,
        quantiles: Any = None,
        exceedance: Any = None,
        explain: bool = False,
    ) -> pd.DataFrame:
        """Return predictions as a DataFrame with the columns `<output>` and `<output>_std`.

        `quantiles` adds columns such as `<output>_q0.95`, and `exceedance`, a threshold, columns
        such as `<output>_above_0.8`. `explain` adds `<output>_weight_own`, `…_joint` and
        `…_regression`: the weights of the models in the predictions. Units are in `attrs`.
        """
        predictor = self._predictor()
        options = {"quantiles": quantiles, "exceedance": exceedance, "explain": explain}
        requested = statistics.requested(predictor.scaler.names, **options)
        if not is_plain(X) and is_lazy(X):
            return lazy_frame(predictor, X, requested, observed, include_noise=include_noise)
        return predictor.frame(X, requested, observed, include_noise=include_noise)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: RandomState = 0,
        *,
        observed: Any = None,
        include_noise: bool = True,
    ) -> Float[Array, "..."]:
        """Draw samples of the outputs at X, as an array (M, D, n_samples).

        Samples are drawn jointly for all locations and outputs, so that sums, maxima and maps of a
        sample are meaningful. The shape is (M, n_samples) if the model was fitted to a 1-D y.
        """
        check_count("n_samples", n_samples)
        samples = self._predictor().sample(
            X, int(n_samples), random_state, observed, include_noise=include_noise
        )
        return samples[:, 0] if self.output_scaler_.one_dimensional else samples

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
        """Predict every output on a regular grid; return an `xarray.Dataset` that follows CF-1.11.

        The dataset contains `<output>`, `<output>_std`, units, coordinates and reference system.
        The model must have two inputs (otherwise, see `predict_dataset`). Requires `emgpr[geo]`.

        Parameters
        ----------
        spacing : number, or (along x, along y)
            Distance between cell centres. Without bounds, centres are multiples of this distance.
        shape : (rows, columns), in place of a spacing
        bounds : (west, south, east, north), optional
            Bounds of the cell centres, by default around the training sites. If west > east,
            the grid crosses the date line.
        inside : GeoJSON file or dict, shapely or geopandas geometry, or function, optional
            Region to map. Cells with a centre outside are NaN and not computed. GeoJSON is in
            longitude and latitude unless it specifies another system; for a model without `crs`, it
            is in the coordinates of the model. A function takes x and y and returns booleans.
        crs : str, optional
            Reference system of the grid, by default that of the model; for instance "EPSG:32632"
            for a map in UTM from a model in longitude and latitude. If the model has no `crs`, this
            must be the reference system of its inputs.
        units : str or dict, optional
            Unit of all outputs, or a dict by names of outputs and inputs; by default, `units_`.
        quantiles : list of probabilities, optional
            Adds `<output>_quantiles`.
        exceedance : threshold as in `predict_exceedance`, optional
            Adds `<output>_exceedance`, the probability of values above the threshold.
        statistic, include_noise
            As in `predict`.
        dtype : {"float64", "float32"}
            "float64" returns exactly the values of `predict`; "float32" has seven digits and needs
            half the memory.

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
        options = (quantiles, exceedance, statistic, include_noise, dtype)
        variables = mapping.MapVariables.requested(self._predictor(), *options)
        grid = {"spacing": spacing, "shape": shape, "bounds": bounds, "inside": inside, "crs": crs}
        return mapping.predict_grid(variables, units=units, **grid)

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
        """Predict at every cell of an `xarray.Dataset` whose variables are the model's inputs.

        Inputs are found by name among coordinates and variables (longitude and latitude also by
        their `standard_name`), and can have different dimensions: for instance, time, x, y and an
        elevation with dimensions (y, x) yield a map with dimensions (time, y, x). Predictions are
        NaN where an input is NaN. The other parameters are those of `predict_grid`. For a chunked
        Dataset (`data.chunk(...)`), the map is lazy, with the same chunks, and can be larger than
        memory.

        >>> import xarray
        >>> from emgpr import IndependentGP
        >>> X = pd.DataFrame({"depth": np.linspace(0, 6, 30)})
        >>> salt = np.sin(X["depth"]) + 0.01 * np.random.default_rng(0).normal(size=30)
        >>> model = IndependentGP(random_state=0).fit(X, salt.to_frame("salt"))
        >>> model.predict_dataset(xarray.Dataset(coords={"depth": [1.57]}))["salt"].values.round(1)
        array([1.])
        """
        options = (quantiles, exceedance, statistic, include_noise, dtype)
        variables = mapping.MapVariables.requested(self._predictor(), *options)
        return mapping.predict_dataset(variables, data, units=units)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², computed from the readings of each output and averaged over the outputs."""
        prediction = np.asarray(self.predict(X))
        y = order_outputs(as_table(y), self.output_names_, X)
        truth = validate_outputs(y, len(prediction), training=False)[0]
        if truth.shape[1] != self.n_outputs_:
            n, names = self.n_outputs_, self.output_names_
            raise ValueError(f"y has {truth.shape[1]} columns; expected {n} outputs, {names}.")
        r2 = over_readings(r2_score, least=2)  # R² needs at least two readings
        return r2(truth, np.reshape(prediction, truth.shape), sample_weight=sample_weight)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a file; an existing file is replaced.

        The file contains arrays and JSON with a checksum, but no executable code. `emgpr.load`
        returns a model with the same predictions. The file contains the training data, on which
        predictions are conditioned, or sums over them (`OnePassGP`). See docs/model-files.md.
        """
        check_is_fitted(
            self, msg="This %(name)s is not fitted and cannot be saved; call fit first."
        )
        save_model(type(self), self._state(), path, self.units_)

    @classmethod
    def load(cls, path: PathLike, *, classes: OwnClasses = ()) -> Self:
        """Load a model that was written by `save`.

        `classes` lists user-defined classes and functions that the model uses, such as kernels,
        transformers or a function for `combine`. No other code is executed. Raises `ModelFileError`
        if the file is damaged, was written by a newer version, or is not a model file.
        """
        return load_model(path, {cls.__name__: cls}, classes)

    @abstractmethod
    def _state(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def _from_state(cls, state: dict[str, Any], version: int) -> Self: ...

    def _evaluate(
        self,
        X: Any,
        functions: Sequence[Function],
        widths: Sequence[int],
        observed: Any,
        *,
        include_noise: bool,
        with_cov: bool = True,
    ) -> list[Any]:
        """Evaluate functions of the predictive distribution, lazily if X is a Dask collection."""
        predictor = self._predictor()
        options = {"include_noise": include_noise, "with_cov": with_cov}
        if not is_plain(X) and is_lazy(X):
            return lazy_evaluate(predictor, X, functions, widths, observed, **options)
        return predictor.evaluate(X, functions, observed, **options)

    def _squeeze(self, values: Any) -> Any:
        """Remove the output axis if the model was fitted to a one-dimensional y."""
        return values[..., 0] if self.output_scaler_.one_dimensional else values
