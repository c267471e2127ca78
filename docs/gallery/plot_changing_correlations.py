"""
Correlations that change over the region
========================================

Two metals may be correlated where both come from the same rock, and not where one of them comes
from industry. In this example, the correlation of two simulated outputs is +1 in the west and -1 in
the east. One output is withheld at some sites where the other one is known. `GPRN`, a Gaussian
process regression network, estimates the correlation at each location; a linear model of
coregionalisation has the same correlation everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from emgpr import GPRN, LMC, plots

rng = np.random.default_rng(0)
sites = pd.DataFrame(rng.uniform(size=(120, 2)), columns=["east", "north"])
field = np.sin(20 * sites["east"]) * np.cos(17 * sites["north"])
truth = pd.DataFrame({"lead": field, "zinc": np.cos(np.pi * sites["east"]) * field})
table = truth + 0.1 * rng.normal(size=truth.shape)
withheld = rng.uniform(size=120) < 0.4
training = table.copy()
training.loc[withheld, "zinc"] = np.nan

network = GPRN(n_latents=1, n_restarts=2, output_transform=None, random_state=0)
network.fit(sites, training)
constant = LMC(n_latents=1, rank=2, output_transform=None, random_state=0).fit(sites, training)

# %%
# The map shows the estimated correlation and the sites. It is zero in the middle, where the
# correlation changes its sign.

fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.9), layout="constrained")
plots.correlation_map(network, "lead", "zinc", ax=left)

# %%
# The other panel shows the predictions of zinc at the sites where only lead is known. With a
# constant correlation, the readings of lead hardly help.

known = table.assign(zinc=np.nan)[withheld]
for name, model in (("GPRN", network), ("constant correlation", constant)):
    predicted = model.predict(sites[withheld], observed=known)[:, 1]
    error = np.abs(predicted - truth.loc[withheld, "zinc"]).mean()
    print(f"{name}: mean absolute error {error:.2f}")
    right.plot(truth.loc[withheld, "zinc"], predicted, ".", label=f"{name}: error {error:.2f}")
right.axline((0, 0), slope=1, color="0.6", lw=0.8)
right.set(xlabel="zinc, true", ylabel="zinc, predicted", aspect="equal")
right.legend(fontsize="small")
plt.show()
