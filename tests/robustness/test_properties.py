"""Properties that hold for any table, searched by Hypothesis: 200 examples each.

Kernels, weights and noise are drawn too, not learned, so that an example takes milliseconds;
what is learned has its own tests.
"""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from simulated import known_model, world

from emgpr import on_sphere
from emgpr.arrays import JITTERS, NumericalError, factor
from emgpr.covariance import log_likelihood
from emgpr.estimators.door import as_table
from emgpr.estimators.doubts import about_inputs, about_outputs
from emgpr.optimize import minimize
from emgpr.prediction import condition
from emgpr.transforms import Marginals

held = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,  # a failure here is one everywhere
    database=None,
    suppress_health_check=list(HealthCheck),
)
STEPS = np.full(3, 2.0**-52)


@st.composite
def worlds(draw, missing=True):
    """Kernels, weights, noise and a table drawn from them: few sites, up to three outputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = world(
        rng,
        N=draw(st.integers(2, 7)),
        D=draw(st.integers(1, 3)),
        Q=draw(st.integers(1, 3)),
        k=draw(st.integers(1, 2)),
        P=draw(st.integers(1, 3)),
        missing=draw(st.sampled_from([0.0, 0.3, 0.6])) if missing else 0.0,
        noise=10.0 ** draw(st.integers(-8, 1)),
        correlated=draw(st.booleans()),
    )
    made.Y[0, 0] = 0.5  # something was read
    return made


def believed(made, x, with_noise=False):
    belief = condition(made.seen, x, made.kernels, made.W[None], made.noise)
    return belief.mean[0], belief.cov[0] + with_noise * made.noise


def places(made, seed):
    """New sites, and one that was measured."""
    new = np.random.default_rng(seed).uniform(-1, 2, size=(3, made.X.shape[1]))
    return np.vstack([new, made.X[:1]])


def likelihood(made):
    return float(log_likelihood(made.seen, made.W, made.noise, made.K).value)


def check_close(ours, theirs, made, rtol=1e-5):
    """Equal, to rounding: of the signal's size, as the least noise amplifies it."""
    size = np.sqrt((made.W**2).sum(axis=(0, 2)).max())
    loss = 1e-15 / np.linalg.eigvalsh(made.noise)[0] * size**2
    assert_allclose(ours[0], theirs[0], atol=(rtol + loss) * size)
    assert_allclose(ours[1], theirs[1], atol=(rtol + loss) * size**2)


seeds = st.integers(0, 2**32 - 1)


@held
@given(worlds(), seeds)
def test_the_order_of_sites_does_not_matter(made, seed):
    order = np.random.default_rng(seed).permutation(len(made.X))
    shuffled = replace(made, X=made.X[order], Y=made.Y[order])
    x = places(made, seed)
    check_close(believed(shuffled, x), believed(made, x), made)
    assert_allclose(likelihood(shuffled), likelihood(made), rtol=1e-6, atol=1e-6)


@held
@given(worlds(), seeds)
def test_the_order_of_outputs_permutes_the_answer(made, seed):
    order = np.random.default_rng(seed).permutation(made.Y.shape[1])
    noise = made.noise[np.ix_(order, order)]
    turned = replace(made, Y=made.Y[:, order], W=made.W[:, order], noise=noise)
    x = places(made, seed)
    mean, cov = believed(made, x)
    check_close(believed(turned, x), (mean[:, order], cov[:, order][:, :, order]), made)


@held
@given(worlds(), seeds)
def test_a_reading_that_was_not_made_is_as_good_as_absent(made, seed):
    """The table without its last row, and with that row empty."""
    empty = made.Y.copy()
    empty[-1] = np.nan
    with_row = replace(made, Y=empty)
    without = replace(made, X=made.X[:-1], Y=made.Y[:-1])
    x = places(made, seed)
    check_close(believed(with_row, x), believed(without, x), made)
    assert_allclose(likelihood(with_row), likelihood(without), rtol=1e-6, atol=1e-6)


@held
@given(worlds(), st.floats(-1e6, 1e6), seeds)
def test_the_origin_of_the_inputs_does_not_matter(made, origin, seed):
    """Sites on a grid of 2⁻²⁰, which no origin of a million rounds."""
    grid, origin = 2.0**20, round(origin)
    made = replace(made, X=np.round(made.X * grid) / grid)
    x = np.round(places(made, seed) * grid) / grid
    moved = replace(made, X=made.X + origin)
    for ours, theirs in zip(believed(moved, x + origin), believed(made, x), strict=True):
        assert_array_equal(ours, theirs)


@held
@given(worlds(), st.floats(-12, 12), seeds)
def test_the_unit_of_the_outputs_scales_the_answer(made, power, seed):
    unit = 10.0**power
    scaled = replace(made, Y=unit * made.Y, W=unit * made.W, noise=unit**2 * made.noise)
    x = places(made, seed)
    mean, cov = believed(scaled, x)
    check_close((mean / unit, cov / unit**2), believed(made, x), made)


@held
@given(worlds(), st.booleans(), seeds)
def test_predictive_covariances_have_no_negative_eigenvalue(made, with_noise, seed):
    """Of size 1e-7 at most, and no variance is negative on the user's scale."""
    _, cov = believed(made, places(made, seed), with_noise)
    size = np.trace(cov, axis1=1, axis2=2) + 1e-3 * np.sum(made.W**2)
    assert np.all(np.linalg.eigvalsh(cov) >= -1e-7 * size[:, None])


