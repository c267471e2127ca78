"""
Where is cadmium above its limit?
=================================

A map of the probability that the soil holds more than 0.8 mg/kg of cadmium, and of where that is
still open. A prediction just below the limit with a wide interval is no all-clear.
"""

import matplotlib.pyplot as plt
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR
from emgpr.datasets import load_jura

jura = load_jura()
places, metals = jura.train[["Xloc", "Yloc"]], jura.train[["Cd", "Ni"]]
model = EMGPR.paper(kernel=Matern(nu=0.5), batch_size=45, transform="log", random_state=0)
model.fit(places, metals)

# %%
# With ``include_noise=False`` it is the soil of the place that is asked about, not one sample.

grid = jura.grid
model.set_params(conditioning=30)  # from the nearest sites: quick, and enough for a map
chance = model.predict_exceedance(grid[["Xloc", "Yloc"]], [0.8, 50.0], include_noise=False)[:, 0]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
shown = {"x": grid["Xloc"], "y": grid["Yloc"], "marker": "s", "s": 8, "linewidths": 0}
drawn = left.scatter(c=chance, cmap="cividis", vmin=0, vmax=1, **shown)
figure.colorbar(drawn, ax=left, label="probability of more than 0.8 mg/kg")
above = metals["Cd"] > 0.8
left.scatter(*places[above].to_numpy().T, s=10, c="white", edgecolors="black", linewidths=0.5)
left.scatter(*places[~above].to_numpy().T, s=10, c="black")
left.set(title="Cadmium (sites above the limit are white)", xlabel="Xloc (km)", ylabel="Yloc (km)")

verdict = (chance > 0.05).astype(int) + (chance > 0.95)
colours = plt.get_cmap("cividis", 3)
right.scatter(c=verdict, cmap=colours, vmin=-0.5, vmax=2.5, **shown)
for level, name in enumerate(["below, 95% sure", "open", "above, 95% sure"]):
    share = (verdict == level).mean()
    right.scatter([], [], color=colours(level), marker="s", label=f"{name}: {share:.0%}")
right.set(title="What can be said", xlabel="Xloc (km)")
right.legend(loc="upper left", fontsize="small")
for ax in (left, right):
    ax.set_aspect("equal")
