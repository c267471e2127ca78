"""Output transforms, and conversion of predictive distributions to original units.

To add a transform, write a subclass of `base.NamedTransform` and list it in `registry.TRANSFORMS`.
"""

from emgpr.transforms.automatic import LeftOutScores, candidates, choose_transforms
from emgpr.transforms.base import Transform
from emgpr.transforms.bounded import Bounded, Link, PointMass
from emgpr.transforms.builtin import Identity, Log, NormalScore, YeoJohnson
from emgpr.transforms.compositions import Composition, check_compositions, find_compositions
from emgpr.transforms.location_scale import is_constant
from emgpr.transforms.output_bounds import bounds_per_output, check_output_bounds
from emgpr.transforms.per_output import transform_per_output, transforms_to_fit
from emgpr.transforms.registry import TRANSFORM_NAMES, TRANSFORMS
from emgpr.transforms.scaler import OutputScaler
from emgpr.transforms.sklearn_adapter import FittedTransformer

__all__ = [
    "TRANSFORMS",
    "TRANSFORM_NAMES",
    "Bounded",
    "Composition",
    "FittedTransformer",
    "Identity",
    "LeftOutScores",
    "Link",
    "Log",
    "NormalScore",
    "OutputScaler",
    "PointMass",
    "Transform",
    "YeoJohnson",
    "bounds_per_output",
    "candidates",
    "check_compositions",
    "check_output_bounds",
    "choose_transforms",
    "find_compositions",
    "is_constant",
    "transform_per_output",
    "transforms_to_fit",
]