@held
@given(worlds(), st.sampled_from(["all", "batch", 2]), st.booleans(), seeds)
def test_an_estimator_never_gives_a_negative_variance(made, conditioning, include_noise, seed):
    assume(made.Y.shape[1] == len(made.W) and not np.isnan(made.Y).all(axis=0).any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = known_model(made, conditioning=conditioning)
        x = places(made, seed)
        _, std = model.predict(x, return_std=True, include_noise=include_noise)
        _, cov = model.predict(x, return_cov=True, include_noise=include_noise)
    assert np.all(std >= 0)
    assert np.all(np.einsum("mdd->md", cov) >= 0)
    assert_array_equal(cov, np.swapaxes(cov, 1, 2))


@held
@given(worlds(), seeds)
def test_more_readings_never_make_the_signal_less_certain(made, seed):
    x = places(made, seed)
    _, before = believed(replace(made, X=made.X[:-1], Y=made.Y[:-1]), x)
    _, after = believed(made, x)
    size = np.sum(made.W**2)
    assert np.all(np.einsum("mdd->md", before - after) >= -1e-7 * size)


@held
@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=2, max_size=12),
    st.floats(0.1, 10),
    st.integers(-(10**8), 10**8),
)
def test_what_the_model_sees_knows_neither_unit_nor_origin(values, unit, origin):
    """Of values on a grid of 2⁻¹⁰, which no origin of 1e8 rounds."""
    y = np.round(np.array(values) * 2**10)[:, None] / 2**10
    assume(np.ptp(y) > 1)
    plain = Marginals.learned(y).forward(y)
    assert_array_equal(Marginals.learned(y + origin).forward(y + origin), plain)
    assert_allclose(Marginals.learned(unit * y).forward(unit * y), plain, atol=1e-7)
    assert_allclose([plain.mean(), plain.std()], [0, 1], atol=1e-6)


@held
@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=10),
    st.integers(-150, 150),
    st.sampled_from([None, "yeo-johnson", "normal-score"]),
)
def test_standardising_is_undone_in_any_unit(values, power, transform):
    y = 10.0**power * np.array(values, float)[:, None]
    marginals = Marginals.learned(y, transform)
    z = marginals.forward(y)
    assert np.all(np.isfinite(z))
    assert_allclose(marginals.to_user(z), y, rtol=1e-6, atol=1e-9 * np.ptp(y))


@held
@given(st.integers(1, 6), st.integers(0, 14), st.floats(-100, 100), seeds)
def test_jitter_is_the_least_that_works_or_an_error(n, power, size, seed):
    """A matrix with eigenvalues 1 and −10⁻ᵖ, of any size: factored, or refused in words."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n + 1, n + 1)))[0]
    values = np.ones(n + 1)
    values[0] = -(10.0**-power)
    A = 10.0**size * (Q * values) @ Q.T
    found = factor((A + A.T) / 2)
    jitter = float(found.jitter)
    if np.isnan(jitter):
        assert 10.0**-power > 0.1 * JITTERS[-1]
        with np.testing.assert_raises_regex(NumericalError, "covariance of it is not positive"):
            found.checked("covariance of it")
    else:
        assert jitter in JITTERS
        assert 10.0**-power < 10 * max(jitter, 1e-13)


@held
@given(st.integers(1, 4), st.integers(0, 60), st.sampled_from([np.nan, np.inf, -np.inf]), seeds)
def test_a_fault_in_one_search_leaves_the_others_as_they_were(B, at, fault, seed):
    """From some call on the first problem has no value; the rest go their way, bit for bit."""
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
    assert_array_equal(broken.cut_off[1:], False)
    assert np.isfinite(broken.x).all()
    # Whoever is cut off keeps the best point and says so; whoever had ended is not touched.
    assert broken.cut_off[0] != bool(broken.converged[0])
    assert at == 0 or broken.value[0] <= bowl(np.zeros((1, 3)), np.array([0]))[0][0]


@held
@given(worlds(missing=False), st.sampled_from([-9999.0, -999.0, 1e20]), st.integers(1, 3))
def test_a_code_far_outside_is_named_and_honest_readings_are_not(made, code, times):
    assume(len(made.Y) > times + 1)
    names = [f"output {d}" for d in range(made.Y.shape[1])]
    assert list(about_outputs(made.Y, names, STEPS[: len(names)])) == []
    coded = made.Y.copy()
    coded[:times, 0] = code
    said = list(about_outputs(coded, names, STEPS[: len(names)]))
    assert len(said) >= 1
    assert said[0].startswith(f"Output 'output 0' holds {code:g} ({times} of {len(coded)} values)")


@held
@given(st.floats(-180, 180), st.floats(-60, 60), seeds)
def test_turning_the_globe_turns_nothing_between_points_on_it(turn, lat, seed):
    rng = np.random.default_rng(seed)
    lon, lats = rng.uniform(-5, 5, 6), lat + rng.uniform(-5, 5, 6)
    turned = (lon + turn + 180) % 360 - 180
    points = on_sphere(turned, lats), on_sphere(lon, lats)
    far, near = (np.linalg.norm(p[:, None] - p, axis=-1) for p in points)
    assert_allclose(far, near, atol=1e-8)
    assert list(about_inputs(on_sphere(turned, lats), ["x", "y", "z"], STEPS)) == []


@held
@given(seeds, st.sampled_from(["masked", "NA", "None", "nullable"]))
def test_every_mark_of_a_missing_value_is_nan(seed, mark):
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
