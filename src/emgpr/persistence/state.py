"""Objects as a JSON tree and arrays, in a closed vocabulary, and back.

Plain values and lists are themselves; whatever else is an object of one tag, such as
{"kernel": "RBF", "of": {...}}. A name found in a tree is looked up in the tables below, or
among the classes and functions that the reader was given; none is ever imported.
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
from emgpr.persistence.labels import put_together, taken_apart

Tree = Any  # as `json` has it
Array = np.ndarray

KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        sk.CompoundKernel, sk.ConstantKernel, sk.DotProduct, sk.Exponentiation, sk.ExpSineSquared,
        sk.Matern, sk.PairwiseKernel, sk.Product, sk.RationalQuadratic, sk.RBF, sk.Sum,
        sk.WhiteKernel,
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
BITS = {
    bits.__name__: bits
    for bits in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}
# The type that the name stands for: before NumPy 2, the C type long long is another int64.
SCALARS = {(name := np.dtype(code).name): np.dtype(name).type for code in "?bBhHiIlLqQefd"}
SHORT = 2**16  # rows of an index; a longer one has at least a byte of the arrays for each


@cache
def _ufuncs() -> dict[str, np.ufunc]:
    """NumPy's and SciPy's functions of numbers, by name."""
    return {
        f"{module.__name__}.{name}": function
        for module in (special, np)
        for name, function in vars(module).items()
        if isinstance(function, np.ufunc)
    }


def encode(
    value: Any, records: Iterable[type] = ()
) -> tuple[Tree, dict[str, Array], dict[str, Any]]:
    """The tree and the arrays of a value, and the user's own classes and functions in it.

    `records` are dataclasses that it may hold. Raises `ModelFileError` with the
    object that is none of the vocabulary.

    >>> tree, arrays, own = encode({"kernel": sk.RBF(2.0), "seeds": (1, np.array([0.5]))})
    >>> tree["seeds"]
    {'tuple': [1, {'array': 'seeds[1]'}]}
    >>> decode(tree, arrays)
    {'kernel': RBF(length_scale=2), 'seeds': (1, array([0.5]))}
    """
    writer = _Writer(tuple(records))
    return writer.fields(value, ""), writer.arrays, writer.own


def decode(
    tree: Tree,
    arrays: Mapping[str, Array],
    records: Iterable[type] = (),
    own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a tree of fields and its arrays stand for."""
    reader = _Reader(arrays, {record.__name__: record for record in records}, own or {})
    return reader.fields(tree)


