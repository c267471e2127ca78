"""What a fitted model answers, as named numbers and texts.

A number comes with the unit in which a difference from the frozen one is measured: the predictive
standard deviation for predictions, 1 for probabilities and logarithms, the largest of its array for
others.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from .cases import Case
from .tables import Table

QUANTILES = [0.025, 0.4, 0.9]
N_DRAWS = 3
N_ROWS = 6  # of a cross-validation that are kept
FRAMES = ("truth", "prediction", "std", "lower", "upper", "standardized", "nlpd", "crps", "pit")
IN_STD = ("truth", "prediction", "std", "lower", "upper", "crps")


class Number(NamedTuple):
    """Values, and the unit of a difference, which may be an array of the same shape."""

    value: np.ndarray
    unit: Any = None


Answers = dict[str, Number | str]
Found = Iterator[tuple[str, Number | str]]


def answers(case: Case, model: Any, table: Table) -> Answers:
    """All that a case asks of its model."""
    parts = {
        "predict": lambda: predictions(model, table, known=False),
        "known": lambda: predictions(model, table, known=True),
        "known distributions": lambda: distributions(model, table),
        "frame": lambda: frame(model, table),
        "sample": lambda: draws(model, table, known=False),
        "sample known": lambda: draws(model, table, known=True),
        "latents": lambda: latents(model, table),
        "variograms": lambda: variograms(model),
        "transfer": lambda: transfer(model),
        "fitted": lambda: fitted(model, table),
        "grid": lambda: grid(model, table),
        "dataset": lambda: dataset(model, table),
        **{by: lambda by=by: left_out(model, by) for by in ("site", "output", "block")},
    }
    found: Answers = {}
    for asked in case.ask:
        for name, answer in parts[asked]():
            found[f"{asked}/{name}"] = numbered(answer)
    return found


def numbered(answer: Any) -> Number | str:
    """Text as it is, anything else as float64 with a unit."""
    if isinstance(answer, str):
        return answer
    value, unit = answer if isinstance(answer, Number) else (answer, None)
    value = np.asarray(value, dtype=np.float64)
    if unit is None:
        finite = np.abs(value[np.isfinite(value)])
        unit = float(finite.max(initial=0.0)) or 1.0
    return Number(value, unit)


def at_least_one(value: Any) -> Number:
    """Logarithms and the like: in units of 1, or of their own size if that is more."""
    return Number(value, np.maximum(1.0, np.abs(np.nan_to_num(np.asarray(value, float)))))


def predictions(model: Any, table: Table, *, known: bool) -> Found:
    """Centres and spreads of readings and of signals, quantiles, chances to be above limits."""
    how = {"observed": table.known if known else None}
    median, std = model.predict(table.places, return_std=True, **how)
    yield "reading/median", Number(median, std)
    yield "reading/std", Number(std, std)
    yield "reading/median alone", Number(model.predict(table.places, **how), std)
    mean, cov = model.predict(table.places, return_cov=True, statistic="mean", **how)
    yield "reading/mean", Number(mean, std)
    yield "reading/cov", Number(cov, by_pairs(cov))
    median, cov = model.predict(table.places, return_cov=True, include_noise=False, **how)
    signal = np.sqrt(np.einsum("mdd->md", cov)).reshape(median.shape)
    yield "signal/median", Number(median, signal)
    yield "signal/cov", Number(cov, by_pairs(cov))
    if not known:
        quantiles = model.predict_quantiles(table.places, QUANTILES)
        yield "reading/quantiles", Number(quantiles, np.broadcast_to(std, quantiles.shape))
        above = model.predict_exceedance(table.places, limits(table))
        yield "reading/above", Number(above, 1.0)


def distributions(model: Any, table: Table) -> Found:
    """Quantiles and chances to be above limits where outputs are known, and of signals."""
    for noise in (True, False):
        how = {"observed": table.known, "include_noise": noise}
        what = "reading" if noise else "signal"
        std = model.predict(table.places, return_std=True, **how)[1]
        quantiles = model.predict_quantiles(table.places, QUANTILES, **how)
        yield f"{what}/quantiles", Number(quantiles, np.broadcast_to(std, quantiles.shape))
        above = model.predict_exceedance(table.places, limits(table), **how)
        yield f"{what}/above", Number(above, 1.0)


def by_pairs(cov: np.ndarray) -> np.ndarray:
    """Products of the standard deviations of every two outputs."""
    std = np.sqrt(np.einsum("mdd->md", cov))
    return std[:, :, None] * std[:, None, :]


def limits(table: Table) -> np.ndarray:
    """A threshold for each output, a little above its median."""
    values = np.asarray(table.Y, dtype=float).reshape(len(table.Y), -1)
    return np.nanquantile(values, 0.6, axis=0)


def frame(model: Any, table: Table) -> Found:
    """`predict_frame`: names, index and numbers."""
    first = model.output_names_[0]
    asked = {"quantiles": [0.05, 0.95], "exceedance": {first: round(float(limits(table)[0]), 3)}}
    frame = model.predict_frame(table.places, observed=table.known, **asked)
    yield "columns", json.dumps(list(frame.columns))
    yield "index", json.dumps([str(label) for label in frame.index])
    unit = np.ones(frame.shape)
    for column, name in enumerate(frame.columns):
        output = next(own for own in model.output_names_ if name.startswith(own))
        unit[:, column] = 1.0 if "_above_" in name else frame[f"{output}_std"]
    yield "values", Number(frame.to_numpy(), unit)


def draws(model: Any, table: Table, *, known: bool) -> Found:
    """Joint draws at the new places; at training sites, what rounding leaves would be drawn."""
    new, observed = table.places[:3], table.known[:3] if known else None
    std = model.predict(new, return_std=True, observed=observed)[1][..., None]
    for noise in (True, False):
        how = {"observed": observed, "include_noise": noise}
        drawn = model.sample_y(new, N_DRAWS, random_state=7, **how)
        yield "reading" if noise else "signal", Number(drawn, np.broadcast_to(std, drawn.shape))


def latents(model: Any, table: Table) -> Found:
    mean, std = model.predict_latents(table.places, return_std=True)
    yield "mean", Number(mean, std)
    yield "std", Number(std, std)
    yield "correlations", Number(model.signal_correlations(), 1.0)


def variograms(model: Any) -> Found:
    names = model.output_names_
    found = model.variograms([(names[0], names[0]), (names[0], names[-1])], n_lags=4)
    yield "kinds", json.dumps(found["kind"].tolist())
    for column in ("lag", "pairs", "empirical", "model"):
        yield column, found[column].to_numpy()


def left_out(model: Any, by: str) -> Found:
    """Cross-validation: all frames at some rows, and its summary."""
    checked = model.cross_validate(by)
    rows = np.unique(np.linspace(0, len(checked.truth) - 1, N_ROWS).astype(int))
    for name in FRAMES:
        values = getattr(checked, name).to_numpy()[rows]
        std = np.nan_to_num(checked.std.to_numpy()[rows])
        yield f"frames/{name}", Number(values, std) if name in IN_STD else at_least_one(values)
    summary = checked.summary()
    for name in ("mae", "rmse", "crps"):
        yield f"summary/{name}", Number(summary[name], summary["rmse"].to_numpy())
    for name in ("n", "smse", "nlpd", "coverage"):
        yield f"summary/{name}", at_least_one(summary[name])


def transfer(model: Any) -> Found:
    """What the outputs gained by being learned together."""
    for by in ("site", "output", "block"):
        found = model.transfer_report(by)
        report = found.table
        yield f"{by}/verdicts", json.dumps(report["verdict"].tolist())
        yield f"{by}/losing", json.dumps(found.losing)
        alone = report["mae_alone"].to_numpy()
        for name in ("mae", "mae_alone", "difference", "standard_error"):
            yield f"{by}/{name}", Number(report[name], alone)
        yield f"{by}/gain_percent", Number(report["gain_percent"], 100.0)
        for name in ("n", "nlpd", "nlpd_alone"):
            yield f"{by}/{name}", at_least_one(report[name])


NUMBERS = (
    "weights_", "noise_", "coregionalization_", "variance_shares_", "n_iter_", "converged_",
    "n_rows_ignored_", "n_members_failed_", "n_outputs_", "n_features_in_", "box_", "n_functions_",
    "left_out_", "n_sites_", "n_readings_",
)  # fmt: skip
SHARES = ("variance_shares_", "left_out_")
REMOVED = ("fitted/alone_",)  # recorded answers that no version asks for: see stacking_weights_
TEXTS = ("conditioning_", "latent_learner_", "output_names_", "transforms_")


def fitted(model: Any, table: Table) -> Found:
    """Settings, attributes, training data, score."""
    yield "class", type(model).__name__
    for name, value in settings_of(model).items():
        yield f"settings/{name}", value
    for name in NUMBERS:
        if hasattr(model, name):
            value = np.asarray(getattr(model, name))
            yield name, Number(value, 1.0) if name in SHARES else value
    for name in TEXTS:
        if hasattr(model, name):
            yield name, " ".join(repr(getattr(model, name)).split())
    yield "feature_names_in_", json.dumps(list(getattr(model, "feature_names_in_", [])))
    yield "shares of", json.dumps([str(name) for name in model.variance_shares_.columns])
    yield "log likelihood", at_least_one(model.log_marginal_likelihood_value_)
    if hasattr(model, "history_"):
        yield "history", at_least_one([value for _, value in model.history_])
    yield "kernels", json.dumps([structure(kernel) for kernel in model.kernels_])
    yield "thetas", Number(np.concatenate([kernel.theta for kernel in model.kernels_]), 1.0)
    yield "bounds", np.concatenate([kernel.bounds for kernel in model.kernels_])
    yield "score", Number(model.score(table.X, table.Y), 1.0)
    if hasattr(model, "batches_"):
        yield "batches", np.concatenate(model.batches_)
        yield "batch sizes", [len(batch) for batch in model.batches_]
    if hasattr(model, "training_data"):
        yield from training_data(model)


def training_data(model: Any) -> Found:
    X, Y = model.training_data()
    rows = np.unique(np.linspace(0, len(X) - 1, N_ROWS).astype(int))
    yield "training/index", json.dumps([str(label) for label in X.index[rows]])
    yield "training/columns", json.dumps([*map(str, X.columns), *map(str, Y.columns)])
    yield "training/X", X.to_numpy()[rows]
    yield "training/Y", Y.to_numpy()[rows]


def settings_of(model: Any) -> dict[str, str]:
    """The parameters as text, with `transform` under its new name."""
    params = model.get_params(deep=False)
    if "transform" in params:
        params["output_transform"] = params.pop("transform")
    return {
        name: getattr(value, "__name__", None) or " ".join(repr(value).split())
        for name, value in sorted(params.items())
    }


def structure(kernel: Kernel) -> str:
    """The classes of a kernel, without hyper-parameters."""
    parts = [structure(getattr(kernel, name)) for name in ("k1", "k2") if hasattr(kernel, name)]
    nu = f" {kernel.nu:g}" if hasattr(kernel, "nu") else ""
    return f"{type(kernel).__name__}{nu}({', '.join(parts)}{kernel.n_dims})"


def grid(model: Any, table: Table) -> Found:
    """A map of few cells, with all that can be asked of it."""
    first = model.output_names_[0]
    made = model.predict_grid(
        shape=(3, 4), quantiles=[0.1, 0.9], exceedance={first: limits(table)[0]}, units="K"
    )
    yield from mapped(model, made)


def dataset(model: Any, table: Table) -> Found:
    """Predictions on the axes of a data set of the inputs."""
    import xarray

    places = pd.DataFrame(table.places)
    axes = {
        str(name): np.sort(places[name].to_numpy())[[0, 2, 5]] for name in model.feature_names_in_
    }
    yield from mapped(
        model,
        model.predict_dataset(xarray.Dataset(coords=axes), statistic="mean", include_noise=False),
    )


def mapped(model: Any, made: Any) -> Found:
    yield "variables", json.dumps(sorted(map(str, made.data_vars)))
    yield "sizes", json.dumps({str(name): int(n) for name, n in made.sizes.items()})
    for name in sorted(map(str, made.coords)):
        if np.issubdtype(made[name].dtype, np.floating):
            yield f"axis/{name}", made[name].values
    for output in model.output_names_:
        std = made[f"{output}_std"].values
        yield f"{output}", Number(made[output].values, std)
        yield f"{output}_std", Number(std, std)
        if f"{output}_exceedance" in made:
            yield f"{output}_exceedance", Number(made[f"{output}_exceedance"].values, 1.0)
        if f"{output}_quantiles" in made:
            yield f"{output}_quantiles", made[f"{output}_quantiles"].values
