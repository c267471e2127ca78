"""Parameters of estimators: declared as annotated fields, and refused by their old names."""

from dataclasses import KW_ONLY, field

import pytest
from sklearn.base import BaseEstimator, clone

from emgpr.declared_parameters import check_renamed, declare_parameters, with_new_names


@declare_parameters
class Base(BaseEstimator):
    kernel: str | None = None
    _: KW_ONLY
    output_transform: str | None = None
    max_iter: int = 120
    fitted_: int = field(init=False)


@declare_parameters
class Derived(Base):
    _: KW_ONLY
    rank: int = 1
    max_iter: int = 250


def test_fields_become_parameters_of_the_constructor():
    model = Derived("rbf", rank=2)
    assert model.get_params() == {
        "kernel": "rbf",
        "max_iter": 250,
        "output_transform": None,
        "rank": 2,
    }
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(model, "fitted_")
    with pytest.raises(TypeError, match="positional"):
        Derived("rbf", None)


def test_equality_and_repr_are_those_of_scikit_learn():
    assert repr(Derived(rank=2)) == "Derived(rank=2)"
    assert Derived() != Derived()
    assert len({Derived(), Derived()}) == 2


def test_old_names_are_refused_with_the_new_ones():
    message = "Derived has no parameter 'transform'; it is now called 'output_transform'"
    with pytest.raises(TypeError, match=message):
        Derived(transform="log")
    with pytest.raises(TypeError, match="EMGPR has no parameter 'transform'"):
        check_renamed("EMGPR", {"transform": None, "rank": 2})
    check_renamed("EMGPR", {"output_transform": None})


def test_parameters_of_old_files_get_their_new_names():
    old = {"transform": "log", "rank": 2}
    assert with_new_names(old) == {"output_transform": "log", "rank": 2}
    assert old == {"transform": "log", "rank": 2}
