"""The machine: from a table to a fitted mixture of latent processes, as in the paper."""

from typing import Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.checkpoint import Ledger
from emgpr.estimators.door import (
    as_table,
    check_inputs,
    enter_outputs,
    names_of,
    placed,
    refuse_unobserved,
    steps_of,
)
from emgpr.estimators.doubts import about_inputs, about_outputs
from emgpr.estimators.keeping import all_or_nothing, keeping
from emgpr.estimators.learning import Kernels, Learner, Learning
from emgpr.estimators.settings import Unread, check_settings, settle
from emgpr.estimators.stored import Stored
from emgpr.estimators.validation import losing_outputs
from emgpr.execution import RandomState, threads_for
from emgpr.observations import Observations
from emgpr.persistence import PathLike
from emgpr.transforms import Marginals, choose_transforms, is_constant, one_each
from emgpr.weights import apart, silenced

Array = np.ndarray

Conditioning: TypeAlias = Literal["auto", "all", "batch"] | int


class MultiOutputGP(Stored, Learning):
    """Every estimator of the family; each makes some of these settings its parameters."""

    rank: int | None = 1
    batch_size: int | Literal["auto"] | None = None
    refine: int | Literal["auto", "joint"] = "joint"
    transfer: Literal["full", "safe"] = "full"
    transform = Unread()

    def __init__(
        self,
        kernel: Kernels = None,
        *,
        conditioning: Conditioning = "auto",
        latent_learner: Learner = "auto",
        transform: Any = None,
        normalize_y: bool = True,
        crs: str | None = None,
        max_iter: int = 120,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: RandomState = None,
        checkpoint: PathLike | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.conditioning = conditioning
        self.latent_learner = latent_learner
        self.transform = transform
        self.normalize_y = normalize_y
        self.crs = crs
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, also those of the kernel and the like."""
        params = {name: vars(self)[name] for name in self._get_param_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    nested = value.get_params()
                    params.update({f"{name}__{key}": inner for key, inner in nested.items()})
        return params

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs X (N, P) and outputs y (N, D), NaN where not measured."""
        check_settings(self)
        with all_or_nothing(self):
            inputs, Y = self._enter(X, y)
            with keeping(self, inputs, Y) as (ledger, rng):
                seen = self._standardise(inputs, Y, ledger)
                self._settled = settle(self, seen)
                parts = self._deal(seen, rng)  # the ensemble: sites of each member
                with threads_for(max(seen.n_sites, seen.n_tasks * max(map(len, parts)))):
                    tasks = self._learn_latents(seen, rng, ledger)  # step 1
                    # step 2
                    parts, mixture, members = self._learn_weights(seen, parts, tasks, ledger)
                    # What no transfer would have been.
                    self._apart = silenced(apart(tasks, seen.n_tasks), seen.silent)
                    self._remember(seen, parts, mixture, members)
                    if self.transfer == "safe" and seen.n_tasks > 1:
                        self._keep_apart(
                            {by: losing_outputs(self, by) for by in ("site", "output")}
                        )
        return self

    def _enter(self, X: Any, y: Any) -> tuple[Float[Array, "N P"], Float[Array, "N D"]]:
        """Inputs and outputs of the sites where anything was measured; remembers names."""
        X, y = as_table(X), as_table(y)
        numbers = check_inputs(self, X, fitting=True)
        Y, self.output_names_, self._flat = enter_outputs(y, len(numbers))
        names = self.output_names_
        refuse_unobserved(Y, names)
        self._index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(numbers))
        # A site where nothing was measured teaches nothing and is dealt to no member.
        self._rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
        P, D = numbers.shape[1], Y.shape[1]
        for doubt in (
            *about_inputs(numbers[self._rows], names_of(X, P), steps_of(X, P), self.crs),
            *about_outputs(Y, names, steps_of(y, D), centred=self.normalize_y),
        ):
            self._advise(doubt)
        inputs, Y = placed(self, numbers[self._rows]), Y[self._rows]
        self.n_rows_ignored_ = len(self._index) - len(self._rows)
        self.n_outputs_ = D
        return inputs, Y

    def _standardise(
        self, inputs: Float[Array, "N P"], Y: Float[Array, "N D"], ledger: Ledger
    ) -> Observations:
        """What was measured, near Gaussian and of unit variance; remembers the way back."""
        names = self.output_names_
        chosen = self._transforms(inputs, Y, ledger)
        self._scale = Marginals.learned(Y, chosen, normalize=self.normalize_y, names=names)
        self.transforms_ = chosen
        Z = self._scale.forward(Y, names)
        if self.normalize_y:  # what rounding left of a constant would be taken for a signal
            Z = np.where(is_constant(Y) & ~np.isnan(Z), 0.0, Z)
        return Observations.from_table(inputs, Z)

    def _transforms(self, inputs: Array, Y: Array, ledger: Ledger) -> Any:
        """As the user said, or what the data ask for."""
        given = one_each(vars(self)["transform"], self.output_names_)
        automatic = [isinstance(spec, str) and spec == "auto" for spec in given]
        if not any(automatic):
            return given
        with threads_for(len(inputs)):
            chosen = choose_transforms(
                inputs, Y, n_jobs=self.n_jobs, verbose=self.verbose, ledger=ledger
            )
        return [c if auto else g for c, g, auto in zip(chosen, given, automatic, strict=True)]
