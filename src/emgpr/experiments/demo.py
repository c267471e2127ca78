"""The Jura data end to end: six ways to predict cadmium, and maps of three metals."""

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
    model = build(OURS | {"verbose": verbose}, random_state=0)
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    axes = figure.subplots(2, len(METALS), sharex=True, sharey=True)
    with threadpool_limits(1):  # as in every experiment
        maps(model.fit(jura.X, jura.Y), data.grid, units=data.units, axes=axes)
    return figure
