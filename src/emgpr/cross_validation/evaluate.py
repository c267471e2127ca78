"""Cross-validation of a fitted model, and the gain from transfer between outputs.

The model is not refitted: kernels, noise and weights are those fitted to all readings. Only the
predictions are computed without the readings that are left out. This needs one matrix inverse
for each member instead of one fit for each fold.
"""

from dataclasses import replace

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
from emgpr.prediction.lmc_posterior import Conditioning
from emgpr.transforms import OutputScaler

Array = np.ndarray

# Largest and smallest number of readings of each output in the sample that is used to test whether
# transfer helps, if predictions use nearest neighbours. Within these limits, the sample is as large
# as this number of floating-point operations allows.
MAX_TESTED_READINGS, MIN_TESTED_READINGS, TEST_OPERATIONS = 2000, 300, 1e10
# The test uses the inverse covariance of at most this number of readings. Otherwise, each reading
# is predicted from neighbours: at most MAX_TEST_NEIGHBOURS readings of each output, with a
# covariance of about MAX_TEST_ROWS rows, but at least MIN_TEST_NEIGHBOURS.
MAX_EXACT_TEST = 1000
MAX_TEST_NEIGHBOURS, MIN_TEST_NEIGHBOURS, MAX_TEST_ROWS = 16, 6, 256
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
    joint: LMCPosterior, scaler: OutputScaler, execution: Execution
) -> dict[str, Int[Array, " _"]]:
    """Return the outputs for which cross-validation finds no gain from transfer.

    They are listed for two kinds of locations: "site" means that nothing was measured there, and
    "output" that all other outputs were measured. An output gains if transfer reduces its CRPS by
    more than one standard error. Even between unrelated outputs, transfer reduces the CRPS by half
    a standard error, because the weights were fitted to the same readings. If there are many
    readings, only a sample of them is left out (see `tested_sites`), and they are predicted from
    neighbours (see `conditioning_of_test`).

    The parts of a whole are not tested: the distribution of a part depends on the correlations of
    the parts. Without them, its intervals would be too short.
    """
    observations, n_members = joint.observations, joint.model.n_members
    conditioning = conditioning_of_test(
        observations, n_members, joint.conditioning, joint.automatic
    )  # fmt: skip
    joint = replace(joint, conditioning=conditioning)
    D, N = observations.y.shape
    sets = {"site": np.tile(np.arange(N), (D, 1)), "output": np.arange(D * N).reshape(D, N)}
    sites = tested_sites(observations, n_members, conditioning)
    if sites is not None:
        observations = observations.at(sites)
    truth = scaler.to_original(observations.y.T)

    def crps(posterior: LMCPosterior, sets: Int[Array, "D N"]) -> Float[Array, "M D"]:
        return scaler.crps(posterior.leave_out(sets, sites, execution=execution), truth)

    alone = crps(joint.without_transfer(), sets["site"])  # other outputs make no difference
    parts = {d for composition in scaler.compositions for d in composition.outputs}
    found = {}
    for by, left_out in sets.items():
        ours = crps(joint, left_out)
        found[by] = np.flatnonzero(
            [
                d not in parts and not _is_lower(ours[observed, d], alone[observed, d])
                for d, observed in enumerate(observations.observed)
            ]
        )
    return found


def conditioning_of_test(
    observations: Observations, n_members: int, conditioning: Conditioning, automatic: bool
) -> Conditioning:
    """Return the readings from which others are predicted in the test of whether transfer helps.

    With many readings, the inverse of their covariance would take longer than the fit, so that
    predictions use neighbours. A number of neighbours that the user set is not changed.

    >>> table = Observations.from_table(np.zeros((2000, 1)), np.zeros((2000, 3)))
    >>> conditioning_of_test(table, 1, "all", automatic=True)
    16
    """
    exact = isinstance(conditioning, str)
    few = n_members ** (1 / 3) * observations.n_readings <= MAX_EXACT_TEST
    if conditioning == "batch" or (exact and few) or not (exact or automatic):
        return conditioning
    n = MAX_TEST_ROWS // observations.n_outputs
    return max(MIN_TEST_NEIGHBOURS, min(MAX_TEST_NEIGHBOURS, n))


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
