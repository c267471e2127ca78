"""
Where is cadmium above its limit?
=================================

This example maps the probability that the soil contains more than 0.8 mg/kg of cadmium, and shows
where the data are not sufficient to decide. A prediction just below the limit with a wide interval
does not mean that the limit is met.
"""

import matplotlib.pyplot as plt
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR
from emgpr.datasets import load_jura

jura = load_jura()
sites, metals = jura.train[["Xloc", "Yloc"]], jura.train[["Cd", "Ni"]]
settings = {"batch_size": 45, "conditioning": 30, "output_transform": "log", "random_state": 0}
model = EMGPR.paper(kernel=Matern(nu=0.5), **settings).fit(sites, metals)

# %%
# Predictions are conditioned on the 30 nearest readings of each metal, which is fast and sufficient
# for a map. With ``include_noise=False``, the probability refers to the signal at a location,
# without the noise of a single sample.

grid = jura.grid
limits = {"Cd": 0.8, "Ni": 50.0}  # mg/kg
exceedance = model.predict_exceedance(grid[["Xloc", "Yloc"]], limits, include_noise=False)
probability = exceedance[:, 0]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
style = {"x": grid["Xloc"], "y": grid["Yloc"], "marker": "s", "s": 8, "linewidths": 0}
drawn = left.scatter(c=probability, cmap="cividis", vmin=0, vmax=1, **style)
figure.colorbar(drawn, ax=left, label="probability of more than 0.8 mg/kg")
above = metals["Cd"] > 0.8
left.scatter(*sites[above].to_numpy().T, s=10, c="white", edgecolors="black", linewidths=0.5)
left.scatter(*sites[~above].to_numpy().T, s=10, c="black")
left.set(title="Cadmium (sites above the limit are white)", xlabel="Xloc (km)", ylabel="Yloc (km)")

category = (probability > 0.05).astype(int) + (probability > 0.95)
colours = plt.get_cmap("cividis", 3)
right.scatter(c=category, cmap=colours, vmin=-0.5, vmax=2.5, **style)
for level, name in enumerate(["below (95%)", "undecided", "above (95%)"]):
    share = (category == level).mean()
    right.scatter([], [], color=colours(level), marker="s", label=f"{name}: {share:.0%}")
right.set(title="Below or above the limit?", xlabel="Xloc (km)")
right.legend(loc="upper left", fontsize="small")
for ax in (left, right):
    ax.set_aspect("equal")
