"""Fitted models in files: what is stored, and how a model is whole again.

Only what was learned and what it is conditioned on is stored; what follows from these, such as
`coregionalization_`, is worked out anew by the functions that `fit` uses.
"""

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

import emgpr
from emgpr.estimators.intact import check_state
from emgpr.estimators.settings import Settled, check_choices
from emgpr.geo import columns_given
from emgpr.latents import (
    DTC,
    FITC,
    PITC,
    VFE,
    Borrowed,
    Exact,
    Latent,
    PoE,
    Variogram,
    choose_learner,
)
from emgpr.observations import Observations
from emgpr.persistence import ModelFileError, PathLike, decode, encode, read, write
from emgpr.transforms import Fitted, Identity, Log, Marginals, NormalScore, YeoJohnson
from emgpr.weights import Stage, apart, silenced

Array = np.ndarray
Own = Iterable[Any]

FORMAT = "emgpr model"
VERSION = 1  # read the old ones too when this grows: tests/persistence/fixtures has one of each
LEARNERS = (Borrowed, DTC, Exact, FITC, PITC, PoE, Variogram, VFE)
RECORDS = (Fitted, Identity, Log, Marginals, NormalScore, Settled, YeoJohnson, *LEARNERS)


class Stored:
    """An estimator that can be put into a file and taken out again, without pickle."""

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a file, in the place of one that may be there.

        Arrays and JSON, with a checksum: nothing in it is ever run. `load` of the same class,
        or `emgpr.load`, gives a model that predicts the same. The training data are in it, since
        predictions are conditioned on them (of `OnePassGP`, its sums); see docs/model-files.md.

        >>> from tempfile import TemporaryDirectory
        >>> from emgpr import IndependentGP
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> Y = np.sin(X) + 0.1 * np.random.default_rng(0).normal(size=X.shape)
        >>> model = IndependentGP(random_state=0).fit(X, Y)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/sine.emgpr")
        ...     again = IndependentGP.load(f"{folder}/sine.emgpr")
        >>> bool(np.all(again.predict(X) == model.predict(X)))
        True
        """
        check_is_fitted(
            self, msg="This %(name)s is not fitted, so there is nothing to save; call fit first."
        )
        tree, arrays, own = encode(self._state(), RECORDS)
        name = type(self).__name__
        # What could not be read again should not be written.
        rebuilt(type(self), f"This {name}", tree, arrays, own)
        header = {"format": FORMAT, "version": VERSION, "class": name, **circumstances()}
        write(path, {**header, "state": tree}, arrays)

    @classmethod
    def load(cls, path: PathLike, *, classes: Own = ()) -> Self:
        """A model that `save` wrote.

        `classes` are classes and functions of your own that the model uses: kernels,
        transformers, a function for `combine`. No other code is run. Raises `ModelFileError`,
        saying why, if the file is damaged, newer than this version, or something else.
        """
        header, arrays = read(path, FORMAT, VERSION)
        found = header.get("class")
        if found != cls.__name__:
            raise ModelFileError(
                f"{path} holds a model of class {found!r}, not {cls.__name__}; use that class's "
                "load, or emgpr.load for whichever it is."
            )
        return rebuilt(cls, path, header.get("state"), arrays, by_name(classes))

    def _state(self) -> dict[str, Any]:
        """All that a fitted model cannot be without."""
        return _state(self)

    @staticmethod
    def _check_state(state: dict[str, Any]) -> None:
        """Raise if it is no state of a fitted model."""
        check_state(state)

    def _restore(self, state: dict[str, Any]) -> None:
        """Be the model of a state, after its settings were set."""
        check_choices(self)
        _restore(self, state)


def by_name(own: Own) -> dict[str, Any]:
    """The user's classes and functions, as a file refers to them."""
    return {value.__name__: value for value in own}


def rebuilt(
    cls: type[Stored], path: Any, tree: Any, arrays: Mapping[str, Array], own: Mapping[str, Any]
) -> Any:
    """The model of a tree and its arrays, or a `ModelFileError`."""
    try:
        state = decode(tree, arrays, RECORDS, own)
        cls._check_state(state)
        model = cls(**state["settings"])
        model._restore(state)
    except ModelFileError as trouble:
        raise ModelFileError(f"{path} does not make a model: {trouble}.") from trouble
    except Exception as trouble:
        # Whatever a checksum that is right lets through: a file that was made to mislead.
        what = f"{type(trouble).__name__}: {trouble}"
        raise ModelFileError(f"{path} does not make a model: {what}") from trouble
    return model


