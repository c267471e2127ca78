"""
Predicting a failed channel of a sounder
========================================

The data are a swath of the sounder AMSU-A on the satellite Metop-A. In the eastern half, channel 5
is removed, as if it had failed; channels 4 and 6, which measure the layers of air below and above,
are still available.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR, IndependentGP
from emgpr.datasets import load_amsua

swath = load_amsua()
sites, truth = swath.X, swath.Y[["ch04", "ch05", "ch06"]]
failed = (sites["lon"] > -43).to_numpy()
readings = truth.copy()
readings.loc[failed, "ch05"] = np.nan

# %%
# With ``crs``, longitude and latitude are treated as coordinates on the globe. Two models are
# fitted to the remaining readings: one to all channels jointly, and one to each channel
# independently.

settings = {"kernel": Matern(nu=1.5), "crs": "EPSG:4326", "conditioning": 16, "random_state": 0}
joint = EMGPR.paper(batch_size=105, **settings).fit(sites, readings)
independent = IndependentGP(**settings).fit(sites, readings)

# %%
# Both models predict at all sites. At the sites where channel 5 failed, the readings of the other
# channels are part of the training data, so the joint model uses them to predict channel 5.

fields = {
    "measured": truth["ch05"].to_numpy(),
    "joint model": joint.predict(sites)[:, 1],
    "independent models": independent.predict(sites)[:, 1],
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
limits = {"vmin": truth["ch05"].min(), "vmax": truth["ch05"].max()}
for ax, (name, values) in zip(axes, fields.items(), strict=True):
    drawn = ax.scatter(sites["lon"], sites["lat"], c=values, s=14, cmap="viridis", **limits)
    ax.axvline(-43, color="black", linewidth=0.8)
    error = np.sqrt(np.mean((values - fields["measured"])[failed] ** 2))
    ax.set(title=name if name == "measured" else f"{name}: RMSE {error:.2f} K", xlabel="longitude")
axes[0].set_ylabel("latitude")
figure.colorbar(drawn, ax=axes, label="channel 5, brightness temperature (K)")
