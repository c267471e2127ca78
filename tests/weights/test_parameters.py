"""Whole models as vectors that an optimiser can change freely."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.latents import SiteDistances
from emgpr.observations import Observations
from emgpr.optimize import LBFGSMemory, OptimizeResult
from emgpr.weights import LMCParameters, ParameterVector

correlated_or_not = pytest.mark.parametrize("correlated", [False, True])
KERNELS = (
    RBF(0.4, (0.1, 2.0)),
    ConstantKernel(2.0, (1.0, 3.0)) * Matern([0.3, 0.6], (0.2, 0.9), nu=1.5),
)
NOISE = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.4]])
NOISE_BOUNDS = np.array([[1e-3, 5.0], [1e-3, 5.0], [1e-3, 0.03]])


@pytest.fixture
def start(rng):
    return LMCParameters(KERNELS, NOISE, rng.normal(size=(2, 3, 1)), NOISE_BOUNDS)


@pytest.fixture
def table(rng):
    return Observations.from_table(rng.uniform(size=(8, 2)), rng.normal(size=(8, 3)))


def vector_of(start, table, correlated=True, **given):
    return ParameterVector.around(start, table, correlated=correlated, **given)


def test_bounds_of_kernels_and_noise_are_in_the_order_of_the_vector(start, table):
    vector = vector_of(start, table, correlated=False)
    assert vector.n_kernel_parameters == 4
    kernels = [[0.1, 2.0], [1.0, 3.0], [0.2, 0.9], [0.2, 0.9]]
    assert_allclose(vector.bounds, np.log([*kernels, *NOISE_BOUNDS]))
    assert len(vector.names) == len(vector.bounds) == 7


@pytest.mark.parametrize("names", [None, ["Cd", "Ni", "Zn"]])
def test_every_parameter_has_a_name(start, table, names):
    outputs = ["'Cd'", "'Ni'", "'Zn'"] if names else ["0", "1", "2"]
    expected = [
        "latent 0's length_scale",
        "latent 1's k1__constant_value",
        "latent 1's k2__length_scale[0]",
        "latent 1's k2__length_scale[1]",
        *(f"the noise of output {name}" for name in outputs),
    ]
    independent = vector_of(start, table, correlated=False, output_names=names)
    assert list(independent.names) == expected
    correlated = vector_of(start, table, output_names=names)
    correlation = "a correlation between noises (set noise='independent' if sites are few)"
    assert list(correlated.names) == expected + [correlation] * 3


def test_correlated_noise_keeps_a_tenth_of_its_start(start, table):
    """Unless its upper bound is lower, as that of the last output here."""
    bounds = vector_of(start, table).bounds
    assert_allclose(np.exp(bounds[4:7]), [[0.03, 5.0], [0.02, 5.0], [0.03, 0.03]])
    assert_array_equal(bounds[7:], np.tile([-10.0, 10.0], (3, 1)))


def test_a_lower_bound_above_a_tenth_of_the_start_stays(start, table):
    tight = replace(start, noise_bounds=np.outer(np.diag(NOISE), [0.5, 2.0]))
    assert_allclose(np.exp(vector_of(tight, table).bounds[4:7]), tight.noise_bounds)


def test_the_noise_of_a_constant_output_is_correlated_with_no_other(start, table):
    table = Observations(table.x, table.y * [[1.0], [0.0], [1.0]], table.observed)
    tilts = vector_of(start, table).bounds[7:]
    assert_array_equal(tilts, [[0.0, 0.0], [-10.0, 10.0], [0.0, 0.0]])  # (1, 0), (2, 0), (2, 1)


def test_the_lower_bounds_of_length_scales_can_be_raised(start, table):
    plain, raised = (vector_of(start, table, min_length_factor=f).bounds for f in (1.0, 3.0))
    assert_allclose(np.exp(raised[:4, 0]), [0.3, 1.0, 0.6, 0.6])
    assert_array_equal(raised[:, 1], plain[:, 1])
    assert_array_equal(raised[4:], plain[4:])
    highest = vector_of(start, table, min_length_factor=6.0).bounds
    assert_allclose(np.exp(highest[:4, 0]), [0.6, 1.0, 0.9, 0.9])  # not above the upper bound


def test_bounds_that_are_not_set_come_from_the_sites(start, table):
    free = replace(start, kernels=(RBF(0.4), *start.kernels[1:]))
    near, far = (
        ParameterVector.around(
            free, table, SiteDistances(scale * table.x), correlated=False
        ).bounds[0]
        for scale in (1.0, 100.0)
    )
    assert_allclose(far, near + np.log(100.0))


@correlated_or_not
@pytest.mark.parametrize("with_weights", [False, True])
def test_parameters_become_a_vector_and_back(start, table, rng, correlated, with_weights):
    noise = NOISE if correlated else np.diag(np.diag(NOISE))
    kernels = (RBF(0.7, (0.1, 2.0)), start.kernels[1])
    here, W = replace(start, kernels=kernels, noise=noise), rng.normal(size=(2, 2, 3, 1))
    vector = vector_of(start, table, correlated)
    x = vector.pack(here, W if with_weights else None)
    assert len(x) == len(vector.bounds) + with_weights * W.size
    other = np.zeros_like(W)
    back, weights = vector.unpack(x, other)
    assert back.kernels == kernels
    assert_allclose(back.noise, noise, atol=1e-14)
    assert back.W is start.W  # everything else is that of the start
    assert_array_equal(weights, W if with_weights else other)
    thetas, of_noise, again = vector.split(x, other)
    assert [len(theta) for theta in thetas] == [1, 3]
    assert_allclose(vector.noise.matrix(of_noise), noise, atol=1e-14)
    assert_array_equal(again, weights)


def test_bounds_are_wide_enough_for_where_a_search_starts(start, table, rng):
    vector = vector_of(start, table, correlated=False)
    W = rng.normal(size=(1, 2, 3, 1))
    x = vector.pack(start, W)
    x[0], x[4] = np.log(9.0), np.log(1e-5)  # above and below their bounds
    bounds = vector.bounds_around(x)
    assert_allclose(np.exp(bounds[[0, 4]]), [[0.1, 9.0], [1e-5, 5.0]])
    assert_allclose(np.exp(bounds[6]), [1e-3, 0.4])  # where the noise of the last output starts
    assert_array_equal(bounds[[1, 2, 3, 5]], vector.bounds[[1, 2, 3, 5]])
    assert_array_equal(bounds[7:], np.tile([-np.inf, np.inf], (6, 1)))


def result(vector, x, **changed):
    n = len(x)
    none = LBFGSMemory(np.zeros((1, 1, n)), np.zeros((1, 1, n)), np.zeros(1, int))
    given = {"converged": True, "cut_off": False, "at_bound": np.zeros(n, bool)} | changed
    return OptimizeResult(
        x[None], np.zeros(1), np.array([given["converged"]]), given["at_bound"][None],
        np.ones(1, int), none, np.array([given["cut_off"]]),
    )  # fmt: skip


@pytest.fixture
def vector(start, table):
    return vector_of(start, table, output_names=["Cd", "Ni", "Zn"])


def test_a_good_end_needs_no_description(vector):
    assert vector.describe_end(result(vector, vector.bounds.mean(axis=1)), 7) == ""


def test_a_search_that_did_not_converge_is_described(vector):
    x = vector.bounds.mean(axis=1)
    short = vector.describe_end(result(vector, x, converged=False), 7)
    assert short == "it did not converge within max_iter=7; increase max_iter"
    for converged in (False, True):
        end = result(vector, x, converged=converged, cut_off=True)
        assert vector.describe_end(end, 7) == (
            "the likelihood could not be evaluated near one point; the search continued from the "
            "best point found"
        )


def test_parameters_at_a_bound_are_named(vector):
    """But for fixed ones (Zn), and long length-scales of single columns, which are irrelevant."""
    names = np.array(vector.names)

    def ended(upper):
        x = vector.bounds[:, 1 if upper else 0]
        x = np.append(x, [0.3, 0.4])  # weights have no bounds
        at_bound = np.append(np.ones(len(vector.bounds), bool), [False, False])
        return vector.describe_end(result(vector, x, at_bound=at_bound, converged=False), 3)

    rest = ["the noise of output 'Cd'", "the noise of output 'Ni'", names[-1]]
    said = "it did not converge within max_iter=3; increase max_iter; "
    said += "the search ended at a bound of "
    assert ended(upper=False) == said + ", ".join([*names[:4], *rest])
    assert ended(upper=True) == said + ", ".join([*names[:2], *rest])


def test_parameters_are_listed_in_the_order_of_the_columns(start, table):
    numbers = {"latent_numbers": [1, 0], "output_columns": [1, 0, 2]}
    vector = vector_of(start, table, output_names=["Ni", "Cd", "Zn"], **numbers)
    x, everywhere = vector.bounds[:, 0], np.ones(len(vector.bounds), bool)
    said = vector.describe_end(result(vector, x, at_bound=everywhere), 3)
    assert said.index("latent 0") < said.index("latent 1") < said.index("'Cd'") < said.index("'Ni'")


def test_the_gradient_of_fixed_weights_is_zero(start, rng):
    gradient = rng.normal(size=(4, 2, 3, 1))
    assert start.mask_gradient(gradient) is gradient
    free = np.array([True, False, True])[:, None] & np.ones((2, 3, 1), bool)
    masked = replace(start, free=free).mask_gradient(gradient)
    assert_array_equal(masked[:, :, 1], 0.0)
    assert_array_equal(masked[:, :, ::2], gradient[:, :, ::2])
