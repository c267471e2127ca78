"""A dict of all combination rules. To add a rule, write it in a new file and list it here."""

from emgpr.ensemble.averages import average, mixture
from emgpr.ensemble.barycenters import barycenter
from emgpr.ensemble.base import Rule
from emgpr.ensemble.products_of_experts import bcm, gpoe, grbcm, poe, rbcm

RULES: dict[str, Rule] = {
    "mean": mixture,
    "average": average,
    "poe": poe,
    "gpoe": gpoe,
    "bcm": bcm,
    "rbcm": rbcm,
    "grbcm": grbcm,
    "barycenter": barycenter,
}
# Rules that do not use the prior, and therefore do not require members with a common prior.
WITHOUT_PRIOR: tuple[Rule, ...] = (average, barycenter)
