"""Every array's shape is checked at run time in the tests: a transposed argument is an error."""

import matplotlib
import numpy as np
import pytest
from jaxtyping import install_import_hook

matplotlib.use("Agg")
# The mathematics; the estimators take whatever users bring, and check it themselves.
CHECKED = (
    "observations arrays execution metrics kernels optimize covariance latents weights "
    "ensemble prediction transforms"
)
install_import_hook([f"emgpr.{name}" for name in CHECKED.split()], "beartype.beartype")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20171)
