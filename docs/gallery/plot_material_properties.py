"""
Cheap and expensive properties of a material
============================================

A simulated alloy has three inputs (two additions and the annealing temperature) and three
properties. Hardness and conductivity take a minute to measure; fatigue strength takes weeks, and is
known for 20 of 80 samples. If the cheap properties of a new sample are measured, the expensive one
can be predicted more accurately.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR

rng = np.random.default_rng(1)
n = 120
samples = pd.DataFrame(
    {"Mg": rng.uniform(0, 1, n), "Si": rng.uniform(0, 1, n), "annealed": rng.uniform(120, 220, n)}
)
ageing = np.exp(-(((samples["annealed"] - 175) / 30) ** 2))
hardening = 2 * np.sqrt(samples["Mg"] * samples["Si"]) * ageing
grains = np.sin(7 * samples["Mg"] - 5 * samples["Si"] + samples["annealed"] / 12)
properties = pd.DataFrame(
    {
        "hardness": 60 + 40 * hardening + 15 * grains + rng.normal(0, 2, n),
        "conductivity": 35 - 8 * hardening + 2 * grains + rng.normal(0, 0.3, n),
        "fatigue": 90 + 30 * hardening + 20 * grains + rng.normal(0, 3, n),
    }
)
measured, new = slice(0, 80), slice(80, n)
known = properties[measured].copy()
known.loc[20:, "fatigue"] = np.nan

# %%
# The kernel has a length-scale for each input, since the inputs have different units. The noise is
# independent, since the properties are measured with different instruments.

model = EMGPR(RBF([1.0, 1.0, 1.0]), noise="independent", output_transform=None, random_state=0)
model.fit(samples[measured], known)

# %%
# For 40 new samples, the expensive property is predicted from the inputs alone, and from the inputs
# and the cheap properties.

cheap = properties[["hardness", "conductivity"]][new]
truth = properties["fatigue"][new].to_numpy()
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for ax, observed in zip(axes, (None, cheap), strict=True):
    mean, std = (p[:, 2] for p in model.predict(samples[new], return_std=True, observed=observed))
    ax.errorbar(truth, mean, yerr=1.96 * std, fmt="o", markersize=4, elinewidth=1)
    ax.axline((90, 90), slope=1, color="black", linewidth=0.8)
    given = "inputs" if observed is None else "inputs, hardness and conductivity"
    error = np.abs(mean - truth).mean()
    ax.set(title=f"from {given}:\nMAE {error:.1f} MPa", xlabel="measured fatigue strength (MPa)")
axes[0].set_ylabel("predicted fatigue strength (MPa)")
