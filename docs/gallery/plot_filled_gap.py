"""
Long gaps in a series and in a map
==================================

This example fills two gaps in which other outputs are known: a sensor fails for half of a week, and
a metal was not analysed in a third of a region. The prediction of `EMGPR` is a weighted mixture of
three models: the output's own process (a Gaussian process of this output alone), the joint model of
all outputs, and a regression on the outputs that are known at the location. The weights depend on
the distance from the output's own readings.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from emgpr import EMGPR
from emgpr.datasets import load_jura

rng = np.random.default_rng(5)
hours = np.arange(0.0, 168.0)
weather = np.cumsum(rng.normal(size=168)) / 3 + 3 * np.sin(2 * np.pi * hours / 24)
series = pd.DataFrame(
    {"roof": 18 + weather, "court": 16 + 0.7 * weather, "river": 12 + 0.4 * weather}
)
series += rng.normal(size=series.shape) * 0.3
truth = series["court"].copy()
failed = (hours >= 60) & (hours < 140)
series.loc[failed, "court"] = np.nan
times = pd.DataFrame({"hour": hours})
model = EMGPR(random_state=0).fit(times, series)

# %%
# The readings of the other two sensors are in the training table, so they need not be passed again.
# `explain=True` adds columns with the weights of the three models.

filled = model.predict_frame(times, quantiles=[0.025, 0.975], explain=True)
fig, (top, bottom) = plt.subplots(
    2, 1, sharex=True, figsize=(8, 5), height_ratios=[2, 1], layout="constrained"
)
top.fill_between(
    hours, filled["court_q0.025"], filled["court_q0.975"], alpha=0.3, label="95% interval"
)
top.plot(hours, filled["court"], label="prediction")
top.plot(hours[failed], truth[failed], ".", color="0.3", ms=3, label="withheld readings")
top.plot(hours[~failed], truth[~failed], ".", color="k", ms=4, label="readings")
top.set(ylabel="court (°C)")
top.margins(y=0.2)
top.legend(ncols=4, fontsize="small", loc="upper left")
weights = [filled[f"court_weight_{name}"] for name in ("own", "joint", "regression")]
bottom.stackplot(hours, *weights, labels=["own process", "joint model", "regression"])
bottom.set(xlabel="hour", ylabel="weight", ylim=(0, 1), xlim=(0, 167))
bottom.legend(ncols=3, fontsize="small", loc="lower left")

# %%
# The second gap is spatial: cadmium is withheld in the western third of the training sites of the
# Jura data.

jura = load_jura()
sites, metals = jura.train[list(jura.coordinates)], jura.train[["Cd", "Ni", "Zn"]].copy()
west = (sites["Xloc"] < sites["Xloc"].quantile(1 / 3)).to_numpy()
withheld = metals.loc[west, "Cd"]
metals.loc[west, "Cd"] = np.nan
model = EMGPR(random_state=0).fit(sites, metals)
predicted = model.predict_frame(sites[west], quantiles=[0.025, 0.975], explain=True)
low, high = predicted["Cd_q0.025"], predicted["Cd_q0.975"]
inside = ((withheld >= low) & (withheld <= high)).mean()
print(f"inside 95% intervals: {inside:.0%}")
print(predicted.filter(like="Cd_weight").mean().round(2))

# %%

fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
scale = {"vmin": 0, "vmax": 3, "cmap": "viridis", "s": 18}
for ax, values, title in zip(
    axes, (withheld, predicted["Cd"]), ("measured, but withheld", "predicted"), strict=True
):
    ax.scatter(*sites[~west].to_numpy().T, c=metals.loc[~west, "Cd"], marker="s", **scale)
    drawn = ax.scatter(*sites[west].to_numpy().T, c=values, edgecolors="k", lw=0.5, **scale)
    ax.set_title(f"Cd in the west: {title}", fontsize="medium")
    ax.set(xlabel="Xloc (km)", aspect="equal")
axes[0].set_ylabel("Yloc (km)")
fig.colorbar(drawn, ax=axes, label="Cd (mg/kg)", shrink=0.8)
plt.show()
