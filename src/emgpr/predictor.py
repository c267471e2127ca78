"""The parts of a fitted model that predictions need: inputs, output scaler and posterior."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.arrays import chunks
from emgpr.inputs import (
    InputSpec,
    as_table,
    is_plain,
    match_rows,
    observed_warnings,
    validate_observed,
)
from emgpr.parallel import Execution, RandomState, as_generator
from emgpr.prediction import GaussianMixture, Posterior
from emgpr.progress import with_progress
from emgpr.statistics import Statistic, columns_by_output
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn

Array = np.ndarray
Function = Callable[[OutputScaler, GaussianMixture], Array]

BYTES_PER_LOCATION = 64.0  # memory for each mixture component and pair of outputs
PROGRESS_LOCATIONS = 10_000  # number of locations above which verbose predictions show progress


@dataclass(frozen=True)
class Predictor:
    """Predictions in original units from a posterior on the standardised scale."""

    inputs: InputSpec
    scaler: OutputScaler
    posterior: Posterior
    execution: Execution

    def for_worker(self) -> "Predictor":
        """Return a copy for a worker process, with serial execution and without progress bars."""
        return replace(
            self, posterior=self.posterior.for_worker(), execution=self.execution.serial()
        )

    def distribution(
        self,
        X: Any,
        observed: Any = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
    ) -> GaussianMixture:
        """Return the predictive distribution at X on the standardised scale."""
        x = self.inputs.read(X)
        return self.posterior.predict(
            x,
            self.read_observed(match_rows(X, observed, "observed"), len(x)),
            include_noise=include_noise,
            with_cov=with_cov,
            execution=self.execution,
        )

    def read_observed(self, observed: Any, n: int) -> Float[Array, "M D"] | None:
        """Validate and standardise the outputs that were observed at new locations."""
        if observed is None:
            return None
        scaler = self.scaler
        values = validate_observed(observed, n, scaler.names, scaler.one_dimensional)
        reference = scaler.to_original(self.posterior.reference_values)
        for message in observed_warnings(values, reference, scaler.names):
            warn(message)
        return scaler.standardise(values)

    def evaluate(
        self,
        X: Any,
        functions: Sequence[Function],
        observed: Any = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
    ) -> list[Float[Array, "k M D"]]:
        """Evaluate functions of the predictive distribution at X, such as statistics.

        Rows are processed in blocks. With `observed`, all rows are processed together, because each
        prediction depends on all observed values. Functions return arrays (M, D) or (k, M, D).
        """
        if observed is not None:
            given = self.distribution(X, observed, include_noise=include_noise, with_cov=with_cov)
            values = [function(self.scaler, given) for function in functions]
        else:
            x, label = self.inputs.read(X), "Predicting: blocks of locations"
            blocks = self.blocks(x, label, include_noise=include_noise, with_cov=with_cov)
            parts = [[function(self.scaler, part) for function in functions] for _, part in blocks]
            values = [np.concatenate(tables, axis=-2) for tables in zip(*parts, strict=True)]
        return [value.reshape(-1, *value.shape[-2:]) for value in values]

    def blocks(
        self,
        x: Float[Array, "M P"],
        label: str,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
    ) -> Iterator[tuple[slice, GaussianMixture]]:
        """Predict in blocks of rows; yield the slice and the distribution of each block."""
        n = len(x)
        bytes_each = BYTES_PER_LOCATION * self.posterior.n_components * self.scaler.n_outputs**2
        runs = chunks(n, bytes_each, 1) if n else []
        verbose = self.execution.verbose
        if verbose and len(runs) == 1 and n > PROGRESS_LOCATIONS:
            runs = chunks(n, 1.0, 1, budget=n / 10)
        # With several blocks, a single progress bar counts the blocks.
        execution = self.execution if len(runs) == 1 else self.execution.quiet()
        if len(runs) > 1:
            runs = with_progress(runs, len(runs), label, verbose)  # type: ignore[assignment]
        for run in runs:
            rows = slice(run.start, run.stop)
            yield (
                rows,
                self.posterior.predict(
                    x[rows], include_noise=include_noise, with_cov=with_cov, execution=execution
                ),
            )

    def sample(
        self,
        X: Any,
        n_samples: int,
        random_state: RandomState,
        observed: Any = None,
        *,
        include_noise: bool = True,
    ) -> Float[Array, "M D n"]:
        """Draw joint samples for all rows and outputs, in original units."""
        x = self.inputs.read(X)
        samples = self.posterior.sample(
            x,
            n_samples,
            as_generator(random_state),
            self.read_observed(match_rows(X, observed, "observed"), len(x)),
            include_noise=include_noise,
            execution=self.execution,
        )
        return np.moveaxis(self.scaler.samples_to_original(samples), 0, -1)

    def frame_columns(self, statistics: Sequence[Statistic]) -> list[str]:
        """Return the column names for a frame of these statistics; raise if two are equal."""
        names = self.scaler.names
        columns = [c for part in columns_by_output(names, statistics).values() for c in part]
        duplicates = sorted({column for column in columns if columns.count(column) > 1})
        if duplicates:
            raise ValueError(
                f"The result would have several columns with the names {duplicates}, because an "
                f"output has the name of a statistic, such as '<output>_std', of another output. "
                f"The outputs are {list(names)}; rename an output, or use predict."
            )
        return columns

    def frame(
        self,
        X: Any,
        statistics: Sequence[Statistic],
        observed: Any = None,
        *,
        include_noise: bool = True,
    ) -> pd.DataFrame:
        """Return these statistics as a frame with the index of X, and units as an attribute."""
        columns = self.frame_columns(statistics)
        X = X if is_plain(X) else as_table(X)
        values = self.frame_values(X, statistics, observed, include_noise=include_noise)
        index = X.index if isinstance(X, pd.DataFrame) else None
        frame = pd.DataFrame(values, index=index, columns=columns)
        frame.attrs |= self.frame_attributes(statistics)
        return frame

    def frame_attributes(self, statistics: Sequence[Statistic]) -> dict[str, dict[str, str]]:
        """Return the units of the columns of a frame as the attribute "units", if any is known."""
        known = self.inputs.units
        units = {
            column: unit
            for d, name in enumerate(self.scaler.names)
            for statistic in statistics
            if statistic.applies_to(d) and (unit := statistic.unit(name, known)) is not None
            for column in statistic.columns(name, d)
        }
        return {"units": units} if known else {}

    def frame_values(
        self,
        X: Any,
        statistics: Sequence[Statistic],
        observed: Any = None,
        *,
        include_noise: bool = True,
    ) -> Float[Array, "M columns"]:
        """Return the values for a frame of these statistics, in the order of `frame_columns`."""
        values = self.evaluate(X, statistics, observed, include_noise=include_noise)
        columns = [
            table[:, :, d].T
            for d in range(self.scaler.n_outputs)
            for statistic, table in zip(statistics, values, strict=True)
            if statistic.applies_to(d)
        ]
        return np.column_stack(columns)
