"""What the approximations of a large fit cost, measured beside an exact model on some readings."""

import warnings
from copy import copy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from emgpr.ensemble import split_sites
from emgpr.estimators.approximation_report import ApproximationReport
from emgpr.estimators.approximations import of_model
from emgpr.estimators.findings import CrossValidation
from emgpr.estimators.validation import scores
from emgpr.execution import RandomState, counter, generator
from emgpr.latents import is_lent
from emgpr.observations import Observations
from emgpr.sampling import in_clusters

Array = np.ndarray

LEAST = 60  # readings with which anything can be compared
LEFT_OUT = 3  # of as many sites one is
FEWEST = 5  # readings of an output, known and left out, without which it is not compared


class AgainstExact:
    """A fitted estimator that can be put beside an exact one."""

    def approximation_report(
        self, n_readings: int = 900, *, random_state: RandomState = 0
    ) -> ApproximationReport:
        """Measure what the approximations of this model cost, beside an exact model.

        Some of the training sites, in clusters of neighbours from all over the region, with about
        `n_readings` readings; a third of these sites are left out and predicted from the others
        in three ways: as this model predicts, with the kernels, weights and noise that it has
        learned; with these too, but conditioned on all readings that are known; and by a model of
        the same settings that is exact: learned from those readings by the likelihood of all,
        conditioned on all. The first less the second is the cost of conditioning, the second less
        the third that of learning. Transforms are those that were chosen.

        The exact model has seen these few readings alone, and this model's parameters were learned
        from many more, perhaps from some that are left out here: it may well be the better one. A
        loss beyond doubt is a reason to give it more: `n_members`, `batch_size`, another
        `latent_learner`, more neighbours (`conditioning`).

        Where nothing is approximated, nothing is worked out, and the report says so.

        >>> from emgpr import EMGPR
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(80, 2))
        >>> Y = np.sin(6 * X) + 0.1 * rng.normal(size=(80, 2))
        >>> EMGPR.paper(batch_size=None, random_state=0).fit(X, Y).approximation_report()
        Nothing is approximated: all readings were learned from and are predicted from.
        >>> report = EMGPR.paper(random_state=0).fit(X, Y).approximation_report()
        >>> report.approximations[0]
        'weights: learned from 13 batches of 7 sites, each as if there were no other; all 80 sites'
        >>> report.table.loc[("0", "mae"), ["fitted", "exact"]].round(1).tolist()
        [0.1, 0.1]
        """
        check_is_fitted(self)
        if not isinstance(n_readings, Integral) or n_readings < LEAST:
            raise ValueError(
                f"n_readings={n_readings!r}; expected a whole number of at least {LEAST}."
            )
        model: Any = self
        found = of_model(model)
        if not found:
            return ApproximationReport.of((), model._seen.n_sites, model._seen.n_readings, (), {})
        split = _Split.drawn(model._seen, int(n_readings), generator(random_state))
        outputs = split.compared(model)
        known = model._seen.at(split.known)
        with counter(3, "Approximations: ways to predict", model.verbose) as count:
            beliefs = {}
            for way, how in (("fitted", model.conditioning_), ("from all", "all")):
                own = _told_only(model, split.known, known, how)
                beliefs[way] = _scored(own, model, split.asked, outputs)
                count()
            exact, notes = _exact(model, split.known, outputs)
            beliefs["exact"] = _scored(exact, model, split.asked, outputs)
            count()
        others = [name for d, name in enumerate(model.output_names_) if d not in outputs]
        n_sites = model._seen.n_sites
        return ApproximationReport.of(found, n_sites, known.n_readings, others, beliefs, notes)


