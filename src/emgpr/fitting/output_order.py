"""The order in which the outputs are fitted, which does not depend on the columns of the table.

Some steps of a fit treat the outputs one after the other, such as the choice of transforms, or
parametrise them in an order, such as correlated noise. If this were the order of the columns,
exchanging two columns would change the predictions, because the optimisation would take another
path. The outputs are therefore fitted in an order that is derived from their readings, and the
result is returned in the order of the columns.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from emgpr.fitting.defaults import FitSettings
from emgpr.inputs import TrainingTable
from emgpr.latents import is_external
from emgpr.prediction import LMCModel, LMCPosterior, ParameterDirections
from emgpr.stacking import StackedPosterior
from emgpr.transforms import OutputScaler
from emgpr.transforms.output_bounds import is_list_of_bounds

Array = np.ndarray


@dataclass(frozen=True)
class OutputOrder:
    """An order of the outputs: `columns[i]` is the column of the i-th output that is fitted."""

    columns: Int[Array, " D"]

    @classmethod
    def of_readings(cls, Y: Float[Array, "N D"], settings: FitSettings) -> "OutputOrder":
        """Return the order of a fit, in which the ranks of the first row's readings increase.

        A rank is that of a reading among the readings of its output, so that units do not matter.
        Outputs with equal ranks are ordered by the next row, and so on. If the user lists kernels
        or regressors, which refer to the order of the columns, that order is used.

        >>> Y = np.array([[3.0, 1.0, np.nan], [0.0, 2.0, 0.0]])
        >>> OutputOrder.of_readings(Y, FitSettings()).columns
        array([2, 1, 0])
        """
        learner = settings.latent_learner
        if settings.lists_kernels or (is_external(learner) and isinstance(learner, list | tuple)):
            return cls(np.arange(Y.shape[1]))
        increasing, n = np.sort(Y, axis=0), 1  # NaN is last
        while True:
            ranks = _ranks(Y[:n], increasing)
            if n >= len(Y) or len(np.unique(ranks, axis=1).T) == Y.shape[1]:
                return cls(np.lexsort(ranks[::-1]))
            n *= 32  # the first rows did not determine the order

    @property
    def positions(self) -> Int[Array, " D"]:
        """Position of each column in the order in which the outputs are fitted."""
        return np.argsort(self.columns)

    def table(self, table: TrainingTable) -> TrainingTable:
        """Return a table with its outputs in the order of the fit."""
        names = tuple(table.output_names[d] for d in self.columns)
        return replace(table, Y=table.Y[:, self.columns], output_names=names)

    def settings(self, settings: FitSettings) -> FitSettings:
        """Return settings whose lists for each output are in the order of the fit."""
        return replace(
            settings,
            output_transform=self._reordered(settings.output_transform),
            output_bounds=(
                self._reordered(settings.output_bounds)
                if is_list_of_bounds(settings.output_bounds)
                else settings.output_bounds
            ),
        )

    def latent_numbers(self, Q: int) -> Int[Array, " Q"]:
        """Return the final numbers of the latent processes of a fit.

        If there is one process for each output, the processes have the order of the columns.
        """
        return self.columns if len(self.columns) == Q else np.arange(Q)

    def restored_scaler(self, scaler: OutputScaler) -> OutputScaler:
        """Return a scaler with its outputs in the order of the columns."""
        at = self.positions
        return replace(
            scaler,
            transforms=tuple(scaler.transforms[d] for d in at),
            shift=scaler.shift[at],
            scale=scaler.scale[at],
            names=tuple(scaler.names[d] for d in at),
            specs=tuple(scaler.specs[d] for d in at),
            order=tuple(self.columns.tolist()),
            compositions=tuple(
                replace(whole, outputs=tuple(int(self.columns[d]) for d in whole.outputs))
                for whole in scaler.compositions
            ),
        )

    def restored_posterior(self, posterior: LMCPosterior) -> LMCPosterior:
        """Return a posterior with its outputs in the order of the columns."""
        table, own = posterior.observations, posterior.independent
        if isinstance(posterior, StackedPosterior):
            posterior = replace(posterior, stack=posterior.stack.reorder(self.columns))
        return replace(
            posterior,
            observations=table.select_outputs(self.positions),
            model=self._restored_model(posterior.model),
            independent=None if own is None else self._restored_model(own),
            directions=self._restored_directions(posterior.directions, posterior.model),
            independent_directions=self._restored_directions(posterior.independent_directions, own),
        )

    def _restored_directions(
        self, directions: ParameterDirections | None, model: LMCModel | None
    ) -> ParameterDirections | None:
        if directions is None or model is None:
            return None
        latents = np.argsort(self.latent_numbers(len(model.kernels)))
        return directions.reorder(model.kernels, latents, self.positions)

    def _restored_model(self, model: LMCModel) -> LMCModel:
        at = self.positions
        latents = np.argsort(self.latent_numbers(len(model.kernels)))
        return LMCModel(
            tuple(model.kernels[q] for q in latents),
            model.weights[:, latents][:, :, at],
            model.noise[np.ix_(at, at)],
        )

    def _reordered(self, given: Any) -> Any:
        """Reorder a list with an element for each output; other values are left as they are."""
        listed = isinstance(given, list | tuple | np.ndarray) and len(given) == len(self.columns)
        return [given[d] for d in self.columns] if listed else given


def _ranks(Y: Float[Array, "n D"], increasing: Float[Array, "N D"]) -> Float[Array, "n D"]:
    """Return the rank of each value of Y in its sorted column; 0 for a missing reading.

    Equal values have the mean of their ranks.
    """
    ranks = [
        (column.searchsorted(y, "left") + column.searchsorted(y, "right") + 1) / 2
        for y, column in zip(Y.T, increasing.T, strict=True)
    ]
    return np.where(np.isnan(Y), 0.0, np.column_stack(ranks))
