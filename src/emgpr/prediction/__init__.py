"""What the members believe of new sites, given all readings, a batch of them, or neighbours."""

from emgpr.prediction.condition import Belief, condition, coupled
from emgpr.prediction.neighbours import condition_on_neighbours

__all__ = ["Belief", "condition", "condition_on_neighbours", "coupled"]
