"""What the members believe of new sites, given all readings, a batch of them, or neighbours."""

from emgpr.prediction.condition import Belief, condition, coupled
from emgpr.prediction.held_out import held_out, held_out_of_batch, held_out_of_neighbours
from emgpr.prediction.latents import condition_latents
from emgpr.prediction.neighbours import condition_on_neighbours, sites_near
from emgpr.prediction.reading import informed, turned_to_readings
from emgpr.prediction.samples import condition_jointly, draw, draw_each, map_between, of_sites

__all__ = [
    "Belief",
    "condition",
    "condition_jointly",
    "condition_latents",
    "condition_on_neighbours",
    "coupled",
    "draw",
    "draw_each",
    "held_out",
    "held_out_of_batch",
    "held_out_of_neighbours",
    "informed",
    "map_between",
    "of_sites",
    "sites_near",
    "turned_to_readings",
]
