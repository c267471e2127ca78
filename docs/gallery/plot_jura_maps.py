"""
Metals in the soil of the Swiss Jura
====================================

This example draws maps of three heavy metals from readings at 259 sites, and maps of their
uncertainty.
"""

from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR, plots
from emgpr.datasets import load_jura

# %%
# The concentrations are positive and skewed, so the model is fitted to their logarithms;
# predictions are returned in mg/kg. ``kernel="auto"`` would choose the same exponential covariance
# (Matérn 1/2).

jura = load_jura()
sites, metals = jura.train[["Xloc", "Yloc"]], jura.train[["Cd", "Ni", "Zn"]]
model = EMGPR.paper(kernel=Matern(nu=0.5), batch_size=45, output_transform="log", random_state=0)
model.fit(sites, metals)

# %%
# The upper row shows the predictions, with the readings in the same colours; the lower row shows
# the standard deviation of a new reading. With a log transform, the uncertainty grows with the
# value: it is largest where concentrations are high and sites are far away.

axes = plots.maps(model, jura.grid, units=jura.units)
