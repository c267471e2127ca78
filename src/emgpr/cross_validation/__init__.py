"""Predictions of left-out readings by a fitted model, their scores, and the gain from transfer."""

from emgpr.cross_validation.evaluate import cross_validate, transfer_report
from emgpr.cross_validation.leave_out import LeaveOutSets, spatial_blocks
from emgpr.cross_validation.results import CrossValidation, TransferReport
from emgpr.cross_validation.scores import score_predictions

__all__ = [
    "CrossValidation",
    "LeaveOutSets",
    "TransferReport",
    "cross_validate",
    "score_predictions",
    "spatial_blocks",
    "transfer_report",
]
