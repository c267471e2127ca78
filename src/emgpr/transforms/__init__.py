"""Output transforms, and conversion of predictive distributions to original units.

To add a transform, write a subclass of `base.NamedTransform` and list it in `registry.TRANSFORMS`.
"""

from emgpr.transforms.automatic import LeftOutScores, candidates, choose_transforms
from emgpr.transforms.base import Transform
from emgpr.transforms.builtin import Identity, Log, NormalScore, YeoJohnson
from emgpr.transforms.registry import TRANSFORM_NAMES, TRANSFORMS
from emgpr.transforms.scaler import OutputScaler, is_constant, transform_per_output
from emgpr.transforms.sklearn_adapter import FittedTransformer

__all__ = [
    "TRANSFORMS",
    "TRANSFORM_NAMES",
    "FittedTransformer",
    "Identity",
    "LeftOutScores",
    "Log",
    "NormalScore",
    "OutputScaler",
    "Transform",
    "YeoJohnson",
    "candidates",
    "choose_transforms",
    "is_constant",
    "transform_per_output",
]
