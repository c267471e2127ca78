"""Comparisons between models by cross-validation, and between approximate and exact models."""

from emgpr.comparison.approximation_report import ApproximationReport
from emgpr.comparison.compare import Comparison, compare

__all__ = ["ApproximationReport", "Comparison", "compare"]
