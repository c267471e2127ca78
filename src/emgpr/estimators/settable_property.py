"""Properties of fitted estimators that subclasses can replace with values of their own."""

from collections.abc import Callable
from typing import Any


class settable_property:
    """A property that can also be set, as `sklearn.utils.validation.validate_data` does.

    >>> class Estimator:
    ...     @settable_property
    ...     def n_features_in_(self):
    ...         return 2
    >>> estimator = Estimator()
    >>> estimator.n_features_in_
    2
    >>> estimator.n_features_in_ = 3
    >>> estimator.n_features_in_
    3
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        values = vars(instance)
        return values[self.name] if self.name in values else self.compute(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value

    def __delete__(self, instance: Any) -> None:
        vars(instance).pop(self.name, None)
