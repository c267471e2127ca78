"""Declaration of estimator parameters as annotated fields, and errors for their old names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

Estimator = TypeVar("Estimator", bound=type)

RENAMED = {"transform": "output_transform"}


@dataclass_transform(field_specifiers=(field,))
def declare_parameters(cls: Estimator) -> Estimator:
    """Add a constructor that stores the annotated fields of a class and does nothing else.

    Equality and repr remain those of scikit-learn.
    """
    dataclass(eq=False, repr=False)(cls)
    cls.__init__ = _reject_old_names(cls.__init__)  # type: ignore[misc]
    return cls


def _reject_old_names(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def checked(self: BaseEstimator, *args: Any, **params: Any) -> None:
        check_renamed(type(self).__name__, params)
        init(self, *args, **params)

    return checked


def check_renamed(estimator: str, params: Mapping[str, Any]) -> None:
    """Raise a TypeError that gives the new name if a parameter is passed by its old name."""
    for name in RENAMED.keys() & params.keys():
        raise TypeError(
            f"{estimator} has no parameter {name!r}; it is now called {RENAMED[name]!r}."
        )


def with_new_names(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters from an old model file under their new names."""
    return {RENAMED.get(name, name): value for name, value in params.items()}
