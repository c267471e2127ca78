"""An ensemble on a table with gaps, and locations to predict."""

import numpy as np
import pytest

from tests.simulated import world


@pytest.fixture
def made(rng):
    return world(rng, k=1, missing=0.3, correlated=True)


@pytest.fixture
def W(rng, made):
    """Of three members that differ somewhat."""
    return made.W + 0.3 * rng.normal(size=(3, *made.W.shape))


@pytest.fixture
def x_new(rng, made):
    return np.vstack([rng.uniform(size=(3, 2)), made.X[:2]])
