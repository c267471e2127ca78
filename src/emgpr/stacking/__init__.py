"""Stacking: every output is predicted by a mixture of candidate models.

An output is predicted in one of three situations: nothing is known at the location; other outputs
are known there; or other outputs are known, and the output itself was not measured anywhere near (a
gap). Different models are the most accurate. The candidates are

- "own": the output's own process, which uses its own readings only,
- "joint": the linear model of coregionalisation of all outputs,
- "regression": the regression of the output on the outputs that are known at the location.

Their weights maximise the logarithmic score of left-out readings in the same situation
(`emgpr.mixture_weights`): single readings near other readings of the output, and readings in gaps
that are made like those in the table. In between, the weights change gradually with the distance
from the output's readings.
"""

from emgpr.stacking.fit import Stack, fit_stack
from emgpr.stacking.gaps import gap_folds, split_into_blocks
from emgpr.stacking.patterns import Pattern, known_sets, patterns_in_sample
from emgpr.stacking.posterior import StackedPosterior
from emgpr.stacking.weights import CANDIDATES, CandidateWeights

__all__ = [
    "CANDIDATES",
    "CandidateWeights",
    "Pattern",
    "Stack",
    "StackedPosterior",
    "fit_stack",
    "gap_folds",
    "known_sets",
    "patterns_in_sample",
    "split_into_blocks",
]
