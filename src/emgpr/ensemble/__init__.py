"""The ensemble: how the sites are dealt to the members, and how their beliefs are joined."""

from emgpr.ensemble.combine import RULES, Rule, average, join, mixture
from emgpr.ensemble.contract import check_rule
from emgpr.ensemble.partition import PARTITIONS, split_sites
from emgpr.ensemble.products import bcm, gpoe, grbcm, poe, rbcm, rebase
from emgpr.ensemble.transport import barycenter

__all__ = [
    "PARTITIONS",
    "RULES",
    "Rule",
    "average",
    "barycenter",
    "bcm",
    "check_rule",
    "gpoe",
    "grbcm",
    "join",
    "mixture",
    "poe",
    "rbcm",
    "rebase",
    "split_sites",
]
