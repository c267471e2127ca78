"""Checks of parameters that estimators share, and the kernels that they name."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.observations import Observations
from emgpr.parameter_checks import (
    check_choice,
    check_count,
    check_kernel,
    check_options,
    check_transform,
    is_auto,
    kernels_per_output,
)

OPTIONS = {"normalize_y": True, "n_jobs": None, "random_state": None, "verbose": 0}


@pytest.fixture
def observations(rng):
    """Two inputs and three outputs."""
    return Observations.from_table(rng.uniform(size=(6, 2)), rng.normal(size=(6, 3)))


def test_one_kernel_is_that_of_every_output(observations):
    for given, expected in [
        (None, RBF()),
        ("matern32", Matern(nu=1.5)),
        (RBF([1.0, 2.0]), RBF([1.0, 2.0])),
    ]:
        kernels = kernels_per_output(given, 3, observations)
        assert kernels == [expected] * 3
        assert given is not kernels[0]


def test_a_list_has_a_kernel_for_each_latent(observations):
    listed = [RBF(0.1), RBF(0.2), RBF(0.3), RBF(0.4)]
    assert kernels_per_output(listed, 4, observations) == listed
    assert kernels_per_output(listed[:2], 2, observations) == [listed[0], listed[1], listed[0]]
    with pytest.raises(ValueError, match="kernel is a list of 2 kernels for 3 latent processes"):
        kernels_per_output(listed[:2], 3, observations)


def test_length_scales_are_one_or_one_for_each_column(observations):
    with pytest.raises(ValueError, match="3 length-scales and X has 2 columns"):
        kernels_per_output(RBF([1.0, 1.0, 1.0]), 3, observations)


def test_auto_is_found_beside_values_that_compare_otherwise():
    assert is_auto("auto")
    assert not is_auto(np.array(["auto"]))
    assert not is_auto(RBF())


def test_checks_accept_what_has_a_meaning():
    check_count("rank", np.int64(3))
    check_choice("prior", None, ("weak", None))
    check_transform(None, ("log",))
    check_transform(["exp"], ("log",))  # lists are checked against the outputs
    check_kernel([RBF(), Matern()], ("auto",))
    for options in (
        {},
        {"normalize_y": np.False_},
        {"normalize_y": None},
        {"verbose": 2.0},
        {"n_jobs": -1},
        {"n_jobs": np.int64(2)},
        {"random_state": np.random.RandomState(0)},
        {"random_state": np.random.default_rng(0)},
        {"random_state": np.uint32(7)},
        {"verbose": True},
    ):
        check_options(**OPTIONS | options)


@pytest.mark.parametrize(
    "options",
    [
        {"normalize_y": "yes"},
        {"n_jobs": "two"},
        {"n_jobs": 0},
        {"random_state": 1.5},
        {"random_state": np.arange(3)},
        {"verbose": None},
    ],
    ids=str,
)
def test_an_option_of_the_wrong_type_is_named_with_what_is_expected(options):
    (name,) = options
    with pytest.raises(ValueError, match=rf"{name}=.*; expected .+"):
        check_options(**OPTIONS | options)
