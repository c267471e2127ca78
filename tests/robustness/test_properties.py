"""Properties that hold for any table, checked on random examples by Hypothesis.

Kernels, weights and noise are drawn too, not fitted, so that an example takes milliseconds.
"""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import on_sphere
from emgpr.arrays import JITTERS, NumericalError, cholesky
from emgpr.covariance import log_likelihood
from emgpr.inputs.convert import as_table
from emgpr.inputs.data_warnings import input_warnings, output_warnings
from emgpr.optimize import minimize
from emgpr.prediction import condition
from emgpr.transforms import OutputScaler
from tests.simulated import known_model, world

pytestmark = pytest.mark.slow

random_examples = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,  # a failure can be repeated on every machine
    database=None,
    suppress_health_check=list(HealthCheck),
)
SPACING = np.full(3, 2.0**-52)  # of floating-point numbers of 64 bits, relative


@st.composite
def worlds(draw, missing=True, one_latent_per_output=False):
    """Kernels, weights, noise and a table drawn from them: few sites, up to three outputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    D = draw(st.integers(1, 3))
    made = world(
        rng,
        N=draw(st.integers(2, 7)),
        D=D,
        Q=D if one_latent_per_output else draw(st.integers(1, 3)),
        k=draw(st.integers(1, 2)),
        P=draw(st.integers(1, 3)),
        missing=draw(st.sampled_from([0.0, 0.3, 0.6])) if missing else 0.0,
        noise=10.0 ** draw(st.integers(-8, 1)),
        correlated=draw(st.booleans()),
    )
    made.Y[0, 0] = 0.5  # at least one reading
    return made


def predict(made, x, with_noise=False):
    """Mean and covariance given the known parameters."""
    predicted = condition(made.observations, x, made.model)
    return predicted.mean[0], predicted.cov[0] + with_noise * made.noise


def locations(made, seed):
    """New locations, and a training site."""
    new = np.random.default_rng(seed).uniform(-1, 2, size=(3, made.X.shape[1]))
    return np.vstack([new, made.X[:1]])


def likelihood(made):
    return float(log_likelihood(made.observations, made.W, made.noise, made.K).value)


def check_close(ours, theirs, made, rtol=1e-5):
    """Check that means and covariances are equal to rounding, which small noise amplifies."""
    size = np.sqrt((made.W**2).sum(axis=(0, 2)).max())
    loss = 1e-15 / np.linalg.eigvalsh(made.noise)[0] * size**2
    assert_allclose(ours[0], theirs[0], atol=(rtol + loss) * size)
    assert_allclose(ours[1], theirs[1], atol=(rtol + loss) * size**2)


seeds = st.integers(0, 2**32 - 1)


@random_examples
@given(worlds(), seeds)
def test_the_order_of_sites_does_not_change_predictions(made, seed):
    order = np.random.default_rng(seed).permutation(len(made.X))
    shuffled = replace(made, X=made.X[order], Y=made.Y[order])
    x = locations(made, seed)
    check_close(predict(shuffled, x), predict(made, x), made)
    assert_allclose(likelihood(shuffled), likelihood(made), rtol=1e-6, atol=1e-6)


@random_examples
@given(worlds(), seeds)
def test_permuted_outputs_have_permuted_predictions(made, seed):
    order = np.random.default_rng(seed).permutation(made.Y.shape[1])
    noise = made.noise[np.ix_(order, order)]
    turned = replace(made, Y=made.Y[:, order], W=made.W[:, order], noise=noise)
    x = locations(made, seed)
    mean, cov = predict(made, x)
    check_close(predict(turned, x), (mean[:, order], cov[:, order][:, :, order]), made)


@random_examples
@given(worlds(), seeds)
def test_an_empty_row_does_not_change_predictions(made, seed):
    """The table without its last row, and with that row empty."""
    empty = made.Y.copy()
    empty[-1] = np.nan
    with_row = replace(made, Y=empty)
    without = replace(made, X=made.X[:-1], Y=made.Y[:-1])
    x = locations(made, seed)
    check_close(predict(with_row, x), predict(without, x), made)
    assert_allclose(likelihood(with_row), likelihood(without), rtol=1e-6, atol=1e-6)


@random_examples
@given(worlds(), st.floats(-1e6, 1e6), seeds)
def test_the_origin_of_the_inputs_does_not_change_predictions(made, origin, seed):
    """Sites are multiples of 2⁻²⁰, which stay exact when a million is added."""
    grid, origin = 2.0**20, round(origin)
    made = replace(made, X=np.round(made.X * grid) / grid)
    x = np.round(locations(made, seed) * grid) / grid
    moved = replace(made, X=made.X + origin)
    for ours, theirs in zip(predict(moved, x + origin), predict(made, x), strict=True):
        assert_array_equal(ours, theirs)


@random_examples
@given(worlds(), st.floats(-12, 12), seeds)
def test_the_unit_of_the_outputs_scales_predictions(made, power, seed):
    unit = 10.0**power
    scaled = replace(made, Y=unit * made.Y, W=unit * made.W, noise=unit**2 * made.noise)
    x = locations(made, seed)
    mean, cov = predict(scaled, x)
    check_close((mean / unit, cov / unit**2), predict(made, x), made)


@random_examples
@given(worlds(), st.booleans(), seeds)
def test_predictive_covariances_have_no_negative_eigenvalue(made, with_noise, seed):
    """Up to rounding, of 1e-7 of their size."""
    _, cov = predict(made, locations(made, seed), with_noise)
    size = np.trace(cov, axis1=1, axis2=2) + 1e-3 * np.sum(made.W**2)
    assert np.all(np.linalg.eigvalsh(cov) >= -1e-7 * size[:, None])


@settings(random_examples, max_examples=40)
@given(
    worlds(one_latent_per_output=True),
    st.sampled_from(["all", "batch", 2]),
    st.booleans(),
    seeds,
)
def test_no_predicted_variance_is_negative(made, conditioning, include_noise, seed):
    assume(not np.isnan(made.Y).all(axis=0).any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = known_model(made, conditioning=conditioning)
        x = locations(made, seed)
        _, std = model.predict(x, return_std=True, include_noise=include_noise)
        _, cov = model.predict(x, return_cov=True, include_noise=include_noise)
    assert np.all(std >= 0)
    assert np.all(np.einsum("mdd->md", cov) >= 0)
    assert_array_equal(cov, np.swapaxes(cov, 1, 2))


@random_examples
@given(worlds(), seeds)
def test_a_further_site_never_increases_the_variance_of_a_signal(made, seed):
    x = locations(made, seed)
    _, before = predict(replace(made, X=made.X[:-1], Y=made.Y[:-1]), x)
    _, after = predict(made, x)
    size = np.sum(made.W**2)
    assert np.all(np.einsum("mdd->md", before - after) >= -1e-7 * size)


@random_examples
@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=2, max_size=12),
    st.floats(0.1, 10),
    st.integers(-(10**8), 10**8),
)
def test_standardised_outputs_do_not_depend_on_unit_and_origin(values, unit, origin):
    """Values are multiples of 2⁻¹⁰, which stay exact when 1e8 is added."""
    y = np.round(np.array(values) * 2**10)[:, None] / 2**10
    assume(np.ptp(y) > 1)
    plain = OutputScaler.fit(y).standardise(y)
    assert_array_equal(OutputScaler.fit(y + origin).standardise(y + origin), plain)
    assert_allclose(OutputScaler.fit(unit * y).standardise(unit * y), plain, atol=1e-7)
    assert_allclose([plain.mean(), plain.std()], [0, 1], atol=1e-6)


@random_examples
@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=10),
    st.integers(-150, 150),
    st.sampled_from([None, "yeo-johnson", "normal-score"]),
)
def test_standardised_outputs_are_restored_in_any_unit(values, power, transform):
    y = 10.0**power * np.array(values, float)[:, None]
    scaler = OutputScaler.fit(y, transform)
    z = scaler.standardise(y)
    assert np.all(np.isfinite(z))
    assert_allclose(scaler.to_original(z), y, rtol=1e-6, atol=1e-9 * np.ptp(y))


@random_examples
@given(st.integers(1, 6), st.integers(0, 14), st.floats(-100, 100), seeds)
def test_cholesky_adds_the_least_jitter_that_suffices_or_raises_an_error(n, power, size, seed):
    """For matrices with eigenvalues 1 and −10⁻ᵖ times any unit."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n + 1, n + 1)))[0]
    values = np.ones(n + 1)
    values[0] = -(10.0**-power)
    A = 10.0**size * (Q * values) @ Q.T
    found = cholesky((A + A.T) / 2)
    jitter = float(found.jitter)
    if np.isnan(jitter):
        assert 10.0**-power > 0.1 * JITTERS[-1]
        with np.testing.assert_raises_regex(NumericalError, "covariance of it is not positive"):
            found.checked("covariance of it")
    else:
        assert jitter in JITTERS
        assert 10.0**-power < 10 * max(jitter, 1e-13)


