"""Outputs without negative readings are never predicted to be negative, and stay calibrated.

Set EMGPR_RANDOM_TABLES=300 to fit that many random tables.
"""

import os

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.datasets import jura_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*(smallest|classes|one value only)"),
]
N_TABLES = int(os.environ.get("EMGPR_RANDOM_TABLES", "20"))


def random_field(rng, X):
    """A smooth field plus noise, of mean 0 and variance 1."""
    K = RBF(10 ** rng.uniform(-1.0, 0.0))(X) + 1e-9 * np.eye(len(X))
    f = np.linalg.cholesky(K) @ rng.normal(size=len(X)) + rng.uniform(0, 1) * rng.normal(
        size=len(X)
    )
    return (f - f.mean()) / f.std()


KINDS = {
    "concentration": lambda z, rng: np.exp(rng.uniform(0.1, 2.0) * z),
    "temperature": lambda z, rng: np.maximum(15 + 4 * z, 0.5),
    "rain": lambda z, rng: np.maximum(z - rng.uniform(-1, 1), 0.0) ** rng.uniform(1, 3),
    "percentage": lambda z, rng: 100 / (1 + np.exp(-3 * z)),
    "count": lambda z, rng: rng.poisson(np.exp(1.0 + 0.8 * z)).astype(float),
    "near zero": lambda z, rng: np.abs(z),
}


def survey(seed, N=None):
    rng = np.random.default_rng(seed)
    N = N or int(rng.integers(25, 45))
    X = rng.uniform(size=(N, 2))
    kinds = rng.choice(list(KINDS), size=int(rng.integers(1, 4)), replace=False)
    z = random_field(rng, X)
    Y = {}
    for kind in kinds:
        mixed = 0.7 * z + 0.7 * random_field(rng, X)
        Y[kind] = KINDS[kind](mixed, rng) * 10 ** rng.uniform(-3, 3)
    Y = pd.DataFrame(Y)
    if "percentage" in Y:
        Y["percentage"] *= 100 / max(Y["percentage"].max(), 100)
    return X, Y.mask(rng.uniform(size=Y.shape) < 0.05).fillna({kinds[0]: Y[kinds[0]]})


@pytest.mark.parametrize("seed", range(N_TABLES))
def test_no_prediction_of_a_fitted_model_is_negative(seed):
    X, Y = survey(seed)
    bounds = {"percentage": (0, 100)} if "percentage" in Y else "auto"
    model = EMGPR(random_state=0, max_iter=40, output_bounds=bounds).fit(X, Y)
    new = np.vstack([np.random.default_rng(1).uniform(size=(10, 2)), [[50.0, 50.0]]])
    results = [
        model.predict(new),
        model.predict(new, statistic="mean"),
        model.predict_quantiles(new, [0.001, 0.025, 0.5, 0.975]),
        np.moveaxis(model.sample_y(new, n_samples=50, random_state=0), 1, -1),
    ]
    for result in results:
        assert np.isfinite(result).all()
        assert result.min() >= 0
        if "percentage" in Y:
            assert result[..., Y.columns.get_loc("percentage")].max() <= 100


@pytest.mark.parametrize("transform", ["auto", "yeo-johnson", "normal-score", "softplus", "log"])
def test_metals_of_the_jura_are_positive_with_every_transform(transform):
    jura = jura_table()
    model = IndependentGP(output_transform=transform, random_state=0).fit(
        jura.X[:150], jura.Y[:150]
    )
    assert model.predict_quantiles(jura.X, [1e-4, 0.025]).min() > 0
    assert model.sample_y(jura.X[:20], n_samples=200, random_state=0).min() > 0


