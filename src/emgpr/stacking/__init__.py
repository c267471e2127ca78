"""Stacking: every output is predicted by a mixture of candidate models.

A prediction asks one of three questions: about a location where nothing is known; about one where
other outputs are known; or about one where other outputs are known, and the output itself was not
measured anywhere near (a gap). Different models answer them best. The candidates are

- "own": the output's own process, which uses its own readings only,
- "joint": the linear model of coregionalisation of all outputs,
- "regression": the regression of the output on the outputs that are known at the location.

Their weights maximise the logarithmic score of left-out readings in the pattern that is asked
(`emgpr.mixture_weights`): single readings near other readings of the output, and readings in gaps
that are made like those in the table. In between, the weights change gradually with the distance
from the output's readings.
"""

from emgpr.stacking.gaps import gap_folds, split_into_blocks
from emgpr.stacking.posterior import StackedPosterior
from emgpr.stacking.questions import Question, known_patterns, questions_in_sample
from emgpr.stacking.stack import Stack, fit_stack
from emgpr.stacking.weights import CANDIDATES, CandidateWeights

__all__ = [
    "CANDIDATES",
    "CandidateWeights",
    "Question",
    "Stack",
    "StackedPosterior",
    "fit_stack",
    "gap_folds",
    "known_patterns",
    "questions_in_sample",
    "split_into_blocks",
]
