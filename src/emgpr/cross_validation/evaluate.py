"""Cross-validation of a fitted model, and the gain from transfer between outputs.

The model is not refitted: kernels, noise and weights are those fitted to all readings. Only the
predictions are computed without the readings that are left out. This needs one matrix inverse
for each member instead of one fit for each fold.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from emgpr.cross_validation.leave_out import LeaveOutSets, sample_sites
from emgpr.cross_validation.results import CrossValidation, TransferReport
from emgpr.cross_validation.scores import score_predictions
from emgpr.inputs import InputSpec
from emgpr.metrics import paired_difference
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.prediction import LMCPosterior, Posterior
from emgpr.transforms import OutputScaler

Array = np.ndarray

# Largest and smallest number of readings of each output in the sample that is used to test whether
# transfer helps, if predictions use nearest neighbours. Within these limits, the sample is as large
# as this number of floating-point operations allows.
MAX_TESTED_READINGS, MIN_TESTED_READINGS, TEST_OPERATIONS = 2000, 300, 1e11
VERDICTS = {-1: "gains", 0: "no difference", 1: "loses"}


def cross_validate(
    posterior: Posterior,
    observations: Observations,
    scaler: OutputScaler,
    inputs: InputSpec,
    sets: LeaveOutSets,
    execution: Execution,
) -> CrossValidation:
    """Predict every reading from the readings outside its leave-out set; score the predictions."""
    predicted = posterior.leave_out(sets.sets, execution=execution)
    z = observations.y.T
    truth = scaler.to_original(z)  # contains valid numbers even where readings are missing
    values = {"truth": truth, **score_predictions(scaler, predicted, truth, z)}
    observed = observations.observed.T
    frames = {}
    for name, value in values.items():
        table = np.full((len(inputs.index), scaler.n_outputs), np.nan)
        table[inputs.rows] = np.where(observed, value, np.nan)
        frames[name] = pd.DataFrame(table, index=inputs.index, columns=list(scaler.names))
    return CrossValidation(sets.by, **frames)


def transfer_report(
    joint: Posterior,
    observations: Observations,
    scaler: OutputScaler,
    sets: LeaveOutSets,
    execution: Execution,
) -> TransferReport:
    """Compare the cross-validated errors of every output with and without transfer."""
    truth = scaler.to_original(observations.y.T)
    predicted = [
        posterior.leave_out(sets.sets, execution=execution)
        for posterior in (joint, joint.without_transfer())
    ]
    errors = [np.abs(truth - scaler.median(distribution)) for distribution in predicted]
    nlpd = [-scaler.log_density(distribution, truth) for distribution in predicted]
    rows = []
    for d, observed in enumerate(observations.observed):
        group = sets.groups[observed]
        ours, theirs = (pd.Series(error[observed, d]).groupby(group).mean() for error in errors)
        pair = paired_difference(ours.to_numpy(), theirs.to_numpy())
        mae, alone = (float(error[observed, d].mean()) for error in errors)
        rows.append(
            {
                "n": int(observed.sum()),
                "mae": mae,
                "mae_alone": alone,
                "gain_percent": 100 * (1 - mae / alone) if alone > 0 else 0.0,
                "difference": pair.mean,
                "standard_error": pair.standard_error,
                "nlpd": float(nlpd[0][observed, d].mean()),
                "nlpd_alone": float(nlpd[1][observed, d].mean()),
                "verdict": VERDICTS[pair.sign(scaler.n_outputs)],
            }
        )
    index = pd.Index(scaler.names, name="output")
    return TransferReport(sets.by, pd.DataFrame(rows, index=index))


def outputs_without_gain(
    joint: LMCPosterior, scaler: OutputScaler, by_output: bool, execution: Execution
) -> Int[Array, " _"]:
    """Return the outputs for which cross-validation finds no gain from transfer.

    An output gains if transfer reduces its CRPS by more than one standard error. Even between
    unrelated outputs, transfer reduces the CRPS by half a standard error, because the weights were
    fitted to the same readings. If there are many readings, only a sample of them is left out and
    predicted (see `tested_sites`).

    The parts of a whole are not tested: the distribution of a part depends on the correlations of
    the parts. Without them, its intervals would be too short.
    """
    observations = joint.observations
    parts = {d for composition in scaler.compositions for d in composition.outputs}
    D, N = observations.y.shape
    sets = np.arange(D * N).reshape(D, N) if by_output else np.tile(np.arange(N), (D, 1))
    sites = tested_sites(observations, joint.model.n_members, joint.conditioning)
    if sites is not None:
        observations = observations.at(sites)
    truth = scaler.to_original(observations.y.T)
    ours, theirs = (
        scaler.crps(posterior.leave_out(sets, sites, execution=execution), truth)
        for posterior in (joint, joint.without_transfer())
    )
    return np.flatnonzero(
        [
            d not in parts and not _is_lower(ours[observed, d], theirs[observed, d])
            for d, observed in enumerate(observations.observed)
        ]
    )


def tested_sites(
    observations: Observations, n_members: int, conditioning: int | str
) -> Int[Array, " M"] | None:
    """Return the sites whose readings are used to test whether transfer helps; None means all.

    If predictions use all readings, one matrix inverse suffices for all sites. If they use the k
    nearest readings of each output, every site needs its own inverse, with at least D (k + 1) rows.
    With many outputs or sites, a random sample of the sites is used instead. The random seed is
    fixed, so that the result of the test depends only on the data.
    """
    D, N = observations.y.shape
    if not isinstance(conditioning, int):
        return None
    side = D * (min(conditioning, N) + 1)
    affordable = int(TEST_OPERATIONS / (n_members * side**3 / 3))
    n = min(MAX_TESTED_READINGS, max(MIN_TESTED_READINGS, affordable))
    return None if n >= N else sample_sites(observations, n)


def _is_lower(ours: Float[Array, " n"], theirs: Float[Array, " n"]) -> bool:
    """Tell whether the mean of `ours` is below that of `theirs` by more than one standard error."""
    pair = paired_difference(ours, theirs)
    return pair.mean < -pair.standard_error
