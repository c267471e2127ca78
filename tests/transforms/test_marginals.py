"""From outputs to standardised ones: what may be asked for, and what is refused."""

import pickle
import re

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

from emgpr.prediction import Belief
from emgpr.transforms import (
    NAMED,
    Fitted,
    Identity,
    Log,
    Marginals,
    NormalScore,
    YeoJohnson,
)

NAMES = ["Cd", "Zn"]


@pytest.fixture
def Y(rng):
    Y = np.exp(rng.normal(size=(40, 2))) * [1.0, 1e4]
    Y[3, 0] = np.nan
    return Y


@pytest.mark.parametrize("spec", [*NAMED, PowerTransformer()])
def test_what_the_model_sees_has_mean_zero_and_variance_one(Y, spec):
    marginals = Marginals.learned(Y, spec)
    Z = marginals.forward(Y)
    assert_allclose(np.nanmean(Z, axis=0), 0, atol=1e-7)  # the mean is kept to eight digits
    assert_allclose(np.nanstd(Z, axis=0), 1)
    assert np.isnan(Z[3, 0])
    assert np.isnan(Z).sum() == 1
    assert_allclose(marginals.to_user(Z), Y, rtol=1e-9)
    samples = np.stack([Z, Z])
    assert_allclose(marginals.to_user(samples)[1], Y, rtol=1e-9)


@pytest.mark.parametrize("spec", [*NAMED, PowerTransformer()])
def test_the_jacobian_is_that_of_the_standardised_scale(Y, spec):
    marginals = Marginals.learned(Y, spec)
    at = Y * 1.0001
    h = 1e-7 * at
    differences = (marginals.forward(at + h) - marginals.forward(at - h)) / (2 * h)
    assert_allclose(marginals.log_jacobian(at), np.log(differences), atol=1e-5)
    assert np.isnan(marginals.log_jacobian(Y)[3, 0])


def test_each_output_may_have_its_own(Y):
    kinds = [type(of) for of in Marginals.learned(Y, [None, "normal-score"]).maps]
    assert kinds == [Identity, NormalScore]
    named = Marginals.learned(Y, {"Zn": "yeo-johnson"}, names=NAMES)
    assert [type(of) for of in named.maps] == [Identity, YeoJohnson]
    borrowed = Marginals.learned(Y, {1: PowerTransformer(), "0": "log"})
    assert [type(of) for of in borrowed.maps] == [Log, Fitted]


def test_a_transformer_is_cloned_and_fitted_to_each_output(Y):
    given = PowerTransformer()
    maps = Marginals.learned(Y, given).maps
    assert not hasattr(given, "lambdas_")
    assert maps[0].transformer is not maps[1].transformer


def test_pipelines_and_frames_are_transformers_too(Y):
    given = make_pipeline(StandardScaler(), PowerTransformer()).set_output(transform="pandas")
    marginals = Marginals.learned(Y, given)
    assert_allclose(marginals.to_user(marginals.forward(Y)), Y)


@pytest.mark.parametrize("spec", [*NAMED[:1], *NAMED[2:], PowerTransformer()])
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9])
def test_a_constant_output_is_only_shifted(spec, constant):
    Y = np.full((7, 1), constant)
    marginals = Marginals.learned(Y, spec)
    assert_allclose(marginals.scale, 1.0)
    assert_allclose(marginals.forward(Y + 1.0), 1.0)


def test_a_constant_output_keeps_its_log():
    marginals = Marginals.learned(np.full((4, 1), 5.0), "log")
    assert_allclose(marginals.forward(np.array([[5.0 * np.e]])), 1.0)


@pytest.mark.parametrize("spec", [*NAMED, PowerTransformer()])
def test_it_can_be_stored(Y, spec):
    marginals = Marginals.learned(Y, spec)
    again = pickle.loads(pickle.dumps(marginals))
    assert_allclose(again.forward(Y), marginals.forward(Y))


@pytest.mark.parametrize("bad", [0.0, -2.0])
def test_values_that_have_no_log_are_refused_by_output_and_row(Y, bad):
    Y[[5, 9], 1] = bad
    with pytest.raises(ValueError, match=r"output 'Zn' has 2 .*rows \[5, 9\].*detection limit"):
        Marginals.learned(Y, "log", names=NAMES)
    with pytest.raises(ValueError, match=r"'Zn'.*\[5, 9\]"):
        Marginals.learned(Y[:3], "log").forward(Y, NAMES)


def test_values_beyond_a_borrowed_transformer_are_refused_by_output_and_row(Y):
    given = QuantileTransformer(n_quantiles=10, output_distribution="normal")
    marginals = Marginals.learned(Y, given)
    Y[7, 1] *= 1e6
    with pytest.raises(ValueError, match=r"'Zn', QuantileTr.* 1 values.*rows \[7\].*normal-score"):
        marginals.forward(Y, NAMES)


def unchecked(*functions):
    return FunctionTransformer(*functions, check_inverse=False)


def with_square():
    return unchecked(lambda y: np.hstack([y, y**2]), lambda u: u[:, :1])


REFUSED = {
    "unknown string": ("sqrt", "'sqrt' of output 'Cd'.*'log', 'yeo-johnson', 'normal-score'"),
    "too few": (["log"], "1 transforms for 2 outputs; give one for all"),
    "unknown output": ({"Pb": "log"}, r"names \['Pb'\].*outputs are \['Cd', 'Zn'\]"),
    "no transformer": (3, "'Cd', 3, has no fit; give a scikit-learn transformer"),
    "no inverse": (Normalizer(), "has no inverse_transform; give a scikit-learn"),
    "a class": (StandardScaler, "is a class, not an object"),
    "two columns": ([None, with_square()], r"'Zn'.* shape \(40, 2\); expected \(40, 1\)"),
    "steps": (KBinsDiscretizer(encode="ordinal", strategy="uniform"),
              "not strictly monotone between .* the range of the data"),
    "up and down": (unchecked(np.sin, np.arcsin), "not strictly monotone"),
    "no number": (unchecked(lambda y: np.log(y - 1), np.exp), "not strictly monotone"),
    "not undone": (unchecked(np.log), "does not undo its transform.*inverse_func"),
    "not fitted": (PCA(n_components=2), "'Cd', PCA.*cannot be fitted to its values: n_components"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_done_is_refused_saying_what_can(Y, spec, says):
    with pytest.raises(ValueError, match=re.compile(says, re.DOTALL)):
        Marginals.learned(Y, spec, names=NAMES)


def test_a_quantile_transform_of_equal_values_cannot_be_undone(Y):
    Y[:20, 0] = 0.01
    given = QuantileTransformer(n_quantiles=20, output_distribution="normal")
    with pytest.raises(ValueError, match=r'not strictly monotone.*"normal-score", which takes'):
        Marginals.learned(Y, given)


@pytest.mark.parametrize("q", [[0.0], [0.5, 1.0], [-1.0], [np.nan]])
def test_quantiles_of_no_probability_are_refused(Y, q):
    belief = Belief(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    with pytest.raises(ValueError, match=r"q holds .*; expected probabilities above 0 and below 1"):
        Marginals.learned(Y).quantiles(belief, q)


@pytest.mark.parametrize("threshold", [[1.0], [1.0, 2.0, 3.0], np.ones((1, 2))])
def test_thresholds_of_another_number_of_outputs_are_refused(Y, threshold):
    belief = Belief(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    with pytest.raises(
        ValueError, match=r"threshold has shape .* or one for each of the 2 outputs"
    ):
        Marginals.learned(Y).exceedance(belief, threshold)
