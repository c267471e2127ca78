"""The machine: from a table to a fitted mixture of latent processes, as in the paper."""

from typing import Any, Literal, Self, TypeAlias

import numpy as np

from emgpr.estimators.against_exact import AgainstExact
from emgpr.estimators.foresight import Foresight
from emgpr.estimators.insight import Insight
from emgpr.estimators.keeping import all_or_nothing, keeping
from emgpr.estimators.learning import Kernels, Learner, Learning
from emgpr.estimators.settings import Configured, check_settings, settle
from emgpr.estimators.stored import Stored
from emgpr.estimators.validation import Validation, losing_outputs
from emgpr.execution import RandomState, threads_for
from emgpr.persistence import PathLike
from emgpr.weights import apart, silenced

Array = np.ndarray

Conditioning: TypeAlias = Literal["auto", "all", "batch"] | int


class MultiOutputGP(Foresight, Configured, Stored, Insight, Validation, AgainstExact, Learning):
    """Every estimator of the family; each makes some of these settings its parameters."""

    transfers = True  # whether outputs learn from one another
    rank: int | None = 1
    batch_size: int | Literal["auto"] | None = None
    refine: int | Literal["auto", "joint"] = "joint"
    transfer: Literal["full", "safe"] = "full"

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

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs X (N, P) and outputs y (N, D), NaN where not measured.

        Arrays, pandas, polars or Arrow tables; those of Dask, or xarray's, are brought into memory.
        """
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

    def _for_blocks(self) -> Self:
        own = super()._for_blocks()
        # Who learned it, and with how much memory, matters no more.
        own.latent_learner = own.latent_learner_ = "exact"
        return own
