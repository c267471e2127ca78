"""Every array's shape is checked at run time in the tests: a transposed argument is an error."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from jaxtyping import install_import_hook

matplotlib.use("Agg")
# The mathematics; the estimators take whatever users bring, and check it themselves.
CHECKED = (
    "observations noise sampling arrays parallel metrics kernels kernel_stack neighbours optimize "
    "scoring covariance latents weights ensemble prediction transforms persistence checkpoint "
    "variograms sphere geo io fourier regression stacking mixture_weights convolution cokriging "
    "spherical"
)
install_import_hook([f"emgpr.{name}" for name in CHECKED.split()], "beartype.beartype")


ATMS = Path(os.environ.get("EMGPR_ATMS", Path(__file__).parents[2] / "shared" / "data" / "atms"))


@pytest.fixture(scope="session")
def granule() -> list[Path]:
    """Temperatures, geolocation and an independent decode of a real ATMS granule."""
    files = [*ATMS.glob("TATMS_*.h5"), *ATMS.glob("GATMO_*.h5"), *ATMS.glob("decoded.csv")]
    if len(files) != 3:
        pytest.skip(f"no real ATMS granule in {ATMS}; set EMGPR_ATMS to its folder")
    return files


@pytest.fixture(params=["torch", "cuda"])
def device(request) -> str:
    """Torch on the CPU, and on a GPU if there is one."""
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU here")
    return request.param


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close the figures that a test drew, which other tests would count."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20171)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests with torch out of the fast lane: importing it takes seconds in every worker."""
    for item in items:
        if "device" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