@random_examples
@given(st.integers(1, 4), st.integers(0, 60), st.sampled_from([np.nan, np.inf, -np.inf]), seeds)
def test_a_fault_in_one_search_does_not_change_the_others(B, at, fault, seed):
    """From some call on, the first function has no finite value; the others end as without it."""
    rng = np.random.default_rng(seed)
    target, curve = rng.normal(size=(B + 1, 3)), rng.uniform(0.5, 50, size=(B + 1, 3))
    calls = 0

    def bowl(x, which):
        away = x - target[which]
        return (curve[which] * away**2 + away**4).sum(1), 2 * curve[which] * away + 4 * away**3

    def faulty(x, which):
        nonlocal calls
        calls += 1
        f, g = bowl(x, which)
        return np.where((which == 0) & (calls > at), fault, f), g

    sound, broken = (minimize(f, np.zeros((B + 1, 3))) for f in (bowl, faulty))
    assert_array_equal(broken.x[1:], sound.x[1:])
    assert_array_equal(broken.nonfinite[1:], False)
    assert np.isfinite(broken.x).all()
    # The first search ends at its best point and reports the fault, unless it had ended before.
    assert broken.nonfinite[0] != bool(broken.converged[0])
    assert at == 0 or broken.value[0] <= bowl(np.zeros((1, 3)), np.array([0]))[0][0]


