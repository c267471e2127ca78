"""Posteriors, their predictive distributions, and methods of conditioning on readings."""

from emgpr.prediction.dense import CovarianceFunction, DensePosterior, ReadingLocations
from emgpr.prediction.exact import LMCModel, condition, condition_on_sample, noise_given_sample
from emgpr.prediction.joint_samples import (
    condition_jointly,
    location_blocks,
    match_marginals,
    sample_each_location,
    sample_gaussian,
    transport_map,
)
from emgpr.prediction.latent_processes import condition_latents
from emgpr.prediction.leave_out import leave_out, leave_out_from_batch, leave_out_from_neighbours
from emgpr.prediction.lmc_posterior import (
    Conditioning,
    LMCPosterior,
    affordable_conditioning,
    exact_is_affordable,
)
from emgpr.prediction.neighbours import (
    bounded_conditioning,
    condition_on_neighbours,
    condition_on_surrounding,
    neighbouring_sites,
)
from emgpr.prediction.parameter_uncertainty import ParameterDirections
from emgpr.prediction.posterior import GaussianMixture, Posterior, stack_components
from emgpr.prediction.principal_directions import principal_directions
from emgpr.prediction.separate_directions import separate_directions

__all__ = [
    "Conditioning",
    "CovarianceFunction",
    "DensePosterior",
    "GaussianMixture",
    "LMCModel",
    "LMCPosterior",
    "ParameterDirections",
    "Posterior",
    "ReadingLocations",
    "affordable_conditioning",
    "bounded_conditioning",
    "condition",
    "condition_jointly",
    "condition_latents",
    "condition_on_neighbours",
    "condition_on_sample",
    "condition_on_surrounding",
    "exact_is_affordable",
    "leave_out",
    "leave_out_from_batch",
    "leave_out_from_neighbours",
    "location_blocks",
    "match_marginals",
    "neighbouring_sites",
    "noise_given_sample",
    "principal_directions",
    "sample_each_location",
    "sample_gaussian",
    "separate_directions",
    "stack_components",
    "transport_map",
]
