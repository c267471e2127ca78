"""How well a fitted model predicts its own readings when they are left out, and what transfer gave.

Kernels, noise and weights stay as they were learned from all readings; what is left out
is not conditioned on. That costs one inverse a member, not a fit a fold.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from emgpr.covariance import prior
from emgpr.covariance.dense import coregionalization
from emgpr.ensemble import join, mixture
from emgpr.estimators.apart import without
from emgpr.estimators.findings import CrossValidation, TransferReport
from emgpr.estimators.left_out import LeftOut
from emgpr.execution import chunks, each, threads_for
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.prediction import (
    Belief,
    held_out,
    held_out_of_batch,
    held_out_of_neighbours,
    turned_to_readings,
)
from emgpr.transforms import Marginals

Array = np.ndarray

LEVEL = 0.95
MANY = 2000  # readings of an output; of more, so many tell whether transfer helps it
VERDICTS = {-1: "gains", 0: "no difference", 1: "loses"}


class Validation:
    """What a fitted estimator says of itself from the readings it has."""

    def cross_validate(self, by: Any = "site") -> CrossValidation:
        """Predict every reading from the others, with what was learned from all of them.

        Kernels, noise and weights were learned from what is left out, too, which flatters: the
        more, the fewer readings there are for each parameter. By output, where weights and the
        correlation of the noise matter most, it flatters most. Rules other than "mean" join what
        members believe of the outputs left out together.

        Parameters
        ----------
        by : "site", "output", "block", or N labels
            What is left out at once: all outputs of a site; each reading alone, so that the
            other outputs of the same sample inform it; blocks of neighbouring sites, 20 of
            them; or the sites that share a label, one for each row of the training inputs (see
            `spatial_blocks`).

        >>> from emgpr import ICM
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> Y = np.hstack([np.sin(X), np.cos(X)])
        >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
        >>> checked = ICM(random_state=0).fit(X, Y).cross_validate()
        >>> checked.summary()["rmse"].round(1).tolist()
        [0.1, 0.1]
        """
        check_is_fitted(self)
        model: Any = self
        left_out = LeftOut.chosen(model, by)
        belief = _as_predicted(model, left_out)
        scale, seen = model._scale, model._seen
        truth = scale.to_user(seen.y.T)  # a valid value where nothing was measured, too
        frames = {"truth": truth, **scores(scale, belief, truth, seen.y.T)}
        return CrossValidation(left_out.by, **{k: _framed(model, v) for k, v in frames.items()})

    def transfer_report(self, by: Any = "site") -> TransferReport:
        """Compare every output's cross-validated error with what it would be on its own.

        On its own is what step 1 learned of the output. The verdict is on absolute errors
        on your scale: "gains" or "loses" if their mean difference is beyond two standard
        errors, made wider (Bonferroni, Student) so that all outputs together raise a false
        alarm no more often than two standard errors of one. Log densities are
        shown beside, not judged: they also reward a noise that was learned better.
        What is left out did take part in learning the weights, which flatters transfer: by
        half a standard error between 100 to 150 readings of outputs that have nothing in
        common, by more where readings are fewer.

        `by` as in `cross_validate`; with labels, differences are averaged in
        each group first, and the standard error is that over groups.
        """
        check_is_fitted(self)
        model: Any = self
        left_out = LeftOut.chosen(model, by)
        beliefs = _with_transfer(model, left_out), _without_transfer(model, left_out)
        errors = [_absolute_errors(model, belief) for belief in beliefs]
        truth = model._scale.to_user(model._seen.y.T)
        nlpd = [-model._scale.log_density(belief, truth) for belief in beliefs]
        rows = []
        for d, seen in enumerate(model._seen.seen):
            group = left_out.groups[seen]
            ours, theirs = (pd.Series(error[seen, d]).groupby(group).mean() for error in errors)
            pair = paired_difference(ours.to_numpy(), theirs.to_numpy())
            mae, alone = (float(error[seen, d].mean()) for error in errors)
            rows.append(
                {
                    "n": int(seen.sum()),
                    "mae": mae,
                    "mae_alone": alone,
                    "gain_percent": 100 * (1 - mae / alone) if alone > 0 else 0.0,
                    "difference": pair.mean,
                    "standard_error": pair.standard_error,
                    "nlpd": float(nlpd[0][seen, d].mean()),
                    "nlpd_alone": float(nlpd[1][seen, d].mean()),
                    "verdict": VERDICTS[pair.sign(model.n_outputs_)],
                }
            )
        index = pd.Index(model.output_names_, name="output")
        return TransferReport(left_out.by, pd.DataFrame(rows, index=index))


def scores(
    scale: Marginals, belief: Belief, truth: Float[Array, "M D"], z: Float[Array, "M D"]
) -> dict[str, Float[Array, "M D"]]:
    """What was predicted of readings and how good it was, on the user's scale.

    `z` are the readings on the scale that is learned on. A reading that cannot be, to the model,
    has a density of zero.
    """
    tail = (1 - LEVEL) / 2
    lower, middle, upper = scale.quantiles(belief, np.array([tail, 0.5, 1 - tail]))
    mean, cov = mixture(belief.mean, belief.cov)
    return {
        "prediction": middle,
        "std": np.sqrt(_diagonal(scale.covariance(belief))),
        "lower": lower,
        "upper": upper,
        "standardized": (z - mean) / np.sqrt(_diagonal(cov)),
        "nlpd": -scale.log_density(belief, truth),
        "crps": scale.crps(belief, truth),
        "pit": scale.cdf(belief, truth),
    }


def losing_outputs(model: Any, by: Any = "site") -> Int[Array, " _"]:
    """Outputs that transfer does not help, as far as cross-validation can tell.

    It helps where the CRPS is lower than alone by more than a standard error: half of one is
    what readings that took part in learning flatter transfer by, between unrelated outputs. Where
    each is predicted from its neighbours, some of very many sites are asked.
    """
    left_out = LeftOut.chosen(model, by)
    if isinstance(model.conditioning_, int) and model._seen.n_sites > MANY:
        left_out = left_out.of_some(model._seen, MANY)
    asked = left_out.of(model._seen)
    truth = model._scale.to_user(asked.y.T)
    ours, theirs = (
        model._scale.crps(belief, truth)
        for belief in (_with_transfer(model, left_out), _without_transfer(model, left_out))
    )
    pairs = [paired_difference(ours[seen, d], theirs[seen, d]) for d, seen in enumerate(asked.seen)]
    return np.flatnonzero([not pair.mean < -pair.standard_error for pair in pairs])


def _with_transfer(model: Any, left_out: LeftOut) -> Belief:
    given = model.kernels_, model.weights_, model._noise, model.combine, model.conditioning_
    return _believe(model, left_out, *given, "Leaving out: members")


def _as_predicted(model: Any, left_out: LeftOut) -> Belief:
    """With transfer, but for the outputs that keep to their own process."""
    belief = _with_transfer(model, left_out)
    if not model._lost:
        return belief
    seen = model._seen
    known = seen.seen.T & (left_out.by == "output")
    own = model._lost_entries(known.sum(axis=1, keepdims=True) - known > 0)
    alone = _without_transfer(model, left_out)
    alone = Belief(*(part[None] for part in mixture(alone.mean, alone.cov)))
    return Belief(np.where(own, alone.mean, belief.mean), without(belief.cov, own, alone.cov))


def _without_transfer(model: Any, left_out: LeftOut) -> Belief:
    """The outputs apart, each from all of its readings even if members predict from batches."""
    alone = model._apart
    how = "all" if model.conditioning_ == "batch" else model.conditioning_
    given = alone.kernels, alone.W[None], alone.noise, "mean", how
    return _believe(model, left_out, *given, "Leaving out: alone")


def _believe(
    model: Any,
    left_out: LeftOut,
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    rule: Any,
    how: Any,
    label: str,
) -> Belief:
    """The joined belief about every reading asked of, left out; N(0, 1) where none was made."""
    seen, sets, some = model._seen, left_out.sets, left_out.asked
    asked = left_out.of(seen)
    device, n_jobs = model._device, model._processes

    def believe(members: Sequence[int]) -> Belief:
        given = sets, kernels, W[list(members)], noise
        if how == "batch":
            return held_out_of_batch(seen, model._batch(members[0]), *given, device=device)
        if how == "all":
            return held_out(seen, *given, device=device)
        return held_out_of_neighbours(seen, *given, how, some, device=device)

    L = len(W)
    apart = how == "batch" or model.verbose > 0
    runs = [range(i, i + 1) for i in range(L)] if apart else chunks(L, 1.0, n_jobs)
    with threads_for(seen.n_readings if isinstance(how, str) else 0):
        parts = each(believe, runs, n_jobs=n_jobs, label=label, verbose=model.verbose)
    means = np.concatenate([part.mean for part in parts])
    covs = np.concatenate([part.cov for part in parts])
    before = prior(coregionalization(W), np.stack([kernel.diag(asked.x) for kernel in kernels]))
    N, D = asked.n_sites, asked.n_tasks
    blank = Belief(np.zeros((1, N, D)), np.zeros((1, N, D, D)))
    belief = None
    for rows, tasks, sample in _asked(asked, left_out):
        _, own, left = turned_to_readings(blank, before, noise, sample)
        i, d, e = rows[:, None, None], tasks[:, None], tasks
        # Rules are for signals: what is noise of the reading alone is put aside meanwhile.
        signals = means[:, rows[:, None], tasks], covs[:, i, d, e] - left[i, d, e]
        mean, cov = join(rule, *signals, own[:, i, d, e])
        if belief is None:
            C = len(mean)
            belief = Belief(np.zeros((C, N, D)), np.tile(np.eye(D), (C, N, 1, 1)))
        belief.mean[:, rows[:, None], tasks] = mean
        belief.cov[:, i, d, e] = cov + left[i, d, e]
    assert belief is not None
    return belief


def _asked(
    seen: Observations, left_out: LeftOut
) -> Iterator[tuple[Int[Array, " m"], Int[Array, " d"], Float[Array, "N D"] | None]]:
    """Sites, the outputs asked of them together, and what else of the sample is known."""
    if left_out.by == "output":
        for d in range(seen.n_tasks):
            sample = np.where(seen.seen, seen.y, np.nan).T
            sample[:, d] = np.nan
            yield np.flatnonzero(seen.seen[d]), np.array([d]), sample
    else:
        for pattern in np.unique(seen.seen, axis=1).T:
            rows = np.flatnonzero((pattern == seen.seen.T).all(axis=1))
            yield rows, np.flatnonzero(pattern), None


def _absolute_errors(model: Any, belief: Belief) -> Float[Array, "N D"]:
    """On the user's scale, NaN where nothing was measured."""
    error = np.abs(model._scale.to_user(model._seen.y.T) - model._scale.median(belief))
    return np.where(model._seen.seen.T, error, np.nan)


def _framed(model: Any, values: Float[Array, "N D"]) -> pd.DataFrame:
    """A row for every row of the training inputs, NaN where nothing was measured."""
    table = np.full((len(model._index), model.n_outputs_), np.nan)
    table[model._rows] = np.where(model._seen.seen.T, values, np.nan)
    return pd.DataFrame(table, index=model._index, columns=model.output_names_)


def _diagonal(cov: Float[Array, "N D D"]) -> Float[Array, "N D"]:
    return np.maximum(np.einsum("ndd->nd", cov), 0.0)
