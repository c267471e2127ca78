"""Summary of a table before a fit, and estimates of the time and memory that the fit needs."""

from emgpr.planning.approximations import describe_approximations
from emgpr.planning.cokriging_costs import plan_cokriging
from emgpr.planning.convolution_costs import plan_convolution
from emgpr.planning.first_look import TableSummary
from emgpr.planning.fit_costs import plan_fit
from emgpr.planning.network_costs import plan_network
from emgpr.planning.plan import Plan, Step, format_bytes

__all__ = [
    "Plan",
    "Step",
    "TableSummary",
    "describe_approximations",
    "format_bytes",
    "plan_cokriging",
    "plan_convolution",
    "plan_fit",
    "plan_network",
]
