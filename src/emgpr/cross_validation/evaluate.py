"""Cross-validation of a fitted model, and the gain from transfer between outputs.

The model is not refitted: kernels, noise and weights are those fitted to all readings. Only the
predictions are computed without the readings that are left out. This needs one matrix inverse
for each member instead of one fit for each fold.
"""

import numpy as np
import pandas as pd

from emgpr.cross_validation.leave_out import LeaveOutSets
from emgpr.cross_validation.results import CrossValidation, TransferReport
from emgpr.cross_validation.scores import score_predictions
from emgpr.inputs import InputSpec
from emgpr.metrics import PairedDifference, paired_difference
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.prediction import Posterior
from emgpr.transforms import OutputScaler

Array = np.ndarray

VERDICTS = {-1: "gains", 0: "no difference", 1: "loses"}
# Left-out groups, and the difference relative to the error without transfer, below which there is
# "no difference".
MIN_GROUPS, MIN_DIFFERENCE = 3, 1e-3


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
                "verdict": _verdict(pair, alone, scaler.n_outputs),
            }
        )
    index = pd.Index(scaler.names, name="output")
    return TransferReport(sets.by, pd.DataFrame(rows, index=index))


def _verdict(pair: PairedDifference, alone: float, D: int) -> str:
    """Return the verdict about an output: no difference with a single output, or too small a one.

    >>> _verdict(PairedDifference(-0.1, 0.01, 40), 1.0, D=2)
    'gains'
    >>> _verdict(PairedDifference(-0.1, 0.01, 40), 1.0, D=1)
    'no difference'
    """
    noticeable = D > 1 and pair.n >= MIN_GROUPS and abs(pair.mean) > MIN_DIFFERENCE * alone
    return VERDICTS[pair.sign(D) if noticeable else 0]
