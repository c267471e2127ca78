"""The method as scikit-learn estimators: `EMGPR`, and the family it contains."""

from emgpr.estimators.emgpr import EMGPR
from emgpr.estimators.family import ICM, LMC, SLFM, IndependentGP

__all__ = ["EMGPR", "ICM", "LMC", "SLFM", "IndependentGP"]
