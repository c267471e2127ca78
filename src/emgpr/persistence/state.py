"""Encoding and decoding of supported objects as a JSON tree and arrays.

Plain values and lists are encoded as themselves. All other objects are encoded as a JSON object
with a tag, such as {"kernel": "RBF", "of": {...}}. Names in a tree are looked up in the tables
below, or among the classes and functions passed by the caller. Decoding never imports anything.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from sklearn import pipeline, preprocessing
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from emgpr.persistence.container import ModelFileError
from emgpr.persistence.pandas_index import decode_index, encode_index
from emgpr.spherical import Spherical

Tree = Any  # a value that `json` can write
Array = np.ndarray
NamedObjects = Mapping[str, Any]

KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        sk.CompoundKernel, sk.ConstantKernel, sk.DotProduct, sk.Exponentiation, sk.ExpSineSquared,
        sk.Matern, sk.PairwiseKernel, sk.Product, sk.RationalQuadratic, sk.RBF, sk.Sum,
        sk.WhiteKernel, Spherical,
    )
}  # fmt: skip
ESTIMATORS = {
    estimator.__name__: estimator
    for estimator in (
        GaussianProcessRegressor, pipeline.Pipeline, preprocessing.FunctionTransformer,
        preprocessing.MaxAbsScaler, preprocessing.MinMaxScaler, preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer, preprocessing.RobustScaler, preprocessing.StandardScaler,
    )
}  # fmt: skip
BIT_GENERATORS = {
    name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
}
# Types are identified by name, since two type codes stood for int64 before NumPy 2.
SCALARS = {(name := np.dtype(code).name): np.dtype(name).type for code in "?bBhHiIlLqQefd"}
# An index has more rows than this only if the file's arrays have at least one byte for each row.
MAX_ROWS_WITHOUT_ARRAYS = 2**16


@cache
def _ufuncs() -> dict[str, np.ufunc]:
    """Return a dict of the ufuncs in NumPy and SciPy, with their names as keys."""
    return {
        f"{module.__name__}.{name}": function
        for module in (special, np)
        for name, function in vars(module).items()
        if isinstance(function, np.ufunc)
    }


def encode(
    value: Any, records: Iterable[type] = ()
) -> tuple[Tree, dict[str, Array], dict[str, Any]]:
    """Encode a dict; return a tree, arrays, and the user-defined classes and functions in it.

    `records` are the dataclasses whose instances the dict may contain. Raises `ModelFileError` for
    objects that cannot be encoded.

    >>> tree, arrays, own = encode({"kernel": sk.RBF(2.0), "seeds": (1, np.array([0.5]))})
    >>> tree["seeds"]
    {'tuple': [1, {'array': 'seeds[1]'}]}
    >>> decode(tree, arrays)
    {'kernel': RBF(length_scale=2), 'seeds': (1, array([0.5]))}
    """
    encoder = _Encoder(tuple(records))
    return encoder.fields(value, ""), encoder.arrays, encoder.own


def decode(
    tree: Tree,
    arrays: Mapping[str, Array],
    records: Mapping[str, Callable[..., Any]] | None = None,
    own: NamedObjects | None = None,
) -> dict[str, Any]:
    """Return the dict that was encoded as a tree and arrays.

    `records` maps names in the tree to constructors of dataclasses, and `own` maps names to
    user-defined classes and functions.
    """
    return _Decoder(arrays, records or {}, own or {}).fields(tree)


def constructors(records: Iterable[type]) -> dict[str, Callable[..., Any]]:
    """Return a dict of dataclasses whose keys are the names that `encode` uses."""
    return {record.__name__: record for record in records}


class _Encoder:
    def __init__(self, records: tuple[type, ...]) -> None:
        self.records = records
        self.arrays: dict[str, Array] = {}
        self.own: dict[str, Any] = {}

    def fields(self, named: NamedObjects, path: str) -> Tree:
        return {name: self.tree(v, f"{path}.{name}".lstrip(".")) for name, v in named.items()}

    def items(self, values: Iterable[Any], path: str) -> list[Tree]:
        return [self.tree(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def tree(self, value: Any, path: str) -> Tree:
        """Encode a value as a tree; `path` identifies the value in error messages."""
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, str):
            return str(value)
        if type(value) is float:
            return value if isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and value.dtype.name in SCALARS:
            return {"scalar": value.dtype.name, "of": self.tree(value.item(), path)}
        if isinstance(value, list):
            return self.items(value, path)
        if type(value) is tuple:
            return {"tuple": self.items(value, path)}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": self.fields(value, path)}
        if type(value) is dict:
            return {"pairs": self.items([list(pair) for pair in value.items()], path)}
        if isinstance(value, Array):
            return self.array(value, path)
        if isinstance(value, pd.Index):
            return {"index": self.fields(encode_index(value), path)}
        if isinstance(value, pd.Timestamp | pd.Timedelta):
            return {"index": self.fields(encode_index(pd.Index([value])), path), "at": 0}
        return self.object(value, path)

    def array(self, value: Array, path: str) -> Tree:
        if value.dtype.kind in "OU":
            return {"objects": self.items(value.ravel().tolist(), path), "shape": [*value.shape]}
        name = path if path not in self.arrays else f"{path} {len(self.arrays)}"
        self.arrays[name] = value
        return {"array": name}

    def object(self, value: Any, path: str) -> Tree:
        cls = type(value)
        if cls in self.records and is_dataclass(value):
            content = {field.name: getattr(value, field.name) for field in fields(value)}
            return {"record": cls.__name__, "of": self.fields(content, path)}
        if isinstance(value, sk.Kernel):
            params = value.get_params(deep=False)
            return {**self.named("kernel", cls, KERNELS), "of": self.fields(params, path)}
        if isinstance(value, np.random.Generator):
            bits = value.bit_generator
            return {"generator": type(bits).__name__, "of": self.tree(bits.state, path)}
        if isinstance(value, np.random.RandomState):
            name, state = type(value._bit_generator).__name__, value.get_state(legacy=False)
            return {"random_state": name, "of": self.tree(state, path)}
        if isinstance(value, np.ufunc):
            for name, function in _ufuncs().items():
                if function is value:
                    return {"ufunc": name}
        if isinstance(value, FunctionType) and value.__name__.isidentifier():
            return self.named("function", value, {})
        if isinstance(value, GaussianProcessRegressor) and hasattr(value, "kernel_"):
            raise _cannot_store(
                path,
                value,
                "it is fitted, but the model contains the fitted parameters already; replace it "
                "with an unfitted clone, using set_params",
            )
        if hasattr(value, "get_params") and not isinstance(value, type):
            content = vars(value)
            return {**self.named("estimator", cls, ESTIMATORS), "of": self.fields(content, path)}
        raise _cannot_store(
            path,
            value,
            "it is not a number, string, array, scikit-learn kernel or transformer, nor a named "
            "class or function; replace it with one of these, or pickle the model",
        )

    def named(self, tag: str, value: Any, table: NamedObjects) -> Tree:
        """Return a tag with an object's name, marked as user-defined unless it is in the table."""
        name = value.__name__
        if table.get(name) is value:
            return {tag: name}
        if self.own.setdefault(name, value) is not value:
            raise ModelFileError(
                f"Two user-defined classes or functions have the name {name}; rename one of them."
            )
        return {tag: name, "own": True}


