"""Objects as JSON and arrays: everything in the vocabulary is restored, the rest is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PowerTransformer

from emgpr.persistence import ModelFileError, constructors, decode, encode
from tests.sameness import assert_same


@dataclass(frozen=True)
class Record:
    values: np.ndarray
    label: str


class OwnKernel(sk.RBF):
    """A kernel of the user's."""


class OwnTransformer(TransformerMixin, BaseEstimator):
    """A transformer of the user's, with a fitted attribute."""

    def fit(self, X, y=None):
        self.half_ = np.max(X) / 2
        return self


def own_function(x):
    return x


POSITIVE = np.exp(np.random.default_rng(0).normal(size=(30, 1)))
FITTED = GaussianProcessRegressor(sk.RBF(1.0, "fixed"), alpha=0.1).fit(POSITIVE, POSITIVE)
VALUES = {
    "plain values": [None, True, 3, 2**70, 0.1, "µ"],
    "special floats": [np.nan, np.inf, -np.inf, -0.0],
    "NumPy scalars": [np.float32(0.5), np.int8(-3), np.bool_(True)],
    "containers": {"a": (1, [2, ()]), "b": {None: 1, (1, 2): "pair"}},
    "arrays": [np.arange(6.0).reshape(2, 3), np.array([True]), np.array([], np.uint8)],
    "arrays of objects": np.array([["log", None], [sk.RBF(), 1.5]], dtype=object),
    "time": [pd.Timestamp("2024-01-01", tz="UTC"), pd.Timedelta("1h")],
    "a record": Record(np.ones(2), "ones"),
    "a sum of kernels": 2.0 * sk.RBF(0.5) + sk.Matern([0.3, 1.0], nu=2.5),
    "fixed parameters": sk.RationalQuadratic(0.4, 2.0, "fixed", "fixed") + sk.WhiteKernel(0.1),
    "bounds as an array": sk.RBF(np.ones(2), np.array([[0.1, 10], [0.2, 20]])),
    "an infinite bound": sk.WhiteKernel(0.1, (1e-5, np.inf)),
    "other kernels": sk.Exponentiation(sk.RBF(0.5), 2) + sk.ExpSineSquared(0.5, 3.0),
    "infinitely smooth": sk.Matern(0.5, nu=np.inf),
    "a generator": np.random.default_rng(5),
    "another generator": np.random.Generator(np.random.Philox(5)),
    "a random state": np.random.RandomState(5),
    "a fitted pipeline": make_pipeline(MinMaxScaler((0.1, 1)), PowerTransformer()).fit(POSITIVE),
    "ufuncs": FunctionTransformer(np.arcsinh, special.logit),
    "a regressor": GaussianProcessRegressor(sk.RBF(0.5), alpha=0.1),
}


def round_trip(value, own=None):
    tree, arrays, _ = encode({"value": value}, [Record])
    return decode(json.loads(json.dumps(tree)), arrays, constructors([Record]), own)["value"]


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_restored(case):
    assert_same(round_trip(VALUES[case]), VALUES[case])


def test_a_scalar_of_the_c_type_long_long_is_restored_as_int64():
    assert type(round_trip(np.longlong(2**40))) is np.int64


def test_a_generator_continues_where_it_was():
    rng = np.random.default_rng(5)
    rng.normal(size=3)
    again = round_trip(rng)
    assert again.normal() == rng.normal()


OWN = [OwnKernel(0.4), OwnTransformer().fit(POSITIVE), own_function]


@pytest.mark.parametrize("value", OWN, ids=["kernel", "estimator", "function"])
def test_the_users_own_classes_and_functions_must_be_passed(value):
    definition = value if value is own_function else type(value)
    name = definition.__name__
    assert encode({"value": value})[2] == {name: definition}
    assert_same(round_trip(value, {name: definition}), value)
    with pytest.raises(ModelFileError, match=rf"uses {name}, .*load\(path, classes=\[{name}\]"):
        round_trip(value)
    with pytest.raises(ModelFileError, match=f"uses {name}"):  # another thing of this name
        round_trip(value, {name: 3 if value is own_function else (lambda: None)})


def test_a_class_of_a_known_name_is_not_mistaken_for_it():
    Mine = type("RBF", (OwnKernel,), {})
    assert type(round_trip(Mine(0.4), {"RBF": Mine})) is Mine
    with pytest.raises(ModelFileError, match="uses RBF"):
        round_trip(Mine(0.4))
    Other = type("RBF", (OwnKernel,), {})
    with pytest.raises(ModelFileError, match="user-defined classes or functions have the name RBF"):
        encode({"value": [Mine(0.4), Other(0.4)]})


UNSTORABLE = {
    r"value.*lambda.*named class or function": lambda x: x,
    r"value.func.*lambda": FunctionTransformer(lambda y: y + 1),
    r"value\[0\].*SeedSequence": [np.random.SeedSequence(1)],
    r"value.*is fitted.*unfitted clone": FITTED,
}


@pytest.mark.parametrize("message", UNSTORABLE)
def test_what_cannot_be_stored_is_named_with_a_remedy(message):
    with pytest.raises(ModelFileError, match=message):
        encode({"value": UNSTORABLE[message]})


FORGED = {
    "'str' where a dict is expected": {"dict": "os.system"},
    "'int' where a list is expected": {"tuple": 3},
    "'__reduce__', which is unknown": {"__reduce__": ["os.system", "true"]},
    "there is no such kernel": {"kernel": "system", "of": {}},
    "there is no such estimator": {"estimator": "Popen", "of": {"args": "true"}},
    "there is no such record": {"record": "Path", "of": {}},
    "there is no such function": {"function": "system"},
}


@pytest.mark.parametrize("message", FORGED)
def test_names_in_a_tree_are_only_looked_up(message):
    with pytest.raises(ModelFileError, match=message):
        decode({"value": FORGED[message]}, {})
