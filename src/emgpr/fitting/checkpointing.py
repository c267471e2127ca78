"""Checkpoints: storage of finished parts of a fit, and identification of the fit."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from emgpr.checkpoint import Checkpoint, digest
from emgpr.inputs import TrainingTable
from emgpr.latents import Latent
from emgpr.optimize import LBFGSMemory, OptimizeResult, OptimizerState
from emgpr.parallel import Execution, as_generator, stop_workers
from emgpr.scoring import ScoringState
from emgpr.transforms import LeftOutScores
from emgpr.version import __version__
from emgpr.weights import FittedWeights

Array = np.ndarray

RECORDS = (
    FittedWeights, Latent, LBFGSMemory, LeftOutScores, OptimizeResult, OptimizerState, ScoringState
)  # fmt: skip
MAY_CHANGE = ("checkpoint", "n_jobs", "verbose")  # parameters that may differ in a resumed fit
MAX_SHOWN = 60  # maximum number of characters of a parameter in a message


@contextmanager
def checkpointed(
    estimator: str, params: Mapping[str, Any], table: TrainingTable, execution: Execution
) -> Iterator[tuple[Execution, np.random.Generator]]:
    """Open the checkpoint of a fit; yield an `Execution` that uses it, and the random generator.

    The file is removed if the fit succeeds, and kept if the fit fails or is interrupted.
    """
    path: Any = params.get("checkpoint")
    random_state = params["random_state"]
    identity = None if path is None else _identify(estimator, params, table)
    rng = as_generator(random_state)
    checkpoint = Checkpoint()
    if identity is not None:
        unseeded = rng if random_state is None else None
        checkpoint = Checkpoint.open(path, identity, RECORDS, unseeded)
        rng = checkpoint.start if random_state is None else rng
        if checkpoint.resumed and execution.verbose:
            n = len(checkpoint.pieces)
            print(f"Resuming from {path}; finished pieces of work: {n}.", file=sys.stderr)
    try:
        yield replace(execution, checkpoint=checkpoint), rng
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            stop_workers(execution.n_jobs)
        note = _note(checkpoint, interrupted=isinstance(error, KeyboardInterrupt))
        if note:
            error.add_note(note)
        raise
    if identity is not None:
        checkpoint.close()


def _identify(
    estimator: str, params: Mapping[str, Any], table: TrainingTable
) -> dict[str, tuple[str, str]]:
    """Return a digest and a short description of everything on which the fit depends."""
    depends_on = {
        "the estimator": estimator,
        "the version of emgpr": __version__,
        "X": table.x,
        "Y": table.Y,
        "the names of the outputs": list(table.output_names),
        **{name: value for name, value in params.items() if name not in MAY_CHANGE},
    }
    return {
        name: (_digest(name, value), "" if isinstance(value, Array) else _shorten(value))
        for name, value in depends_on.items()
    }


def _digest(name: str, value: Any) -> str:
    try:
        return digest(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"With checkpoint, it must be possible to identify {name} in another process: {error} "
            "Use a named function or a dataclass, or fit with checkpoint=None."
        ) from error


def _shorten(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _note(checkpoint: Checkpoint, *, interrupted: bool) -> str:
    """Return a note that says where finished work is stored and how to resume the fit."""
    if checkpoint.path is None:
        note = "No part of this fit was stored. Set checkpoint=path to keep finished work."
        return note if interrupted else ""
    if not checkpoint.pieces:  # for instance after an error in a parameter
        checkpoint.close()
        return "No part of the fit was finished yet." if interrupted else ""
    try:
        checkpoint.write()
    except OSError as error:
        return f"The last finished work could not be stored in {checkpoint.path}: {error}"
    return (
        f"Finished work is stored in {checkpoint.path}: to resume, fit the same data with the same "
        f"parameters, including checkpoint={str(checkpoint.path)!r}."
    )
