"""The method as scikit-learn estimators: `EMGPR`, and the family it contains."""

from emgpr.estimators.approximation_report import ApproximationReport
from emgpr.estimators.comparison import Comparison, compare
from emgpr.estimators.emgpr import EMGPR
from emgpr.estimators.family import ICM, LMC, SLFM, IndependentGP
from emgpr.estimators.findings import CrossValidation, TransferReport
from emgpr.estimators.left_out import spatial_blocks
from emgpr.estimators.loading import load
from emgpr.estimators.one_pass import OnePassGP
from emgpr.estimators.standing import EnsembleWarning
from emgpr.persistence import ModelFileError

__all__ = [
    "EMGPR",
    "ICM",
    "LMC",
    "SLFM",
    "ApproximationReport",
    "Comparison",
    "CrossValidation",
    "EnsembleWarning",
    "IndependentGP",
    "ModelFileError",
    "OnePassGP",
    "TransferReport",
    "compare",
    "load",
    "spatial_blocks",
]
