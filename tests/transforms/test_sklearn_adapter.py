"""scikit-learn's transformers: where they can be inverted, and which are rejected."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from emgpr.transforms import FittedTransformer, OutputScaler
from emgpr.transforms.sklearn_adapter import check_invertible

READINGS = np.exp(np.random.default_rng(5).normal(1.0, 0.7, size=60))
QUANTILES = QuantileTransformer(n_quantiles=20, output_distribution="normal")


def fit(transformer, values=READINGS):
    check_invertible(transformer, "Cd")
    return FittedTransformer.from_transformer(transformer, values, "Cd")


def test_predictions_beyond_the_range_of_the_inverse_are_moved_to_its_end():
    root = fit(FunctionTransformer(lambda y: -np.sqrt(y), np.square))
    assert_allclose(root.inverse(np.array([-9.0])), root.lowest)
    assert root.lowest < 0.01  # the square of almost zero
    quantiles = fit(QUANTILES)
    ends = quantiles.inverse(np.array([-9.0, 9.0]))
    assert_allclose(ends, [READINGS.min(), READINGS.max()])
    beyond = np.array([READINGS.min() - 1, READINGS.max() + 1])
    assert_allclose(quantiles.forward(beyond), [-np.inf, np.inf])
    assert (quantiles.log_slope(beyond) == -np.inf).all()


def test_a_power_below_zero_ends_where_its_inverse_diverges():
    values = READINGS**4
    transform = fit(PowerTransformer(), values)
    assert transform.transformer.lambdas_[0] < 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(transform.transformer.inverse_transform([[30.0]])).all()
    furthest = transform.inverse(np.array([30.0]))[0]
    assert values.max() < furthest < values.max() + 1001 * np.ptp(values)


def test_values_that_a_transformer_rejects_are_below_its_domain():
    box_cox = fit(PowerTransformer(method="box-cox"))
    assert_allclose(box_cox.forward(np.array([-1.0, 0.0])), -np.inf)


def strict_root(y):
    if (y < 0).any():
        raise ValueError("negative")
    return np.sqrt(y)


def test_a_transformer_that_raises_for_some_values_ends_before_them():
    """The inverse gives negative values below 0, for which the transformer raises."""
    transform = fit(FunctionTransformer(strict_root, lambda u: u * np.abs(u), check_inverse=False))
    assert 0 <= transform.low < 0.1
    assert_allclose(transform.inverse(np.array([-1.0, 2.0])), [transform.lowest, 4.0])
    assert transform.n_parameters == 0


def test_a_transformer_is_cloned_and_fitted_to_each_output(rng):
    Y = np.exp(rng.normal(size=(40, 2)))
    given = PowerTransformer()
    one, other = OutputScaler.fit(Y, given).transforms
    assert not hasattr(given, "lambdas_")
    assert one.transformer is not other.transformer


def test_pipelines_that_return_frames_are_transformers(rng):
    Y = np.exp(rng.normal(size=(40, 2)))
    given = make_pipeline(StandardScaler(), PowerTransformer()).set_output(transform="pandas")
    scaler = OutputScaler.fit(Y, given)
    assert_allclose(scaler.to_original(scaler.standardise(Y)), Y)


def test_values_beyond_the_fitted_range_are_rejected_by_output_and_row(rng):
    Y = np.exp(rng.normal(size=(40, 2)))
    scaler = OutputScaler.fit(Y, QUANTILES, names=["Cd", "Zn"])
    Y[7, 1] *= 1e6
    with pytest.raises(ValueError, match=r"'Zn', QuantileTr.* 1 values.*row 7 .*normal-score"):
        scaler.standardise(Y)


def unchecked(*functions):
    return FunctionTransformer(*functions, check_inverse=False)


REJECTED = {
    "no transformer": (3, "'Cd', 3, has no fit; expected a scikit-learn transformer"),
    "no inverse": (Normalizer(), "has no inverse_transform; expected a scikit-learn"),
    "a class": (StandardScaler, "is a class, not an object"),
    "two columns": (
        unchecked(lambda y: np.hstack([y, y**2]), lambda u: u[:, :1]),
        r"'Cd'.* shape \(60, 2\); expected \(60, 1\)",
    ),
    "steps": (
        KBinsDiscretizer(encode="ordinal", strategy="uniform"),
        "not strictly monotone between .* the range of the data",
    ),
    "not monotone": (unchecked(np.sin, np.arcsin), "not strictly monotone"),
    "undefined": (unchecked(lambda y: np.log(y - 1), np.exp), "not strictly monotone"),
    "wrong inverse": (unchecked(np.log), "is not the inverse of its transform.*inverse_func"),
    "cannot be fitted": (PCA(n_components=2), "PCA.*cannot be fitted to its values: n_components"),
}


@pytest.mark.parametrize(("transformer", "message"), REJECTED.values(), ids=REJECTED.keys())
def test_a_transformer_that_cannot_be_used_is_rejected_with_the_reason(transformer, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        fit(transformer)


def test_a_quantile_transform_of_equal_values_cannot_be_inverted():
    values = READINGS.copy()
    values[:30] = 0.01
    with pytest.raises(ValueError, match=r'not strictly monotone.*"normal-score", which also'):
        fit(QUANTILES, values)
