import numpy as np
import pytest


@pytest.fixture
def draw(rng):
    """A function that draws one standardised output (N, 1) of a Gaussian process at sites X."""

    def draw(kernel, noise, N=50):
        X = rng.uniform(size=(N, 2))
        y = np.linalg.cholesky(kernel(X) + noise * np.eye(N)) @ rng.normal(size=N)
        return X, ((y - y.mean()) / y.std())[:, None]

    return draw