def _cannot_store(path: str, value: Any, why: str) -> ModelFileError:
    return ModelFileError(f"{path} cannot be stored: {value!r} ({why}).")


class _Decoder:
    def __init__(
        self,
        arrays: Mapping[str, Array],
        records: Mapping[str, Callable[..., Any]],
        own: NamedObjects,
    ) -> None:
        self.arrays, self.records, self.own = arrays, records, own
        self.tags: dict[str, Callable[[Tree], Any]] = {
            "float": lambda tree: {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[tree["float"]],
            "scalar": lambda tree: SCALARS[tree["scalar"]](self.value(tree["of"])),
            "tuple": lambda tree: tuple(self.items(tree["tuple"])),
            "dict": lambda tree: self.fields(tree["dict"]),
            "pairs": lambda tree: dict(self.items(tree["pairs"])),
            "array": lambda tree: self.arrays[tree["array"]],
            "objects": self.objects,
            "index": self.index,
            "record": lambda tree: self.construct(tree, "record", self.records),
            "kernel": lambda tree: self.construct(tree, "kernel", KERNELS),
            "generator": self.generator,
            "random_state": self.random_state,
            "ufunc": lambda tree: _ufuncs()[tree["ufunc"]],
            "function": lambda tree: self.named(tree, "function", {}),
            "estimator": self.estimator,
        }

    def fields(self, tree: Tree) -> dict[str, Any]:
        if not isinstance(tree, dict):
            raise ModelFileError(f"it contains {type(tree).__name__!r} where a dict is expected")
        return {name: self.value(value) for name, value in tree.items()}

    def items(self, tree: Tree) -> list[Any]:
        # Only a list is accepted, since other objects could claim any number of items.
        if not isinstance(tree, list):
            raise ModelFileError(f"it contains {type(tree).__name__!r} where a list is expected")
        return [self.value(item) for item in tree]

    def value(self, tree: Tree) -> Any:
        if isinstance(tree, list):
            return self.items(tree)
        if not isinstance(tree, dict):
            return tree
        tag = next(iter(tree), "")
        if tag not in self.tags:
            raise ModelFileError(
                f"it contains a {tag!r}, which is unknown to this version of emgpr"
            )
        return self.tags[tag](tree)

    def objects(self, tree: Tree) -> Array:
        values = self.items(tree["objects"])
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array.reshape(tree["shape"])

    def index(self, tree: Tree) -> Any:
        n_bytes = sum(array.nbytes for array in self.arrays.values())
        index = decode_index(self.fields(tree["index"]), max(MAX_ROWS_WITHOUT_ARRAYS, n_bytes))
        return index[0] if "at" in tree else index

    def construct(self, tree: Tree, tag: str, table: NamedObjects) -> Any:
        return self.named(tree, tag, table)(**self.fields(tree["of"]))

    def estimator(self, tree: Tree) -> Any:
        cls = self.named(tree, "estimator", ESTIMATORS)
        estimator = cls.__new__(cls)
        vars(estimator).update(self.fields(tree["of"]))
        return estimator

    def generator(self, tree: Tree) -> np.random.Generator:
        bits = BIT_GENERATORS[tree["generator"]](0)
        bits.state = self.value(tree["of"])
        return np.random.Generator(bits)

    def random_state(self, tree: Tree) -> np.random.RandomState:
        random_state = np.random.RandomState(BIT_GENERATORS[tree["random_state"]](0))
        random_state.set_state(self.value(tree["of"]))
        return random_state

    def named(self, tree: Tree, tag: str, table: NamedObjects) -> Any:
        """Look up an object by its name in the table or among the user-defined objects."""
        name, own = tree[tag], tree.get("own", False)
        found = (self.own if own else table).get(name)
        if found is not None and (own is False or _matches(tag, found)):
            return found
        raise ModelFileError(
            f"it uses {name}, a {tag} that is not part of emgpr or scikit-learn; if you trust it, "
            f"use load(path, classes=[{name}])"
            if own
            else f"it uses {name!r}, but there is no such {tag}"
        )


def _matches(tag: str, found: Any) -> bool:
    """Tell whether a user-defined object is a kernel, estimator or function, as the tag says."""
    if tag == "kernel":
        return isinstance(found, type) and issubclass(found, sk.Kernel)
    return isinstance(found, type) if tag == "estimator" else isinstance(found, FunctionType)
