"""
What did the other outputs give?
================================

Is it worth modelling outputs together? ``transfer_report`` asks the readings: each is predicted
without itself, by the model and by its own output's process alone, and the errors are compared in
pairs. That is asked twice: where nothing else is known at a place, and where the other outputs are.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.gaussian_process.kernels import Matern

from emgpr import EMGPR
from emgpr.datasets import load_jura

jura = load_jura()
metals = ["Cd", "Co", "Cr", "Ni", "Zn"]
model = EMGPR.paper(kernel=Matern(nu=0.5), batch_size=60, transform="log", random_state=0)
model.fit(jura.train[["Xloc", "Yloc"]], jura.train[metals])

reports = {
    "nothing known at the place": model.transfer_report(by="site"),
    "other metals known there": model.transfer_report(by="output"),
}

# %%
# Points are gains in per cent of the error without transfer, bars two standard errors: one that
# crosses zero is no gain. From coordinates alone there is little to be had; once the other metals
# of a sample are known, there is much.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for shift, (asked, report) in zip((-0.12, 0.12), reports.items(), strict=True):
    table: pd.DataFrame = report.table
    gain = -100 * table["difference"] / table["mae_alone"]
    width = 200 * table["standard_error"] / table["mae_alone"]
    rows = [row + shift for row in range(len(table))]
    ax.errorbar(gain, rows, xerr=width, fmt="o", capsize=3, label=asked)
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(range(len(metals)), metals)
ax.invert_yaxis()
ax.set(xlabel="error saved by transfer (%)", title="Metals of the Jura, cross-validated")
ax.legend(fontsize="small")
