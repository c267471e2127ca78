"""
Time series of sensors with gaps
================================

Three simulated sensors in a greenhouse measure temperature, humidity and leaf moisture. They are
read at different times, and one sensor fails for two days. Its values are predicted from those of
the other sensors, with prediction intervals.
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
# At most times, some sensors were not read, and humidity is missing from hour 72 to hour 120.
# Missing readings are marked by NaN.

truth = table.copy()
table = table.mask(rng.random(table.shape) < 0.4)
failed = (hours > 72) & (hours < 120)
table.loc[failed, "humidity"] = np.nan
times = pd.DataFrame({"hour": hours})[table.notna().any(axis=1)]
table = table.loc[times.index]

# %%
# The predictions of humidity are compared with the withheld readings. The code prints the mean
# absolute error and the share of readings inside the 95% interval.

model = LMC(Matern(nu=1.5), n_latents=2, rank=2, random_state=0).fit(times, table)
missing = pd.DataFrame({"hour": hours[failed]})
median = model.predict_frame(missing)["humidity"].to_numpy()
lower, upper = model.predict_quantiles(missing, [0.025, 0.975])[..., 1]
actual = truth.loc[failed, "humidity"].to_numpy()
error = np.abs(median - actual).mean()
print(f"mean absolute error {error:.1f} %, standard deviation of the readings {actual.std():.1f} %")
print(f"inside the 95% interval: {np.mean((lower <= actual) & (actual <= upper)):.0%}")

# %%
# With one input, the figure shows lines with 95% intervals. The withheld readings of the failed
# sensor, to which the model was not fitted, are orange.

units = {"temperature": "°C", "humidity": "%", "leaf moisture": "1", "hour": "h"}
axes = plots.maps(model, units=units)
humidity = axes.ravel()[1]
humidity.plot(hours[failed], actual, ".", color="tab:orange", label="missing")
humidity.legend()
