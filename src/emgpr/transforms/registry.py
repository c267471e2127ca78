"""The transforms that can be requested by name. To add another, list its class here.

"softplus" is the identity away from the bounds of an output (see `emgpr.transforms.bounded`).
"""

from emgpr.transforms.base import NamedTransform
from emgpr.transforms.builtin import Identity, Log, NormalScore, YeoJohnson

TRANSFORMS: dict[str | None, type[NamedTransform]] = {
    None: Identity,
    "softplus": Identity,
    "log": Log,
    "yeo-johnson": YeoJohnson,
    "normal-score": NormalScore,
}
TRANSFORM_NAMES = tuple(TRANSFORMS)
