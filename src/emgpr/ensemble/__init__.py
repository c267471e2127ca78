"""The ensemble: how the sites are dealt to the members, and how their beliefs are joined."""

from emgpr.ensemble.combine import mixture
from emgpr.ensemble.partition import PARTITIONS, split_sites

__all__ = ["PARTITIONS", "mixture", "split_sites"]