@pytest.mark.parametrize("kind", ["concentration", "temperature", "rain", "percentage"])
def test_probability_integral_transforms_are_uniform(kind):
    """Kolmogorov distances of 600 readings; 0.06 has a chance of 0.03 if they are calibrated."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(600, 2))
    z = random_field(rng, X) + 0.4 * rng.normal(size=600)
    y = KINDS[kind](z, rng)
    bounds = (0, 100) if kind == "percentage" else "auto"
    model = IndependentGP("matern32", output_bounds=bounds, n_restarts=2, random_state=0).fit(X, y)
    pit = model.cross_validate().pit.to_numpy().ravel()
    assert len(pit) == 600
    assert kstest(pit, "uniform").statistic < 0.06


def test_negatives_are_possible_where_the_user_says_so():
    X, Y = survey(3, N=30)
    y = np.abs(Y.iloc[:, 0]).fillna(1.0).to_numpy() + 0.01
    for settings in ({"output_transform": None}, {"output_bounds": None}):
        model = IndependentGP(random_state=0, **settings).fit(X, y)
        assert "softplus" not in model.transforms_
        low = model.predict_quantiles(np.array([[50.0, 50.0]]), [1e-9])
        assert low.min() < y.min()
        assert low.min() < 0 or model.transforms_ == ["normal-score"]
    with pytest.raises(ValueError, match="outside its bounds"):
        IndependentGP(output_bounds=(0.0, float(np.median(y)))).fit(X, y)


def test_parts_of_a_whole_stay_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 2))
    parts = np.exp(np.column_stack([random_field(rng, X) for _ in range(3)]))
    Y = pd.DataFrame(
        100 * parts / parts.sum(axis=1, keepdims=True), columns=["sand", "silt", "clay"]
    )
    Y["pH"] = 6 + 0.5 * random_field(rng, X)
    Y.iloc[3, 1] = np.nan
    model = EMGPR(compositions=[["sand", "silt", "clay"]], max_iter=40, random_state=0).fit(X, Y)
    new = rng.uniform(size=(15, 2))
    samples = model.sample_y(new, n_samples=100, random_state=0)[:, :3]
    np.testing.assert_allclose(samples.sum(axis=1), 100, atol=1e-9)
    assert samples.min() >= 0
    assert samples.max() <= 100
    mean = model.predict(new, statistic="mean")[:, :3]
    np.testing.assert_allclose(mean.sum(axis=1), 100, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), model.predict(new, return_std=True)[0])
    np.testing.assert_array_equal(model.predict(new), model.predict_quantiles(new, 0.5))
    assert model.training_data()[1].isna().sum().sum() == 1
    order = ["pH", "clay", "sand", "silt"]
    settings = {"compositions": [["clay", "sand", "silt"]], "output_bounds": {"sand": (0, 100)}}
    other = EMGPR(**settings, max_iter=40, random_state=0).fit(X, Y[order])
    at = [order.index(name) for name in Y]
    for one, moved in zip(
        model.predict(new, return_std=True), other.predict(new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(moved[:, at], one, rtol=1e-7)


def test_models_with_zeros_constants_and_bounds_that_are_reached_are_stored(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(25, 2))
    z = random_field(rng, X)
    Y = np.column_stack([np.maximum(z, 0), np.full(25, 7.0), np.clip(50 + 40 * z, 0, 100), 0 * z])
    model = IndependentGP("rbf", output_bounds=["auto", "auto", (0, 100), "auto"], random_state=0)
    model.fit(X, Y).save(tmp_path / "model.emgpr")
    again = IndependentGP.load(tmp_path / "model.emgpr")
    np.testing.assert_array_equal(
        again.predict_quantiles(X, [0.1]), model.predict_quantiles(X, [0.1])
    )


@pytest.mark.parametrize("columns", [["a", "b"], ["b", "a"]])
def test_one_pair_of_bounds_holds_for_both_of_two_outputs(columns):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(25, 2))
    Y = pd.DataFrame(rng.uniform(1, 99, size=(25, 2)), columns=["a", "b"])[columns]
    for bounds in ((0, 100), (0, None)):
        model = EMGPR.paper(output_transform="softplus", output_bounds=bounds, random_state=0)
        assert model.fit(X, Y).predict_quantiles(X, [1e-9]).min() >= 0
