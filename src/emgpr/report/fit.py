"""How the fit went: where it came to, the way there, and what a reader must know of it."""

from typing import Any

import numpy as np

from emgpr.report.tables import Table, counted, listed, name, number, words


def model_sentence(model: Any) -> str:
    """Which model it is, in one sentence."""
    L, Q, D, rank = model.weights_.shape
    processes = counted(Q, "latent process", "latent processes")
    parts = [f"{type(model).__name__} with {processes}" + (f" of rank {rank}" if rank > 1 else "")]
    if D > 1:
        parts.append(f"{'correlated' if np.ndim(model.noise_) == 2 else 'independent'} noise")
    if L > 1:
        parts.append(f"an ensemble of {L} members")
    return ", ".join(parts)


def fit_table(model: Any) -> Table:
    """Where the fit ended."""
    L = len(model.weights_)
    sizes = [len(batch) for batch in model.batches_]
    learned_from = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])
    rows = [
        ("converged", words("yes" if model.converged_ else "no")),
        ("log-likelihood", number(model.log_marginal_likelihood_value_, 6)),
        ("iterations of the longest search", number(model.n_iter_)),
        ("members of the ensemble", number(L)),
        ("members that failed and were left out", number(model.n_members_failed_)),
        ("sites that a member learned from", words(learned_from)),
        ("predictions are made from", words(_conditioned_on(model))),
        ("rows of the table without a reading", number(model.n_rows_ignored_)),
    ]
    return Table("The fit", ("", ""), [(name(what), value) for what, value in rows])


def _conditioned_on(model: Any) -> str:
    how = model.conditioning_
    if how == "all":
        return "all readings"
    if how == "batch":
        return "the readings of each member's batch"
    return f"the {how} nearest readings of each output"


def trace(model: Any) -> dict[str, Any] | None:
    """The log-likelihood after every stage of the ascent, if there was one."""
    stages = getattr(model, "history_", None)
    if not stages or len(stages) < 2:
        return None
    return {
        "stages": [str(stage.learned) for stage in stages],
        "height": [float(stage.log_likelihood) for stage in stages],
    }


def trace_sentence(model: Any) -> str:
    """What there is to say of the way, where there is a picture of it and where not."""
    stages = getattr(model, "history_", None)
    if stages is None:
        return (
            "Every output was learned alone, so there is no joint ascent to show; the "
            "log-likelihood is the sum of theirs."
        )
    if len(stages) < 2:
        return "Learning stopped after the two steps of the paper: there is no further ascent."
    gain = stages[-1].log_likelihood - stages[0].log_likelihood
    return (
        f"The log-likelihood rose by {number(gain, 4).text}, from "
        f"{number(stages[0].log_likelihood, 6).text} to {number(stages[-1].log_likelihood, 6).text}"
        f", in {counted(len(stages) - 1, 'stage')}. With a prior on the noise it is less what the "
        "prior holds against it."
    )


def notices(model: Any, repeated: int) -> list[str]:
    """What a reader must know before believing the rest; empty if all is well."""
    found = []
    L, failed = len(model.weights_), model.n_members_failed_
    if not model.converged_:
        found.append(
            "Not every search converged inside its bounds: parameters may not be the best there "
            "are. Try more iterations (max_iter), more starts (n_restarts) or wider bounds."
        )
    if failed:
        found.append(
            f"{failed} of {L + failed} members of the ensemble failed and were left out; the "
            f"other {L} make the predictions."
        )
    if model.n_rows_ignored_:
        rows = counted(model.n_rows_ignored_, "row")
        found.append(f"{rows} of the table had no reading and were not used.")
    if isinstance(model.conditioning_, int):
        found.append(
            f"Predictions use {_conditioned_on(model)} only: there are too many to use them all."
        )
    if repeated:
        found.append(f"{counted(repeated, 'site')} repeat the inputs of another one.")
    for by, where in (("site", "at a new place"), ("output", "where other outputs are known")):
        alone = model.alone_.get(by)
        if alone:
            found.append(
                f"{listed(alone)}: predicted alone {where}, since transfer did not help there in "
                'cross-validation (transfer="safe").'
            )
    silent = model.variance_shares_.index[model.variance_shares_["noise"] > 0.995]
    if len(silent):
        found.append(
            f"{listed(silent)}: all noise to the model, so its map is level. Nearby readings tell "
            "nothing of each other."
        )
    if model.random_state is None:
        found.append("No seed was set (random_state): another fit may differ in its last digits.")
    return found
