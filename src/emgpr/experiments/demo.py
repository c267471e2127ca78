"""A demonstration with the Jura data: six models for cadmium, and maps of three metals."""

from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from emgpr.datasets import jura_table, load_jura
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
from emgpr.parallel import Execution, parallel_map
from emgpr.plots import maps

DEFAULTS: Settings = {"estimator": "EMGPR"}  # kernels and transforms are chosen from the data


def compare(*, verbose: int = 0) -> list[Row]:
    """Return the results of the fast methods of Table 1, without restarts, and of the defaults."""
    methods = {name: TABLE_1[name] for name in (NO_TRANSFER, "EMGPR", ENSEMBLE)}
    methods |= {"EMGPR (our defaults)": DEFAULTS}
    jobs = cadmium_jobs(BASELINES | methods, restarts=1)
    results = parallel_map(work, jobs, Execution(verbose=verbose), label="Comparing methods")
    return [job | result for job, result in zip(jobs, results, strict=True)]


def draw_maps(*, verbose: int = 0) -> Figure:
    """Predict Cd, Ni and Zn at the 5957 grid nodes from all readings, and draw maps."""
    jura, data = jura_table(METALS, withheld=None), load_jura()
    model = build(DEFAULTS | {"verbose": verbose}, random_state=0)
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    axes = figure.subplots(2, len(METALS), sharex=True, sharey=True)
    with threadpool_limits(1):  # as in every experiment
        maps(model.fit(jura.X, jura.Y), data.grid, units=data.units, axes=axes)
    return figure
