"""Step 2, which fits the weights of the latent processes, and the joint optimisation."""

from emgpr.weights.align import aligned
from emgpr.weights.fit import FittedWeights, fit_weights, subsample_batches
from emgpr.weights.initial import (
    decouple_constant_outputs,
    independent_parameters,
    initial_parameters,
    output_correlation,
    with_output_variances,
)
from emgpr.weights.joint import RefinedModel, Stage, maximise, refine
from emgpr.weights.joint_vecchia import add_information, refine_with_vecchia, refit_roughly
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.sill_prior import SillPrior
from emgpr.weights.starting_points import nested_structures, starting_points
from emgpr.weights.vecchia_search import automatic_neighbours

__all__ = [
    "FittedWeights",
    "LMCParameters",
    "ParameterVector",
    "RefinedModel",
    "SillPrior",
    "Stage",
    "add_information",
    "aligned",
    "automatic_neighbours",
    "decouple_constant_outputs",
    "fit_weights",
    "independent_parameters",
    "initial_parameters",
    "maximise",
    "nested_structures",
    "output_correlation",
    "refine",
    "refine_with_vecchia",
    "refit_roughly",
    "starting_points",
    "subsample_batches",
    "with_output_variances",
]
