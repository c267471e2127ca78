"""
What does joint modelling gain?
===============================

``transfer_report`` shows by cross-validation whether outputs are predicted better jointly than
independently. Every reading is predicted from other readings, by the joint model and by a model of
its output alone, and the errors are compared in pairs. There are two scenarios: a location at which
nothing else is measured, and a location at which the other outputs are measured.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR
from emgpr.datasets import load_jura

jura = load_jura()
metals = ["Cd", "Co", "Cr", "Ni", "Zn"]
model = EMGPR.paper(kernel=Matern(nu=0.5), batch_size=60, output_transform="log", random_state=0)
model.fit(jura.train[["Xloc", "Yloc"]], jura.train[metals])

reports = {
    "nothing measured at the location": model.transfer_report(by="site"),
    "other metals measured there": model.transfer_report(by="output"),
}

# %%
# Points show the reduction of the error, in per cent of the error without transfer, and bars show
# two standard errors: if a bar crosses zero, the gain is not significant. Where nothing is measured
# at the location, little is gained; where the other metals are measured, the gain is large.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for shift, (scenario, report) in zip((-0.12, 0.12), reports.items(), strict=True):
    table: pd.DataFrame = report.table
    gain = -100 * table["difference"] / table["mae_alone"]
    width = 200 * table["standard_error"] / table["mae_alone"]
    rows = [row + shift for row in range(len(table))]
    ax.errorbar(gain, rows, xerr=width, fmt="o", capsize=3, label=scenario)
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(range(len(metals)), metals)
ax.invert_yaxis()
ax.set(xlabel="reduction of the error by transfer (%)", title="Metals of the Jura, cross-validated")
ax.legend(fontsize="small")
