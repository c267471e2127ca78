"""The ensemble: division of the sites among its members, and combination of their predictions."""

from emgpr.ensemble.averages import average, mixture
from emgpr.ensemble.barycenters import barycenter
from emgpr.ensemble.base import Rule
from emgpr.ensemble.checks import check_rule
from emgpr.ensemble.combine import join, keeps_members
from emgpr.ensemble.failed_members import (
    EnsembleWarning,
    drop_failed_members,
    warn_failed_members,
)
from emgpr.ensemble.partition import PARTITIONS, split_sites
from emgpr.ensemble.products_of_experts import bcm, gpoe, grbcm, poe, rbcm, rebase
from emgpr.ensemble.registry import RULES
from emgpr.ensemble.weighted_mixtures import (
    replace_unused,
    replace_unused_outputs,
    weighted_mixture,
)

__all__ = [
    "PARTITIONS",
    "RULES",
    "EnsembleWarning",
    "Rule",
    "average",
    "barycenter",
    "bcm",
    "check_rule",
    "drop_failed_members",
    "gpoe",
    "grbcm",
    "join",
    "keeps_members",
    "mixture",
    "poe",
    "rbcm",
    "rebase",
    "replace_unused",
    "replace_unused_outputs",
    "split_sites",
    "warn_failed_members",
    "weighted_mixture",
]
