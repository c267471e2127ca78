"""
A sounder's failed channel, from the others
===========================================

A swath of AMSU-A on Metop-A. In the eastern half, channel 5 is taken away, as if it had failed;
channels 4 and 6, which hear the air above and below, still see.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR, IndependentGP
from emgpr.datasets import load_amsua

swath = load_amsua()
places, truth = swath.X, swath.Y[["ch04", "ch05", "ch06"]]
failed = (places["lon"] > -43).to_numpy()
readings = truth.copy()
readings.loc[failed, "ch05"] = np.nan

# %%
# ``crs`` makes longitude and latitude places on the globe. Each model learns from what is left:
# one with the channels together, one with each channel alone.

settings = {"kernel": Matern(nu=1.5), "crs": "EPSG:4326", "conditioning": 16, "random_state": 0}
together = EMGPR.paper(batch_size=105, **settings).fit(places, readings)
alone = IndependentGP(**settings).fit(places, readings)

# %%
# Predictions are asked for at the places where the channel failed. The other channels there are
# known to the model, as it learned from them.

fields = {
    "measured": truth["ch05"].to_numpy(),
    "channels together": together.predict(places)[:, 1],
    "channel 5 alone": alone.predict(places)[:, 1],
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
limits = {"vmin": truth["ch05"].min(), "vmax": truth["ch05"].max()}
for ax, (name, values) in zip(axes, fields.items(), strict=True):
    drawn = ax.scatter(places["lon"], places["lat"], c=values, s=14, cmap="viridis", **limits)
    ax.axvline(-43, color="black", linewidth=0.8)
    error = np.sqrt(np.mean((values - fields["measured"])[failed] ** 2))
    ax.set(title=name if name == "measured" else f"{name}: RMSE {error:.2f} K", xlabel="longitude")
axes[0].set_ylabel("latitude")
figure.colorbar(drawn, ax=axes, label="channel 5, brightness temperature (K)")
