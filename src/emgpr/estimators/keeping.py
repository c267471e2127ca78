"""A fit whose finished pieces are kept: what tells it from others, and how it ends early."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float

import emgpr
from emgpr.checkpoint import Ledger, digest
from emgpr.execution import end_workers, generator
from emgpr.latents import Latent
from emgpr.optimize import Memory, Minima, State
from emgpr.transforms import Held
from emgpr.weights import FittedWeights

Array = np.ndarray

RECORDS = (FittedWeights, Held, Latent, Memory, Minima, State)
FREE = ("checkpoint", "n_jobs", "verbose")  # settings that may change before a fit is gone on with
LONGEST = 60  # characters of a setting that are shown


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """If the fit is stopped, or fails, the model is what it was before: fitted to the last or not.

    >>> class Model:
    ...     mean_ = 1.0
    >>> model = Model()
    >>> try:
    ...     with all_or_nothing(model):
    ...         model.mean_ = 2.0
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     model.mean_
    1.0
    """
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        model.__dict__ = before  # at once: a second interrupt finds the one or the other
        raise


@contextmanager
def keeping(
    model: Any, X: Float[Array, "N P"], Y: Float[Array, "N D"]
) -> Iterator[tuple[Ledger, np.random.Generator]]:
    """The ledger of a fit to this table, and its random numbers, for as long as it takes.

    When the fit ends, the file goes. When it is stopped, or fails, what was finished is in it.
    """
    told = None if model.checkpoint is None else _told(model, X, Y)
    rng = generator(model.random_state)
    ledger = Ledger()
    if told is not None:
        unseeded = rng if model.random_state is None else None
        ledger = Ledger.opened(model.checkpoint, told, RECORDS, unseeded)
        rng = ledger.start if model.random_state is None else rng
        if ledger.resumed and model.verbose:
            n = len(ledger.pieces)
            print(f"Going on from {model.checkpoint}: {n} pieces are finished.", file=sys.stderr)
    try:
        yield ledger, rng
    except BaseException as stop:
        if isinstance(stop, KeyboardInterrupt):
            end_workers(model.n_jobs)
        note = _note(ledger, interrupted=isinstance(stop, KeyboardInterrupt))
        if note:
            stop.add_note(note)
        raise
    ledger.close()


def _told(model: Any, X: Float[Array, "N P"], Y: Float[Array, "N D"]) -> dict[str, tuple[str, str]]:
    """Everything that the fit depends on: a digest of each, and how it is shown."""
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in FREE}
    told = {
        "the estimator": type(model).__name__,
        "the version of emgpr": emgpr.__version__,
        "X": X,
        "Y": Y,
        "the names of the outputs": model.output_names_,
        **settings,
    }
    return {
        name: (_digest_of(name, value), "" if isinstance(value, Array) else _shown(value))
        for name, value in told.items()
    }


def _digest_of(name: str, value: Any) -> str:
    try:
        return digest(value)
    except (ValueError, RecursionError) as trouble:
        raise ValueError(
            f"checkpoint cannot tell whether {name} is the same in another process: {trouble} Give "
            "a named function or a dataclass, or fit without checkpoint."
        ) from trouble


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _note(ledger: Ledger, *, interrupted: bool) -> str:
    """What became of the work, and how to go on."""
    if ledger.path is None:
        kept = "Nothing of this fit was kept. With checkpoint=path, finished work is."
        return kept if interrupted else ""
    if not ledger.pieces:  # such as a setting that was refused: the next fit has another
        ledger.close()
        return "Nothing was finished yet." if interrupted else ""
    try:
        ledger.write()
    except OSError as trouble:
        return f"What was finished last could not be kept in {ledger.path}: {trouble}"
    return (
        f"What was finished is kept in {ledger.path}: fit the same data with the same settings, "
        f"checkpoint={str(ledger.path)!r} among them, to go on from there."
    )