class _Writer:
    def __init__(self, records: tuple[type, ...]) -> None:
        self.records = records
        self.arrays: dict[str, Array] = {}
        self.own: dict[str, Any] = {}

    def fields(self, named: Mapping[str, Any], where: str) -> Tree:
        return {name: self.tree(v, f"{where}.{name}".lstrip(".")) for name, v in named.items()}

    def items(self, values: Iterable[Any], where: str) -> list[Tree]:
        return [self.tree(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def tree(self, value: Any, where: str) -> Tree:
        """The value, of which `where` tells the user whence it came."""
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, str):
            return str(value)
        if type(value) is float:
            return value if isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and value.dtype.name in SCALARS:
            return {"scalar": value.dtype.name, "of": self.tree(value.item(), where)}
        if isinstance(value, list):
            return self.items(value, where)
        if type(value) is tuple:
            return {"tuple": self.items(value, where)}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": self.fields(value, where)}
        if type(value) is dict:
            return {"pairs": self.items([list(pair) for pair in value.items()], where)}
        if isinstance(value, Array):
            return self.array(value, where)
        if isinstance(value, pd.Index):
            return {"index": self.fields(taken_apart(value), where)}
        if isinstance(value, pd.Timestamp | pd.Timedelta):
            return {"index": self.fields(taken_apart(pd.Index([value])), where), "at": 0}
        return self.object(value, where)

    def array(self, value: Array, where: str) -> Tree:
        if value.dtype.kind in "OU":
            return {"objects": self.items(value.ravel().tolist(), where), "shape": [*value.shape]}
        name = where if where not in self.arrays else f"{where} {len(self.arrays)}"
        self.arrays[name] = value
        return {"array": name}

    def object(self, value: Any, where: str) -> Tree:
        cls = type(value)
        if cls in self.records and is_dataclass(value):
            held = {field.name: getattr(value, field.name) for field in fields(value)}
            return {"record": cls.__name__, "of": self.fields(held, where)}
        if isinstance(value, sk.Kernel):
            held = value.get_params(deep=False)
            return {**self.named("kernel", cls, KERNELS), "of": self.fields(held, where)}
        if isinstance(value, np.random.Generator):
            return self.random(value.bit_generator, "generator", value.bit_generator.state, where)
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            return self.random(value._bit_generator, "random_state", state, where)
        if isinstance(value, np.ufunc):
            for name, function in _ufuncs().items():
                if function is value:
                    return {"ufunc": name}
        if isinstance(value, FunctionType) and value.__name__.isidentifier():
            return self.named("function", value, {})
        if isinstance(value, GaussianProcessRegressor) and hasattr(value, "kernel_"):
            remedy = "what it learned is in the model: set_params with an unfitted clone of it"
            raise _not_stored(where, value, f"it was fitted; {remedy}")
        if hasattr(value, "get_params") and not isinstance(value, type):
            held = vars(value)
            return {**self.named("estimator", cls, ESTIMATORS), "of": self.fields(held, where)}
        raise _not_stored(
            where,
            value,
            "it is no number, text, array, scikit-learn kernel or transformer, nor a class or "
            "function with a name; replace it by one of these, or pickle the model",
        )

    def random(self, bits: Any, kind: str, state: Any, where: str) -> Tree:
        return {kind: type(bits).__name__, "of": self.tree(state, where)}

    def named(self, tag: str, value: Any, table: Mapping[str, Any]) -> Tree:
        """The tag with the name, as one of the user's own unless the table has it."""
        name = value.__name__
        if table.get(name) is value:
            return {tag: name}
        if self.own.setdefault(name, value) is not value:
            raise ModelFileError(
                f"Two classes or functions of yours are called {name}; rename one of them."
            )
        return {tag: name, "own": True}


def _not_stored(where: str, value: Any, why: str) -> ModelFileError:
    return ModelFileError(f"{where} cannot be stored: {value!r} ({why}).")


class _Reader:
    def __init__(
        self, arrays: Mapping[str, Array], records: Mapping[str, type], own: Mapping[str, Any]
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
            "record": self.record,
            "kernel": self.kernel,
            "generator": self.generator,
            "random_state": self.random_state,
            "ufunc": lambda tree: _ufuncs()[tree["ufunc"]],
            "function": lambda tree: self.named(tree, "function", {}),
            "estimator": self.estimator,
        }

    def fields(self, tree: Tree) -> dict[str, Any]:
        if not isinstance(tree, dict):
            raise ModelFileError(
                f"it holds a {type(tree).__name__} where names and values should be"
            )
        return {name: self.value(value) for name, value in tree.items()}

    def items(self, tree: Tree) -> list[Any]:
        # Of a list that is written out: another object may claim to have any number of items.
        if not isinstance(tree, list):
            raise ModelFileError(f"it holds a {type(tree).__name__} where a list should be")
        return [self.value(item) for item in tree]

    def value(self, tree: Tree) -> Any:
        if isinstance(tree, list):
            return self.items(tree)
        if not isinstance(tree, dict):
            return tree
        tag = next(iter(tree), "")
        if tag not in self.tags:
            raise ModelFileError(f"it holds a {tag!r}, which this emgpr does not know")
        return self.tags[tag](tree)

    def objects(self, tree: Tree) -> Array:
        values = self.items(tree["objects"])
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array.reshape(tree["shape"])

    def index(self, tree: Tree) -> Any:
        most = max(SHORT, sum(array.nbytes for array in self.arrays.values()))
        index = put_together(self.fields(tree["index"]), most)
        return index[0] if "at" in tree else index

    def record(self, tree: Tree) -> Any:
        return self.named(tree, "record", self.records)(**self.fields(tree["of"]))

    def kernel(self, tree: Tree) -> sk.Kernel:
        return self.named(tree, "kernel", KERNELS)(**self.fields(tree["of"]))

    def estimator(self, tree: Tree) -> Any:
        cls = self.named(tree, "estimator", ESTIMATORS)
        made = cls.__new__(cls)
        vars(made).update(self.fields(tree["of"]))
        return made

    def generator(self, tree: Tree) -> np.random.Generator:
        return np.random.Generator(self.bits(tree, "generator"))

    def random_state(self, tree: Tree) -> np.random.RandomState:
        made = np.random.RandomState(BITS[tree["random_state"]](0))
        made.set_state(self.value(tree["of"]))
        return made

    def bits(self, tree: Tree, tag: str) -> np.random.BitGenerator:
        made = BITS[tree[tag]](0)
        made.state = self.value(tree["of"])
        return made

    def named(self, tree: Tree, tag: str, table: Mapping[str, Any]) -> Any:
        name, own = tree[tag], tree.get("own", False)
        found = (self.own if own else table).get(name)
        if found is not None and (own is False or _is(tag, found)):
            return found
        raise ModelFileError(
            f"it uses {name}, a {tag} that is not emgpr's or scikit-learn's; if you know it, give "
            f"it: load(path, classes=[{name}])"
            if own
            else f"it uses {name!r}, and there is no such {tag}"
        )


def _is(tag: str, found: Any) -> bool:
    """Whether what the user gave under this name can be what the tag says."""
    if tag == "kernel":
        return isinstance(found, type) and issubclass(found, sk.Kernel)
    return isinstance(found, type) if tag == "estimator" else isinstance(found, FunctionType)
