"""The Jura data end to end: six ways to predict cadmium, and maps of three metals."""

import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from emgpr.datasets import jura_table, load_jura
from emgpr.execution import each
from emgpr.experiments.fitting import Settings, build
from emgpr.experiments.jura import (
    BASELINES,
    ENSEMBLE,
    METALS,
    NO_TRANSFER,
    TABLE_1,
    cadmium_jobs,
    work,
)
from emgpr.experiments.rows import Row
from emgpr.plots import maps

OURS: Settings = {"estimator": "EMGPR"}  # nothing set: kernels, transforms, all from the data


def compare(*, verbose: int = 0) -> list[Row]:
    """The rows of Table 1 that a demonstration has time for, from one start each."""
    methods = {name: TABLE_1[name] for name in (NO_TRANSFER, "EMGPR", ENSEMBLE)}
    methods |= {"EMGPR (our defaults)": OURS}
    jobs = cadmium_jobs(BASELINES | methods, restarts=1)
    results = each(work, jobs, label="Comparing methods", verbose=verbose)
    return [job | result for job, result in zip(jobs, results, strict=True)]


def draw_maps(*, verbose: int = 0) -> Figure:
    """Cd, Ni and Zn over the 5957 nodes of the grid, learned from all that was measured."""
    jura, data = jura_table(METALS, withheld=None), load_jura()
    nodes = data.grid[list(data.coordinates)]
    model = build(OURS | {"verbose": verbose}, random_state=0)
    with threadpool_limits(1):  # as in every experiment
        median, std = model.fit(jura.X, jura.Y).predict(nodes, return_std=True)
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    maps(
        nodes,
        pd.DataFrame(median, columns=METALS),
        pd.DataFrame(std, columns=METALS),
        sites=jura.X,
        readings=jura.Y,
        unit=data.units["Cd"],
        axes=figure.subplots(2, len(METALS), sharex=True, sharey=True),
    )
    return figure
