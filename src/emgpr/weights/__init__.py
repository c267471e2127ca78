"""Step 2, which fits the weights of the latent processes, and the joint optimisation."""

from emgpr.weights.align import aligned
from emgpr.weights.fit import FittedWeights, fit_weights, subsample_batches
from emgpr.weights.initial import (
    decouple_constant_outputs,
    independent_parameters,
    initial_parameters,
    with_output_variances,
)
from emgpr.weights.joint import RefinedModel, Stage, maximise, refine
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.starting_points import starting_points
from emgpr.weights.vecchia import automatic_neighbours, refine_with_vecchia

__all__ = [
    "FittedWeights",
    "LMCParameters",
    "ParameterVector",
    "RefinedModel",
    "Stage",
    "aligned",
    "automatic_neighbours",
    "decouple_constant_outputs",
    "fit_weights",
    "independent_parameters",
    "initial_parameters",
    "maximise",
    "refine",
    "refine_with_vecchia",
    "starting_points",
    "subsample_batches",
    "with_output_variances",
]
