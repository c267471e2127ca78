"""Parts of a whole: their samples, moments and distributions, and invalid compositions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp, ndtri

from emgpr.prediction import GaussianMixture
from emgpr.transforms import OutputScaler, check_compositions, mixture_marginals
from emgpr.transforms.compositions import Composition, find_compositions, joint_draws

NAMES = ["sand", "pH", "silt", "clay"]
PARTS = [["sand", "silt", "clay"]]
AT = [0, 2, 3]


@pytest.fixture
def scaler(rng):
    parts = rng.dirichlet([4.0, 2.0, 1.0], size=60) * 100
    Y = np.column_stack([parts[:, 0], rng.normal(6, 1, 60), parts[:, 1:]])
    return OutputScaler.fit(Y, ["log", None, "log", "log"], names=NAMES, compositions=PARTS)


@pytest.fixture
def distribution(rng):
    A = rng.normal(size=(2, 3, 4, 5)) / 3
    return GaussianMixture(rng.normal(size=(2, 3, 4)) / 2, A @ A.swapaxes(-1, -2))


def draws(scaler, distribution, n=40_000):
    rng = np.random.default_rng(0)
    member = rng.integers(len(distribution.mean), size=n)
    root = np.linalg.cholesky(distribution.cov)[member]
    z = distribution.mean[member] + np.einsum("nmde,nme->nmd", root, rng.normal(size=(n, 3, 4)))
    return scaler.samples_to_original(z)


def test_samples_and_means_sum_to_the_total(scaler, distribution):
    Y = draws(scaler, distribution, 500)
    assert_allclose(Y[..., AT].sum(axis=-1), 100, rtol=1e-12)
    assert Y[..., AT].min() > 0
    assert_allclose(scaler.mean(distribution)[:, AT].sum(axis=-1), 100, rtol=1e-12)
    cov = scaler.covariance(distribution)
    assert_allclose(cov[:, AT][:, :, AT].sum(axis=(1, 2)), 0, atol=1e-9)
    assert np.linalg.eigvalsh(cov).min() > -1e-9


def test_moments_and_quantiles_are_those_of_samples(scaler, distribution):
    """Within a few per cent of a standard deviation: 512 quasi-random draws, smoothed."""
    Y = draws(scaler, distribution)
    std = Y.std(axis=0)
    assert_allclose(scaler.mean(distribution), Y.mean(axis=0), atol=0.05 * std.max())
    assert_allclose(scaler.std(distribution), std, rtol=0.08)
    q = [0.05, 0.5, 0.95]
    error = np.abs(scaler.quantiles(distribution, q) - np.quantile(Y, q, axis=0))
    assert (error < 0.12 * std).all()
    share = scaler.exceedance(distribution, 30.0)
    assert_allclose(share, (Y > 30).mean(axis=0), atol=0.03)


def test_the_logit_of_one_of_two_parts_is_gaussian(rng):
    """Then the distribution is exact, even far in the tails."""
    share = rng.uniform(0.2, 0.8, 60)
    scaler = OutputScaler.fit(
        100 * np.column_stack([share, 1 - share]),
        "log",
        names=["a", "b"],
        compositions=[["a", "b"]],
    )
    cov = np.array([[1.0, 0.3], [0.3, 0.7]])
    distribution = GaussianMixture(np.array([[[0.2, -0.4]]]), cov[None, None])
    contrast = scaler.scale * [1, -1]
    mean = contrast @ distribution.mean[0, 0] + scaler.shift @ [1, -1]
    q = np.array([1e-4, 0.025, 0.5, 0.975, 1 - 1e-4])
    expected = 100 * expit(mean + np.sqrt(contrast @ cov @ contrast) * ndtri(q))
    assert_allclose(scaler.quantiles(distribution, q)[:, 0, 0], expected, rtol=0.01)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_intervals_of_a_part_are_those_of_samples(rng, scale):
    """The ends of 95% intervals; standard errors are below 0.01 standard deviations.

    A smoothed histogram of few draws would be off by more than 0.1 standard deviations.
    """
    whole = Composition((0, 1, 2), 1.0)
    A = scale * rng.normal(size=(1, 8, 3, 3))
    m = rng.normal(size=(1, 8, 3))
    components = whole.logit_components(joint_draws(m, A @ A.swapaxes(-1, -2)), 0)
    u = m[0] + np.einsum("mde,ne->nmd", A[0], rng.normal(size=(40_000, 3)))
    logits = u[..., 0] - logsumexp(u[..., 1:], axis=-1)
    q = np.array([0.025, 0.975])
    error = np.abs(mixture_marginals.ppf(q, *components) - np.quantile(logits, q, axis=0))
    assert (error / logits.std(axis=0)).mean() < 0.04


def test_parts_without_variance_have_a_narrow_distribution():
    whole = Composition((0, 1, 2), 1.0)
    m = np.log(np.array([0.2, 0.3, 0.5]))[None, None]
    centres, widths = whole.logit_components(joint_draws(m, np.zeros((1, 1, 3, 3))), 0)
    assert_allclose(centres, np.log(0.25))
    assert widths.max() < 1e-12
    assert widths.min() > 0


def test_the_density_of_a_part_integrates_to_one(scaler, distribution):
    grid = np.linspace(0.05, 99.95, 600)
    one = GaussianMixture(
        *(np.repeat(a[:, :1], 600, axis=1) for a in (distribution.mean, distribution.cov))
    )
    density = np.exp(scaler.log_density(one, np.repeat(grid[:, None], 4, axis=1)))[:, AT]
    assert_allclose(density.sum(axis=0) * (grid[1] - grid[0]), 1.0, atol=5e-3)


@pytest.mark.parametrize("total", [1.0, 100.0, 365.0, 1015.0])
def test_the_total_is_that_of_the_readings(rng, total):
    parts = rng.dirichlet([4.0, 2.0, 1.0], size=30) * total
    [found] = find_compositions([["a", "b", "c"]], ["a", "b", "c"], parts)
    assert_allclose(found.total, total)
    rounded = np.round(parts / total * 100)
    [found] = find_compositions([["a", "b", "c"]], ["a", "b", "c"], np.maximum(rounded, 1))
    assert found.total == 100


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([140.0, np.nan, np.nan], "sand=140 in row 1 .* sum to 140"),
        ([70.0, 80.0, np.nan], "sand=70, silt=80 in row 1 .* sum to 150"),
        ([30.0, 20.0, 10.0], "sand=30, silt=20, clay=10 in row 1 .* sum to 60"),
    ],
)
def test_parts_that_contradict_the_total_are_refused(scaler, parts, message):
    Y = np.array([[50.0, 6.0, 30.0, 20.0], [parts[0], 6.0, *parts[1:]]])
    with pytest.raises(ValueError, match=f"{message}, but the total is 100"):
        scaler.standardise(Y)
    with pytest.raises(ValueError, match=f"{message}, but the total is 100|in most rows"):
        find_compositions(PARTS, NAMES, np.vstack([Y, Y[[0, 0]]]))


def test_outputs_that_do_not_sum_to_a_total_are_not_a_composition(rng):
    with pytest.raises(ValueError, match="do not declare these outputs as the parts of a whole"):
        find_compositions([["a", "b"]], ["a", "b"], rng.uniform(1, 100, size=(30, 2)))


def test_a_part_cannot_have_other_bounds(scaler):
    Y = np.tile([50.0, 7.0, 30.0, 20.0], (6, 1))
    with pytest.raises(ValueError, match=r"bounds are \(0.0, 90.0\) for output 'sand'.*Remove"):
        OutputScaler.fit(
            Y, ["log", None, "log", "log"], names=NAMES, compositions=PARTS,
            bounds={"sand": (0, 90)},
        )  # fmt: skip


@pytest.mark.parametrize("bad", ["sand", ["sand", "silt"], [["sand"]], 3])
def test_compositions_of_another_form_are_rejected(bad):
    with pytest.raises(ValueError, match="expected a list of lists"):
        check_compositions(bad)


@pytest.mark.parametrize(
    ("given", "change", "message"),
    [
        ([["sand", "gravel"]], {}, "'gravel' is not an output"),
        ([["sand", "silt"], ["silt", "clay"]], {}, "'silt' is a part twice"),
        (PARTS, {(4, 3): 60.0}, "sum to .* in row 4 .*, but to 100 in most rows"),
        (PARTS, {(2, 0): 0.0}, r"'sand', a part .* 1 values .*row 2 "),
    ],
)
def test_compositions_that_do_not_fit_the_table_are_rejected(given, change, message):
    Y = np.tile([50.0, 7.0, 30.0, 20.0], (6, 1))
    for cell, value in change.items():
        Y[cell] = value
    with pytest.raises(ValueError, match=message):
        find_compositions(given, NAMES, Y)


def test_parts_that_were_never_measured_together_have_no_total():
    with pytest.raises(ValueError, match="no row in which all parts were measured"):
        find_compositions([["a", "b"]], ["a", "b"], np.array([[1.0, np.nan], [np.nan, 2.0]]))


def test_a_part_must_have_the_log(scaler):
    with pytest.raises(ValueError, match=r"'clay' is a part of a composition.*log"):
        OutputScaler.fit(
            np.tile([50.0, 7.0, 30.0, 20.0], (6, 1)), ["log", None, "log", "yeo-johnson"],
            names=NAMES, compositions=PARTS,
        )  # fmt: skip