class _Split(NamedTuple):
    """Sites that are known, and sites that are asked."""

    known: Int[Array, " n"]
    asked: Int[Array, " m"]

    @classmethod
    def drawn(cls, seen: Observations, n_readings: int, rng: np.random.Generator) -> "_Split":
        """Clusters of neighbouring sites with so many readings; a third of the places are asked."""
        n_batches = max(1, round(seen.n_readings / n_readings))
        some = np.arange(seen.n_sites)
        if n_batches > 1:
            (some,) = in_clusters(seen.x, n_batches, rng, wanted=1)
        # Rows of one place stay together: one of them would tell the others.
        place = np.unique(seen.x[some], axis=0, return_inverse=True)[1].ravel()
        out = rng.permutation(int(place.max()) + 1)[place] % LEFT_OUT == 0
        return cls(some[~out], some[out])

    def compared(self, model: Any) -> list[int]:
        """The outputs of which enough is known and asked."""
        seen = model._seen.seen
        known, asked = (seen[:, rows].sum(axis=1) for rows in self)
        varied = ~model._seen.at(self.known).silent
        outputs = np.flatnonzero((known >= FEWEST) & (asked >= FEWEST) & varied).tolist()
        if not outputs:
            n = len(self.known) + len(self.asked)
            what = (
                "ask with a larger n_readings" if n < seen.shape[1]
                else "the table is too small to compare on"
            )  # fmt: skip
            raise ValueError(
                f"Of {n} sites, no output has {FEWEST} readings to learn from and to leave out; "
                f"{what}."
            )
        return outputs


def _told_only(model: Any, rows: Int[Array, " n"], known: Observations, how: Any) -> Any:
    """The same model, all it has learned, but of these readings alone, conditioned like this."""
    own = copy(model)
    own.verbose = 0
    own._seen, own._rows = known, model._rows[rows]
    own.conditioning_ = how
    own._parts = [np.arange(known.n_sites)] * len(model.weights_)
    if how == "batch":  # as large as its batches are; there are fewer of them
        size, L = max(map(len, model._parts)), len(model.weights_)
        rng = np.random.default_rng(0)
        own._parts = split_sites(known.x, size, getattr(model, "partition", "random"), rng, L)
        own.weights_ = model.weights_[: len(own._parts)]
    return own


def _exact(model: Any, rows: Int[Array, " n"], outputs: list[int]) -> tuple[Any, list[str]]:
    """Fitted to these readings of these outputs, of the same settings, with no approximation; and
    how its searches ended, if not well."""
    X, Y = (part.iloc[rows] for part in model.training_data())
    chosen = model.transforms_
    settings: dict[str, Any] = {
        "latent_learner": "exact",
        "conditioning": "all",
        "checkpoint": None,
        "verbose": 0,
        "transform": None if chosen is None else [chosen[d] for d in outputs],
    }
    given = model.get_params(deep=False)
    kernel = given["kernel"]
    if is_lent(model.latent_learner):  # whose kernels need not be of the form that was set
        kernel = list(model.kernels_)
    if isinstance(kernel, list | tuple):
        settings["kernel"] = kernel if model.transfers else [kernel[d] for d in outputs]
    of_batches = {
        "batch_size": None,
        "n_members": None,
        "refine": model._settled.refine,
        "n_latents": len(kernel) if "kernel" in settings else given.get("n_latents"),
    }
    settings |= {name: value for name, value in of_batches.items() if name in given}
    exact: Any = clone(model).set_params(**settings)
    inputs = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        exact.fit(inputs, Y.iloc[:, outputs])
    # What else is doubtful was told of the whole table.
    ends = [str(own.message) for own in caught if issubclass(own.category, ConvergenceWarning)]
    return exact, ends


def _scored(own: Any, model: Any, rows: Int[Array, " m"], outputs: list[int]) -> CrossValidation:
    """What a model says of the readings that are asked, and how good that is."""
    seen = model._seen.at(rows)
    belief = own._believe(seen.x, None, with_cov=True, include_noise=True)
    truth = model._scale.to_user(seen.y.T)  # a value that can be, where nothing was read, too
    if own.n_outputs_ < model.n_outputs_:
        truth = truth[:, outputs]
    values: dict[str, Float[Array, "m D"]] = {
        "truth": truth,
        **scores(own._scale, belief, truth, own._scale.standardised(truth)),
    }
    index, names = model._index[model._rows[rows]], own.output_names_
    there = seen.seen.T if own.n_outputs_ == model.n_outputs_ else seen.seen[outputs].T
    frames = {
        what: pd.DataFrame(np.where(there, part, np.nan), index=index, columns=names)
        for what, part in values.items()
    }
    wanted = [model.output_names_[d] for d in outputs]
    return CrossValidation("site", **{what: frame[wanted] for what, frame in frames.items()})
