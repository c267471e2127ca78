"""
Sensors in time, with gaps
==========================

Three sensors of one greenhouse, simulated: temperature, humidity and the moisture of leaves. They
are read at times of their own, and one of them is dead for two days. What the others saw then fills
the gap, and the band says how well.
"""

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Matern

from emgpr import LMC, plots

rng = np.random.default_rng(4)
hours = np.sort(rng.uniform(0, 168, 260))
day = np.sin(2 * np.pi * hours / 24)
weather = np.cumsum(rng.normal(size=260)) * np.sqrt(np.diff(hours, prepend=0)) / 4
table = pd.DataFrame(
    {
        "temperature": 18 + 5 * day + 2 * weather,
        "humidity": 65 - 12 * day - 6 * weather,
        "leaf moisture": 0.5 - 0.08 * day - 0.03 * weather,
    }
)
table += rng.normal(size=table.shape) * [0.4, 1.5, 0.012]

# %%
# At every time some sensors were read and some not, and humidity is missing from hour 72 to hour
# 120. That is all that needs to be said: NaN.

truth = table.copy()
table = table.mask(rng.random(table.shape) < 0.4)
dead = (hours > 72) & (hours < 120)
table.loc[dead, "humidity"] = np.nan
times = pd.DataFrame({"hour": hours})[table.notna().any(axis=1)]
table = table.loc[times.index]

# %%
# How far off is humidity while its sensor is dead, and does the band hold?

model = LMC(Matern(nu=1.5), n_latents=2, rank=2, random_state=0).fit(times, table)
missing = pd.DataFrame({"hour": hours[dead]})
median = model.predict_frame(missing)["humidity"].to_numpy()
lower, upper = model.predict_quantiles(missing, [0.025, 0.975])[..., 1]
real = truth.loc[dead, "humidity"].to_numpy()
print(f"off by {np.abs(median - real).mean():.1f} %, of a spread of {real.std():.1f} %")
print(f"inside the band: {np.mean((lower <= real) & (real <= upper)):.0%}")

# %%
# One input, so that the picture is of lines with 95% bands. What the dead sensor would have
# read is in orange; the model has not seen it.

units = {"temperature": "°C", "humidity": "%", "leaf moisture": "1", "hour": "h"}
axes = plots.maps(model, units=units)
humidity = axes.ravel()[1]
humidity.plot(hours[dead], real, ".", color="tab:orange", label="not read")
humidity.legend()
