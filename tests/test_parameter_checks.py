"""Checks of parameters that estimators share, and the kernels that they name."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from emgpr.observations import Observations
from emgpr.parameter_checks import (
    check_choice,
    check_count,
    check_kernel,
    check_options,
    check_single_kernel,
    check_transform,
    is_auto,
    kernels_per_output,
    with_string_keys,
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
    named = ["rbf", RBF(0.2), "matern12"]
    assert kernels_per_output(named, 3, observations) == [RBF(), RBF(0.2), Matern(nu=0.5)]
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
    check_kernel([RBF(), "matern12"], ("auto", "matern12"))
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
        {"verbose": "yes"},
        {"verbose": np.nan},
        {"verbose": np.inf},
        {"verbose": -1},
    ],
    ids=str,
)
def test_an_option_of_the_wrong_type_is_named_with_what_is_expected(options):
    (name,) = options
    with pytest.raises(ValueError, match=rf"{name}=.*; expected .+"):
        check_options(**OPTIONS | options)


BAD_KERNELS = {
    "a compound": (CompoundKernel([RBF(), RBF()]), "CompoundKernel.*list of kernels"),
    "a compound in a sum": (RBF() + CompoundKernel([RBF(), RBF()]), "CompoundKernel"),
    "NaN": (RBF(np.nan), "length_scale=nan; expected finite positive"),
    "NaN, fixed": (RBF(np.nan, "fixed"), "length_scale=nan"),
    "NaN for one column": (RBF([1.0, np.nan]), r"length_scale=\[1.0, nan\]"),
    "infinity": (RBF(np.inf), "length_scale=inf"),
    "zero": (RBF(0.0), "length_scale=0.0"),
    "a negative length-scale": (RBF(-1.0, "fixed"), "length_scale=-1.0"),
    "text": (RBF("long"), "length_scale='long'"),
    "inverted bounds": (RBF(1.0, (10.0, 1.0)), r"length_scale_bounds=\[\[10.0, 1.0\]\]; expected"),
    "NaN in bounds": (RBF(1.0, (np.nan, 1.0)), "length_scale_bounds"),
    "negative bounds": (RBF(1.0, (-1.0, 1.0)), "length_scale_bounds"),
    "a misspelt bound": (RBF(1.0, "fixd"), 'length_scale_bounds.*fixd.*"fixed"'),
    "three bounds": (RBF(1.0, (1.0, 2.0, 3.0)), "length_scale_bounds"),
    "negative noise": (RBF() + WhiteKernel(-1.0), "k2__noise_level=-1.0; .*at least 0"),
    "NaN noise": (RBF() + WhiteKernel(np.nan, "fixed"), "k2__noise_level=nan"),
    "inverted bounds of noise": (RBF() + WhiteKernel(1, (2, 1)), "k2__noise_level_bounds"),
    "a negative variance": (ConstantKernel(-1.0) * RBF(), "k1__constant_value=-1.0"),
    "NaN alpha": (RationalQuadratic(alpha=np.nan), "alpha=nan"),
    "NaN smoothness": (Matern(nu=np.nan), "nu=nan; expected a positive"),
    "negative smoothness": (RBF() + Matern(nu=-1.0), "k2__nu=-1.0"),
}


@pytest.mark.parametrize("kernel", ["auto", "matern", None, RBF])
def test_a_list_of_kernels_has_kernels_or_their_names(kernel):
    with pytest.raises(ValueError, match=r"is not a scikit-learn kernel.*one of 'rbf', or a list"):
        check_kernel(["rbf", kernel], ("auto", "rbf"))


def test_a_parameter_for_one_kernel_takes_no_list():
    for kernel in (None, "rbf", RBF()):
        check_single_kernel("weight_kernel", kernel, ("rbf",))
    for kernel in ("auto", [RBF()]):
        with pytest.raises(ValueError, match=r"^weight_kernel=.*one of 'rbf', or None.$"):
            check_single_kernel("weight_kernel", kernel, ("rbf",))


@pytest.mark.parametrize("case", BAD_KERNELS)
def test_impossible_parameters_of_a_kernel_are_refused(case):
    kernel, message = BAD_KERNELS[case]
    with pytest.raises(ValueError, match=f"kernel (has|contains) .*{message}"):
        check_kernel(kernel, ("auto",))
    with pytest.raises(ValueError, match=f"kernel (has|contains) .*{message}"):
        check_kernel([RBF(), kernel], ("auto",))


@pytest.mark.parametrize(
    "kernel",
    [
        RBF([1.0, 2.0], [(0.1, 2.0), (0.5, 5.0)]),
        RBF(1.0, (1.0, 1.0)),
        RBF(1.0, (0.0, np.inf)),
        RBF() + WhiteKernel(0.0),
        ConstantKernel(0.0, "fixed") + RBF(),
        DotProduct(0.0, "fixed"),
        Matern(nu=np.inf),
        RationalQuadratic() ** 2,
    ],
    ids=str,
)
def test_unusual_but_possible_kernels_are_accepted(kernel):
    check_kernel(kernel, ("auto",))


def test_keys_are_names_and_no_name_is_given_twice():
    assert with_string_keys({1: "a", "Cd": "b"}, "units") == {"1": "a", "Cd": "b"}
    with pytest.raises(ValueError, match=r"units has the keys \[1, '1'\]"):
        with_string_keys({1: "a", "1": "b"}, "units")
