"""Output transforms, and how a belief travels back through them."""

from emgpr.transforms.choice import Held, candidates, choose_transforms
from emgpr.transforms.fitted import Fitted
from emgpr.transforms.maps import (
    Identity,
    Log,
    Map,
    NormalScore,
    YeoJohnson,
    is_constant,
)
from emgpr.transforms.marginals import NAMED, Marginals, one_each

__all__ = [
    "NAMED",
    "Fitted",
    "Held",
    "Identity",
    "Log",
    "Map",
    "Marginals",
    "NormalScore",
    "YeoJohnson",
    "candidates",
    "choose_transforms",
    "is_constant",
    "one_each",
]
