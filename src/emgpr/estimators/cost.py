"""How long a fit will take and how much memory: counted, and multiplied by this machine's speed.

Nearly all of the time goes into evaluating likelihoods, each a factor and an inverse of a matrix
over the readings it is of and the kernels' values for their sites. Of these, sizes are known
before a fit; how often each is evaluated, before its search ends, is what it was on the Jura and
AMSU-A data and on simulated tables, where numbers were between half and two and a half times those
below.
"""

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process import GaussianProcessRegressor

from emgpr.arrays import room, settle
from emgpr.ensemble import split_sites
from emgpr.estimators.believer import NEIGHBOURS, affordable
from emgpr.estimators.plan import Plan, Speed, Step, measured
from emgpr.estimators.settings import Settled
from emgpr.estimators.settings import settle as settle_settings
from emgpr.latents import is_lent
from emgpr.latents.choice import CANDIDATES
from emgpr.latents.starts import SOME
from emgpr.observations import Observations
from emgpr.transforms import candidates, one_each
from emgpr.transforms.choice import ENOUGH as ENOUGH_SITES
from emgpr.weights.fit import EACH, ENOUGH, SMALL

Array = np.ndarray

CLIMB = 14  # evaluations of a task alone, on all its sites,
STARTS = 20  # after those on some of them
WEIGHTS = 20  # of a member in step 2
COARSE = 20  # of the joint ascent on some of the sites,
JOINT = 50  # and on all,
ONE_LATENT = 30  # of one latent
SWEEP = 25  # of kernels and noise, weights held
RELEARN = 15  # without a latent that is switched off
BORROWED = 30  # of scikit-learn's regressor, which needs twice the time for each

FACTOR = 1.2  # of the time of a factor and an inverse alone
VALUES = 6.0  # passes over the kernels' values, as of making one
EIGEN = 6.0  # of the time of a factor and an inverse: eigenvectors and what is made of them
SPAN = 0.5  # of the readings: columns of the latents' span, which are not known before step 1
CALL = 1e-3  # seconds of Python for an evaluation

SQUARE = 8.0  # bytes of each entry of a matrix
MATRICES = 4.0  # of all readings at once
KERNEL_MATRICES = 6.0  # of a task alone, of its sites


def planned(model: Any, seen: Observations, Y: Float[Array, "N D"]) -> Plan:
    """The steps of fitting this model to this table."""
    device = settle(model.device)
    workers = joblib.effective_n_jobs(model.n_jobs) if device == "cpu" else 1
    settled = settle_settings(model, seen)
    work = _Work(model, seen, settled, measured(device), device, workers)
    steps = [
        *work.transforms(Y),
        *work.latents(),
        *(work.weights() if model.transfers else []),
    ]
    return Plan(
        seen.n_sites,
        seen.n_tasks,
        seen.n_readings,
        device,
        workers,
        tuple(steps),
        work.prediction(),
    )


