"""Structures: names and kernels that are variogram models, and others that are refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from emgpr.cokriging import VARIOGRAM_MODELS, as_structures
from emgpr.cokriging.structures import correlations, with_ranges
from emgpr.kernels import Spherical


@pytest.mark.parametrize("name", VARIOGRAM_MODELS)
def test_every_name_is_a_model_with_a_range(name):
    (kernel,) = as_structures(name, 2)
    (ranged,) = with_ranges([kernel], np.log([2.0]))
    assert ranged.length_scale == pytest.approx(2.0)
    k = correlations(ranged, np.array([[0.0, 0.5], [1.0, 1.9]]))
    assert k[0, 0] == 1
    assert (np.diff(k.ravel()) < 0).all()


def test_kernels_and_names_can_be_mixed():
    structures = as_structures(["gaussian", Matern(3.0, "fixed", nu=1.5)], 2)
    fitted = with_ranges(structures, np.log([0.5]))
    assert fitted[0] == RBF(0.5)
    assert fitted[1].length_scale == 3.0
    quadratic = RationalQuadratic(alpha=2.0, alpha_bounds="fixed")
    assert as_structures(quadratic, 1)[0].n_dims == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cubic", "'cubic' is not a variogram model; expected one of 'spherical'"),
        ([], "an empty list"),
        (None, "None is not a variogram model"),
        ([RBF(), 3], "3 is not a variogram model"),
        (RBF([1.0, 2.0]), "one length-scale for all inputs"),
        (RationalQuadratic(), "only free parameter"),
        (RBF() + Matern(), "only free parameter"),
        (DotProduct(0.0, "fixed"), "expected a stationary kernel"),
        (ConstantKernel(2.0, "fixed") * RBF(), "has the variance 2"),
        (RBF() + WhiteKernel(1.0, "fixed"), "has the variance 2"),
        (Spherical(-0.5, "fixed"), r"length_scale=-0\.5; expected one length-scale"),
        (Spherical(0.0, "fixed"), r"length_scale=0\.0; expected one length-scale"),
        (Spherical(np.nan, "fixed"), "length_scale=nan; expected one length-scale"),
        (Spherical(np.inf, "fixed"), "length_scale=inf; expected one length-scale"),
        (RBF("a"), "length_scale='a'; expected one length-scale"),
        (
            Spherical().set_params(length_scale=[1, 2]),
            r"length_scale=\[1, 2\]; expected one",
        ),
        (RBF([1.0, 2.0], "fixed"), r"length_scale=\[1\.0, 2\.0\]; expected one length-scale"),
        (RBF(1.0, "fixed") * Matern(-1.0, "fixed"), r"k2__length_scale=-1\.0; expected one"),
        (CompoundKernel([RBF()]), "is not a variogram model"),
        (WhiteKernel(1.0, "fixed"), "The nugget is added automatically"),
        (ConstantKernel(1.0, "fixed"), r"k\(0\) = 1 that decreases"),
        (ExpSineSquared(1.0, 1.0, "fixed", "fixed"), r"k\(0\) = 1 that decreases"),
        (Spherical(0.2, (0.2, 0.1)), r"bounds of length_scale are \(0\.2, 0\.1\); expected two"),
        (Spherical(0.2, (0.0, 0.1)), r"bounds of length_scale are \(0\.0, 0\.1\); expected two"),
    ],
)
def test_other_kernels_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        as_structures(given, 2)


def test_sums_of_fixed_kernels_are_accepted():
    half = ConstantKernel(0.5, "fixed")
    nested = half * RBF(1.0, "fixed") + half * Matern(2.0, "fixed", nu=0.5)
    assert as_structures(nested, 2)[0] == nested


def test_the_spherical_model_is_for_up_to_three_inputs():
    assert isinstance(as_structures("spherical", 3)[0], Spherical)
    with pytest.raises(ValueError, match="up to 3 inputs, and there are 4"):
        as_structures(["exponential", "spherical"], 4)


def test_the_users_kernel_is_not_changed():
    kernel = RBF(2.0)
    (structure,) = as_structures(kernel, 1)
    assert structure is not kernel
    assert_allclose(structure.theta, kernel.theta)
