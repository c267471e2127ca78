"""Step 1: the kernel and the noise of every task, each learned from its own readings."""

from emgpr.latents.borrowed import borrow_latents
from emgpr.latents.choice import choose_kernels
from emgpr.latents.exact import fit_latents
from emgpr.latents.latent import Latent
from emgpr.latents.prior import noise_prior, variances
from emgpr.latents.search import Search, is_length_scale, search_space

__all__ = [
    "Latent",
    "Search",
    "borrow_latents",
    "choose_kernels",
    "fit_latents",
    "is_length_scale",
    "noise_prior",
    "search_space",
    "variances",
]