def circumstances() -> dict[str, Any]:
    """Who writes it, when; for people to read, not for `load`."""
    packages = {"emgpr": emgpr, "numpy": np, "scipy": scipy, "scikit-learn": sklearn, "pandas": pd}
    versions = {name: str(package.__version__) for name, package in packages.items()}
    versions["python"] = platform.python_version()
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}


def common_state(model: Any) -> dict[str, Any]:
    """What every fitted estimator has."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "settings": model.get_params(deep=False),
        "feature_names": None if names is None else names.tolist(),
        "output_names": model.output_names_,
        "flat": model._flat,
        "scale": model._scale,
        "transforms": model.transforms_,
        "kernels": model.kernels_,
        "noise": model._noise,
    }


def restore_common(model: Any, state: dict[str, Any], n_inputs: int) -> None:
    """The same attributes, but for kernels and noise; of so many inputs that kernels see."""
    if state["feature_names"] is not None:
        model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    model.n_features_in_ = columns_given(n_inputs, model.crs)
    model.output_names_, model._flat = state["output_names"], state["flat"]
    model.n_outputs_ = len(model.output_names_)
    model._scale, model.transforms_ = state["scale"], state["transforms"]


def _state(model: Any) -> dict[str, Any]:
    seen, parts, alone = model._seen, model._parts, model._apart
    measured = np.zeros(len(model._index), bool)
    measured[model._rows] = True
    ascended = hasattr(model, "history_")  # which no transfer does not
    failed = model.n_members_failed_
    common = common_state(model)
    common["settings"] |= {"checkpoint": None}  # of the fit, and gone
    return {
        **common,
        "index": model._index,
        "measured": None if measured.all() else measured,
        "x": seen.x,
        "y": np.where(seen.seen, seen.y, np.nan),
        "settled": model._settled,
        "sites": _small(np.concatenate(parts)),
        "batches": _small(np.array([len(part) for part in parts])),
        "weights": model.weights_,
        "own_kernels": list(alone.kernels),
        "own_noise": np.diagonal(alone.noise),
        "own_bounds": alone.noise_bounds,
        "lost": model._lost,
        "history": [tuple(stage) for stage in model.history_] if ascended else None,
        "log_likelihood": model.log_marginal_likelihood_value_,
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "conditioning": model.conditioning_,
        **({"n_failed": failed} if failed else {}),  # files from before this have none either
    }


def _small(whole: Array) -> Array:
    """Numbers of sites in as few bytes as they need."""
    return whole.astype(np.min_scalar_type(int(whole.max())))


def _restore(model: Any, state: dict[str, Any]) -> None:
    """The attributes that `fit` sets."""
    restore_common(model, state, state["x"].shape[1])
    model._index, measured = state["index"], state["measured"]
    model._rows = np.arange(len(model._index)) if measured is None else np.flatnonzero(measured)
    model.n_rows_ignored_ = len(model._index) - len(model._rows)
    model._settled = state["settled"]
    cuts = np.cumsum(state["batches"], dtype=int)[:-1]
    parts = np.split(state["sites"].astype(int), cuts)
    seen = Observations.from_table(state["x"], state["y"].T)
    model._hold(seen, parts, state["kernels"], state["noise"], state["weights"])
    own = zip(state["own_kernels"], state["own_noise"], state["own_bounds"], strict=True)
    tasks = [Latent(kernel, float(noise), 0.0, tuple(bounds)) for kernel, noise, bounds in own]
    model._apart = silenced(apart(tasks, len(tasks)), seen.silent)
    model._keep_apart(state["lost"])
    if state["history"] is not None:
        model.history_ = [Stage(*stage) for stage in state["history"]]
    model.log_marginal_likelihood_value_ = state["log_likelihood"]
    model.n_iter_, model.converged_ = state["n_iter"], state["converged"]
    model.conditioning_ = state["conditioning"]
    model.latent_learner_, _ = choose_learner(model.latent_learner, seen)
    model.n_members_failed_ = state.get("n_failed", 0)