class _Work:
    """A model, a table, and what the one has to do with the other."""

    def __init__(
        self,
        model: Any,
        seen: Observations,
        settled: Settled,
        speed: Speed,
        device: str,
        workers: int,
    ) -> None:
        self.model, self.seen, self.settled = model, seen, settled
        self.speed, self.device, self.workers = speed, device, workers
        self.counts = seen.seen.sum(axis=1)
        parts = split_sites(seen.x, settled.batch_size, "strided", wanted=settled.n_members)
        self.L = len(parts)
        self.sites = max(map(len, parts))
        share = self.sites / seen.n_sites
        self.readings = max(1, round(share * seen.n_readings))  # of a member

    def evaluation(self, n: float, pairs: float) -> float:
        """Seconds of a likelihood of n readings, with so many values of kernels."""
        factoring = FACTOR * self.speed.factoring(n)
        return CALL + factoring + VALUES * pairs * self.speed.value

    def alone(self, n: float) -> float:
        """Seconds of the search for one kernel of one task."""
        some = min(n, SOME)
        starts = STARTS * self.evaluation(some, some**2)
        return starts + CLIMB * self.evaluation(n, n**2)

    def transforms(self, Y: Float[Array, "N D"]) -> Iterator[Step]:
        """Each output alone, under each of its candidates."""
        given = one_each(vars(self.model)["transform"], self.model.output_names_)
        tried = [
            len(candidates(values[~np.isnan(values)]))
            for values, spec in zip(Y.T, given, strict=True)
            if isinstance(spec, str) and spec == "auto"
        ]
        fits = sum(n for n in tried if n > 1)  # one candidate is not tried
        if not fits:
            return
        n = min(int(self.counts.max()), ENOUGH_SITES)
        seconds = fits * (self.alone(n) + self.evaluation(n, n**2)) / min(self.workers, len(tried))
        method = f"{fits} candidates, by readings left out"
        yield Step("transforms", method, n, fits, n, CLIMB, seconds, self._kernel_bytes(n))

    def latents(self) -> Iterator[Step]:
        """Step 1."""
        model, n = self.model, int(self.counts.max())
        learner, D = model.latent_learner, self.seen.n_tasks
        if is_lent(learner):
            yield self._borrowed(learner, n)
            return
        each, method = 1, "exact likelihood"
        if isinstance(model.kernel, str):
            varied = int(np.count_nonzero(np.ptp(self.seen.x, axis=0)))
            each = len(CANDIDATES) + (varied > 1)
            method += f", {len(CANDIDATES)} kernels"
            method += ", the best with a length-scale a column too" if varied > 1 else ""
        many = max(D, len(model.kernel)) if isinstance(model.kernel, list | tuple) else D * each
        seconds = sum(self.alone(float(self.counts[i % D])) for i in range(many))
        seconds /= min(self.workers, many)
        yield Step("step 1", method, n, many, n, CLIMB, seconds, self._kernel_bytes(n))

    def _borrowed(self, learner: Any, n: int) -> Step:
        """By scikit-learn's regressor, unless it is fitted already."""
        D = self.seen.n_tasks
        every = list(learner) if isinstance(learner, list | tuple) else [learner] * D
        new = [one for one in every if isinstance(one, GaussianProcessRegressor)]
        new = [one for one in new if not hasattr(one, "kernel_")]
        times = sum(1 + int(one.n_restarts_optimizer) for one in new)
        seconds = 2 * BORROWED * times * self.evaluation(n, n**2) / min(self.workers, D)
        method = "scikit-learn's regressor" if new else "as scikit-learn's regressor has learned"
        return Step("step 1", method, n, D, n, BORROWED, seconds, self._kernel_bytes(n))

    def weights(self) -> Iterator[Step]:
        """Step 2, and what follows it."""
        model, settled, D = self.model, self.settled, self.seen.n_tasks
        joint = settled.refine == "joint"
        own = settled.n_weights * D  # weights of a member
        n = self._thinned(own) if joint else self.readings
        yield self._step_2(n)
        pairs = settled.n_latents * self.sites**2
        once = self.L * self._likelihood(self.readings, pairs)
        every = self.L * self.readings
        if joint:
            some = self._thinned(own + D * (D + 1) // 2 + settled.n_latents)
            coarse = self.L * self._likelihood(some, pairs * (some / self.readings) ** 2)
            times = JOINT if settled.n_latents > 1 else ONE_LATENT
            seconds = times * once + (COARSE * coarse if some < self.readings else 0.0)
            yield self._step("joint ascent", self._form(), every, times, seconds)
        elif settled.refine:
            seconds = int(settled.refine) * (SWEEP * once + self._step_2(n).seconds)
            method = f"{settled.refine} sweeps, {self._form()}"
            yield self._step("refinement", method, every, SWEEP, seconds)
        if isinstance(model.n_latents, str):
            seconds = settled.n_latents * (RELEARN if joint else WEIGHTS) * once
            yield self._step("switching off", "latents one by one", every, RELEARN, seconds)
        if model.transfer == "safe" and D > 1:
            n_all = self.seen.n_readings
            apart = sum(self.evaluation(float(n), n**2) for n in self.counts)
            seconds = 2 * (self.L * self.evaluation(n_all, pairs) + apart)
            memory = MATRICES * SQUARE * n_all**2
            method = "with and without, by readings left out"
            yield Step("safe transfer", method, n_all, self.L, n_all, 2, seconds, memory)

    def _step_2(self, n: int) -> Step:
        L, D, Q = self.L, self.seen.n_tasks, self.settled.n_latents
        pairs = Q * (self.sites * n / self.readings) ** 2
        if self.sites * D <= SMALL:
            # In lockstep: Python's share is that of a round, not of a member.
            seconds = WEIGHTS * (L * (self.evaluation(n, 0.0) - CALL) + 2 * CALL)
            memory = min(L * MATRICES * SQUARE * n**2, room(self.device))
            return Step("step 2", "dense, all at once", L * n, L, n, WEIGHTS, seconds, memory)
        side = round(SPAN * n)
        eigen = EIGEN * Q * self.speed.factoring((pairs / Q) ** 0.5)
        seconds = L * (WEIGHTS * self.evaluation(side, 0.0) + eigen) / min(self.workers, L)
        method = "span of the latents, or dense if that is no smaller"
        memory = MATRICES * SQUARE * n * side  # between that of the one and of the other
        return Step("step 2", method, L * n, L, side, WEIGHTS, seconds, memory)

    def _thinned(self, n_parameters: int) -> int:
        """Readings of a member on which an ascent begins."""
        enough = max(ENOUGH, EACH * n_parameters)
        return enough if enough <= 0.7 * self.readings else self.readings

    @property
    def _structured(self) -> bool:
        """Whether one latent and no gaps make two eigendecompositions of it."""
        one = self.settled.n_latents == 1 and self.seen.n_tasks > 1
        return one and self.L == 1 and self.seen.complete

    def _likelihood(self, n: float, pairs: float) -> float:
        if not self._structured:
            return self.evaluation(n, pairs)
        N = n / self.seen.n_tasks
        return EIGEN * self.speed.factoring(N) + self.evaluation(0.0, N**2)

    def _form(self) -> str:
        if self._structured:
            return "eigenvectors of the sites, no gaps"
        return "dense" if self.L == 1 else f"dense, {self.L} batches of {self.sites} sites"

    def _step(
        self, name: str, method: str, n_readings: int, evaluations: int, seconds: float
    ) -> Step:
        side = self.sites if self._structured else self.readings
        at_once = min(self.L, max(1, int(room(self.device) // (32.0 * self.readings**2))))
        memory = at_once * MATRICES * SQUARE * side**2
        return Step(name, method, n_readings, self.L, side, evaluations, seconds, memory)

    def prediction(self) -> Step:
        """1000 places, from what was learned."""
        how, D = self.model.conditioning, self.seen.n_tasks
        n, L = self.seen.n_readings, self.L
        sizes = [float(n)] if self.model.transfers else self.counts.astype(float).tolist()
        if how == "auto":
            how = "all" if affordable(L, sizes) else NEIGHBOURS
        if how == "all":
            method, side = f"from all {n} readings", round(max(sizes))
            each = 1000.0 * D / len(sizes)  # outputs at places, of a group that is conditioned on
            operations = L * sum(m**3 / 3 + each * m**2 for m in sizes)
        elif how == "batch":
            method, side = f"from {self.readings} readings a member", self.readings
            operations = L * (side**3 / 3 + 1000.0 * D * side**2)
        else:
            method, side = f"from {int(how)} neighbours of each output", int(how) * D
            operations = 1000.0 * L * (side**3 / 3 + D * side**2)
        seconds = operations / self.speed.operations + L * CALL
        memory = MATRICES * SQUARE * side**2
        return Step("1000 places", method, n, L, side, 1, seconds, memory)

    def _kernel_bytes(self, n: int) -> float:
        some = SQUARE * KERNEL_MATRICES * SOME**2 * 5 * self.seen.n_tasks
        return max(KERNEL_MATRICES * SQUARE * n**2 * self.workers, some)
