"""Parameters of OnePassGP that have no meaning are refused."""

import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import OnePassGP
from emgpr.fourier.settings import FourierSettings

INVALID = [
    ({"kernel": "RBF"}, "kernel='RBF' is not a scikit-learn kernel"),
    ({"n_latents": 0}, "n_latents=0"),
    ({"rank": 1.5}, "rank=1.5"),
    ({"noise": "auto"}, "noise='auto'"),
    ({"box": "data"}, "box='data'; expected \"auto\" or"),
    ({"tolerance": 0.0}, "tolerance=0.0; expected a share between 0 and 1"),
    ({"n_functions": "many"}, "n_functions='many'"),
    ({"n_start": 0}, "n_start=0"),
    ({"output_transform": "auto"}, "output_transform='auto'"),
    ({"output_transform": {"Cd": "softplus"}}, "output_transform='softplus'; .*'yeo-johnson'"),
    ({"output_transform": [None, "auto"]}, "output_transform='auto'"),
    ({"crs": "nowhere"}, "nowhere"),
]


@pytest.mark.parametrize(("changed", "message"), INVALID, ids=str)
def test_an_invalid_parameter_is_named_with_what_is_expected(changed, message):
    with pytest.raises(ValueError, match=message):
        FourierSettings.from_params(OnePassGP(**changed).get_params(deep=False))


def test_valid_parameters_are_kept():
    params = OnePassGP([RBF(), RBF()], n_latents=2, rank=1, crs="EPSG:4326").get_params(deep=False)
    assert vars(FourierSettings.from_params(params)) == params
