"""Whether two objects are equal, to the last bit and name."""

from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import Kernel


def assert_same(one, other, where="model"):
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    elif isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other)
    elif isinstance(one, pd.Index):
        pd.testing.assert_index_equal(one, other, exact="equiv")
    elif isinstance(one, np.random.Generator):
        assert_same(one.bit_generator.state, other.bit_generator.state, where)
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(), other.get_state(), where)
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(one, Kernel):
        assert_same(one.get_params(), other.get_params(), where)
    elif is_dataclass(one):
        for field in fields(one):
            name = field.name
            assert_same(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif hasattr(one, "get_params"):
        assert_same(dict(sorted(vars(one).items())), dict(sorted(vars(other).items())), where)
    else:
        assert one == other or (one != one and other != other), where
