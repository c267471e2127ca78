"""scikit-learn's own contract, on every estimator, with none expected to fail."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.arrays import JitterWarning

ESTIMATORS = [EMGPR(), IndependentGP(), ICM(), SLFM(), LMC()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_contract(estimator, check):
    with warnings.catch_warnings():
        # The checks fit pure noise and constant outputs; being told so is right, not a failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", JitterWarning)
        warnings.filterwarnings("ignore", "Output .* has one value only", UserWarning)
        check(estimator)