@random_examples
@given(worlds(missing=False), st.sampled_from([-9999.0, -999.0, 1e20]), st.integers(1, 3))
def test_codes_for_missing_values_are_warned_of_and_other_readings_are_not(made, code, times):
    assume(len(made.Y) > times + 1)
    names = [f"output {d}" for d in range(made.Y.shape[1])]
    assert list(output_warnings(made.Y, names, SPACING[: len(names)])) == []
    coded = made.Y.copy()
    coded[:times, 0] = code
    first, *_ = output_warnings(coded, names, SPACING[: len(names)])
    assert first.startswith(f"Output 'output 0' contains {code:g} ({times} of {len(coded)} values)")


@random_examples
@given(st.floats(-180, 180), st.floats(-60, 60), seeds)
def test_distances_on_the_sphere_do_not_depend_on_the_meridian(turn, lat, seed):
    rng = np.random.default_rng(seed)
    lon, lats = rng.uniform(-5, 5, 6), lat + rng.uniform(-5, 5, 6)
    turned = (lon + turn + 180) % 360 - 180
    points = on_sphere(turned, lats), on_sphere(lon, lats)
    distances = [np.linalg.norm(p[:, None] - p, axis=-1) for p in points]
    assert_allclose(*distances, atol=1e-8)
    assert list(input_warnings(on_sphere(turned, lats), ["x", "y", "z"], SPACING)) == []


@random_examples
@given(seeds, st.sampled_from(["masked", "NA", "None", "nullable"]))
def test_every_mark_of_a_missing_value_becomes_nan(seed, mark):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(4, 2))
    holes = rng.uniform(size=(4, 2)) < 0.4
    forms = {
        "masked": np.ma.array(table, mask=holes),
        "NA": pd.DataFrame(table).astype(object).mask(holes, pd.NA),
        "None": pd.DataFrame(np.where(holes, None, table)),
        "nullable": pd.DataFrame(table).astype("Float64").mask(holes),
    }
    frame = pd.DataFrame(as_table(forms[mark])).astype("Float64")
    read = frame.to_numpy(float, na_value=np.nan)
    assert_array_equal(read, np.where(holes, np.nan, table))
