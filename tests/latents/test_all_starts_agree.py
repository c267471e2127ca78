"""Step 1 ends at the same peak whatever the seed of its starts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.datasets import load_jura
from emgpr.latents import fit_latents
from emgpr.observations import Observations


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=1.5)])
def test_on_raw_metals_with_two_peaks(kernel):
    """Raw Cd and Zn: a short range with little noise is 20 to 40 above a long one with much."""
    train = load_jura().train
    Y = train[["Cd", "Zn"]].to_numpy()
    seen = Observations.from_table(
        train[["Xloc", "Yloc"]].to_numpy(), (Y - Y.mean(axis=0)) / Y.std(axis=0)
    )
    values = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found = fit_latents(seen, [kernel] * 2, n_restarts=5, max_iter=120, rng=rng)
        values.append([latent.log_likelihood for latent in found])
    assert_allclose(values, np.tile(values[0], (6, 1)), atol=1e-3)
