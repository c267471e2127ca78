"""
Metals in the soil of the Swiss Jura
====================================

Three heavy metals at 259 sites become three maps, and three maps of how far to trust them.
"""

from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR, plots
from emgpr.datasets import load_jura

# %%
# The metals are positive and skewed, so the model works on logarithms; its predictions come back
# in mg/kg. Exponential covariances (Matérn 1/2) are what ``kernel="auto"`` would choose.

jura = load_jura()
places, metals = jura.train[["Xloc", "Yloc"]], jura.train[["Cd", "Ni", "Zn"]]
model = EMGPR.paper(kernel=Matern(nu=0.5), batch_size=45, transform="log", random_state=0)
model.fit(places, metals)

# %%
# Above the predictions with the readings in the same colours, below the standard deviation of a
# new reading. On a logarithmic scale uncertainty grows with the value: it is largest where metals
# are high and sites are far.

axes = plots.maps(model, jura.grid, units=jura.units)
