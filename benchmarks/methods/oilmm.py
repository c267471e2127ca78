"""OILMM: the orthogonal instantaneous linear mixing model, whose latent processes decouple.

Each latent has an RBF kernel with a variance, a length-scale and a noise variance. A further noise
variance is common to all outputs. The optimisation starts from a random orthogonal basis and
length-scale 0.1, and uses L-BFGS-B until convergence (at most 1000 iterations). The number of
latents is the number of outputs measured at every site, since the projection needs at least as many
readings at a site as there are latents.
"""

import lab.torch as B
import numpy as np
import torch
from oilmm.torch import OILMM
from stheno import EQ, GP

# oilmm imports names that newer versions of its dependencies no longer have.
REQUIREMENTS = (
    "torch==2.13.0",
    "oilmm==0.5.0",
    "backends==1.6.0",
    "plum-dispatch==2.5.2",
    "beartype==0.18.5",
    "numpy==1.26.4",
)
VARIANTS = {"OILMM": {}}


def fit(X, Y, seed):
    """Fit the basis and the latents, and condition the model on the readings."""
    B.set_random_seed(seed)
    latents = int((~np.isnan(Y)).sum(axis=1).min())

    def processes(ps):
        return [
            (
                p.variance.positive(1) * GP(EQ().stretch(p.length_scale.positive(0.1))),
                p.noise.positive(1e-2),
            )
            for p, _ in zip(ps, range(latents), strict=False)
        ]

    prior = OILMM(torch.float64, processes, noise=0.1, num_outputs=Y.shape[1])
    x, y = torch.as_tensor(X), torch.as_tensor(Y)
    prior.fit(x, y, trace=False, iters=1000)
    return prior.condition(x, y)


def predict(model, X_new):
    """Return marginal means and standard deviations of readings."""
    with torch.no_grad():
        mean, variance = model.predict(torch.as_tensor(X_new))
    return B.to_numpy(mean), np.sqrt(B.to_numpy(variance))
