"""Writing and reading of model files, which contain arrays and JSON, but no pickles.

A file stores the fitted parameters and the training data. Everything else is computed from them.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import scipy
import sklearn

from emgpr.fitting.defaults import ResolvedParams
from emgpr.latents import LEARNERS, Borrowed
from emgpr.persistence import (
    ModelFileError,
    PathLike,
    constructors,
    decode,
    encode,
    read,
    write,
)
from emgpr.transforms import (
    TRANSFORMS,
    Bounded,
    Composition,
    FittedTransformer,
    Link,
    OutputScaler,
    PointMass,
)
from emgpr.version import __version__

OwnClasses = Iterable[Any]
Model = TypeVar("Model")

FORMAT = "emgpr model"
VERSION = 3  # Older versions can be read; tests/model_files/fixtures has files of each version.
RECORDS: tuple[type, ...] = (
    Bounded, Composition, FittedTransformer, Link, PointMass, *TRANSFORMS.values(),
    *LEARNERS.values(), Borrowed, OutputScaler, ResolvedParams,
)  # fmt: skip
# Names of records in files of version 1 that differ from the present names.
RECORDS_V1: dict[str, Callable[..., Any]] = {
    "Fitted": FittedTransformer,
    "Settled": ResolvedParams,
    "Marginals": lambda maps, shift, scale: OutputScaler(maps, shift, scale),
}


def save_model(
    cls: type[Any], state: dict[str, Any], path: PathLike, units: Mapping[str, str]
) -> None:
    """Write the state of a fitted model to a file, after checking that it can be read again.

    The units are stored outside the state, so that versions without units can read the file too.
    """
    tree, arrays, own = encode(state, RECORDS)
    _rebuild(cls, f"The state of this {cls.__name__}", tree, arrays, own, VERSION)
    header = {"format": FORMAT, "version": VERSION, "class": cls.__name__, **provenance()}
    write(path, {**header, "units": dict(units), "state": tree}, arrays)


def load_model(path: PathLike, known: Mapping[str, type[Model]], classes: OwnClasses = ()) -> Model:
    """Load a model from a file.

    The model must belong to one of the `known` classes. `classes` are the user-defined classes and
    functions that the model may use.
    """
    header, arrays = read(path, FORMAT, VERSION)
    name = header.get("class")
    cls = known.get(str(name))
    if cls is None:
        raise ModelFileError(
            f"{path} contains a model of class {name!r}; expected {' or '.join(known)}. Use the "
            "load method of that class, or emgpr.load for any class of emgpr."
        )
    own = {value.__name__: value for value in classes}
    model = _rebuild(cls, path, header.get("state"), arrays, own, int(header["version"]))
    model.input_spec_ = replace(model.input_spec_, units=_units(header, path))
    return model


def _units(header: Mapping[str, Any], path: PathLike) -> dict[str, str]:
    """Return the units in the header of a file, which are absent in files of older versions."""
    units = header.get("units", {})
    if not isinstance(units, dict) or not all(isinstance(unit, str) for unit in units.values()):
        raise ModelFileError(f"{path} does not contain a valid model: 'units' is {units!r}.")
    return units


def provenance() -> dict[str, Any]:
    """Return the current time and package versions, stored in a file for information only."""
    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "pandas": pd}
    versions = {"emgpr": __version__}
    versions |= {name: str(package.__version__) for name, package in packages.items()}
    versions["python"] = platform.python_version()
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}


def _rebuild(
    cls: type[Any],
    path: Any,
    tree: Any,
    arrays: Mapping[str, np.ndarray],
    own: Mapping[str, Any],
    version: int,
) -> Any:
    """Rebuild a model from a tree and its arrays; raise `ModelFileError` if they are invalid."""
    try:
        state = decode(tree, arrays, {**RECORDS_V1, **constructors(RECORDS)}, own)
        return cls._from_state(state, version)
    except ModelFileError as error:
        raise ModelFileError(f"{path} does not contain a valid model: {error}.") from error
    except Exception as error:
        # A forged file with a valid checksum can contain anything.
        message = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path} does not contain a valid model: {message}") from error
