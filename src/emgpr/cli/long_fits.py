"""Confirmation of fits that take long or need more memory than there is."""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emgpr.cli.errors import UsageError

if TYPE_CHECKING:
    from emgpr.estimators import MultiOutputGP
    from emgpr.planning import Plan

MAX_SECONDS = 600  # a fit that takes longer must be confirmed
MIN_SAVING = 1.5  # options that save less than this factor are not proposed
FEW_LATENTS, FEW_MEMBERS, FEW_NEIGHBOURS = 3, 8, 16  # values of the options that are proposed

Yes = Annotated[bool, typer.Option("--yes", help="Start a long computation without asking.")]


def confirm_long_fit(model: "MultiOutputGP", X: Any, Y: Any, plan: "Plan", *, yes: bool) -> None:
    """Ask whether to start a fit that takes long or needs too much memory."""
    lacking = _lack_of_memory(plan)
    if yes or (plan.seconds <= MAX_SECONDS and not lacking):
        return
    slowest = max(plan.steps, key=lambda step: step.seconds or 0.0)
    text = f"The fit takes {plan.summary()}, most of the time in {slowest.name}{lacking}."
    _ask(text, _proposals(model, X, Y, plan))


def confirm_long_validation(
    models: Mapping[str, "MultiOutputGP"], X: Any, Y: Any, n_folds: int, n_jobs: int, *, yes: bool
) -> None:
    """Ask whether to start a long cross-validation, in which models are fitted to every fold."""
    if yes:
        return
    from emgpr.progress import format_duration

    plans = {name: model.plan(X, Y) for name, model in models.items()}
    slowest = max(plans, key=lambda name: plans[name].seconds)
    n_processes = n_jobs if n_jobs > 0 else os.cpu_count() or 1
    each = sum(plan.seconds for plan in plans.values()) / n_processes
    lacking = _lack_of_memory(max(plans.values(), key=lambda plan: plan.bytes))
    if n_folds * each <= MAX_SECONDS and not lacking:
        return
    text = (
        f"Fitting {len(models)} models {n_folds} times takes at most about "
        f"{format_duration(n_folds * each)}, most of the time for {slowest}{lacking}."
    )
    fewer = [f"--folds 2 (at most about {format_duration(2 * each)})"] if n_folds > 2 else []
    of_each_fit = _proposals(models[slowest], X, Y, plans[slowest])
    _ask(text, fewer + [f"{option}, for each fit of {slowest}" for option in of_each_fit])


def _ask(text: str, proposals: list[str]) -> None:
    """Show the text and the options that save time, and ask; without a terminal, raise."""
    if not sys.stdin.isatty():
        options = f" To save time or memory: {'; '.join(proposals)}." if proposals else ""
        raise UsageError(f"{text} To start nevertheless, add --yes.{options}")
    lines = ["To save time or memory:", *(f"  {line}" for line in proposals)]
    typer.echo("\n".join([text, *(lines if proposals else [])]))
    if not typer.confirm("Start?", default=False):
        raise UsageError("Nothing was fitted.")


def _lack_of_memory(plan: "Plan") -> str:
    """Return a remark that a fit needs more memory than this machine has, or "" if it does not."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # The system does not report its memory size.
        return ""
    if plan.device != "cpu" or plan.bytes <= memory:
        return ""
    return f". This machine has only {memory / 1e9:.0f} GB of memory"


def _proposals(model: "MultiOutputGP", X: Any, Y: Any, plan: "Plan") -> list[str]:
    """Return the options with which the fit needs clearly less time or memory, the fastest first.

    Each of them is planned, because which one helps depends on the step that takes the most time.
    """
    from emgpr.planning import format_bytes
    from emgpr.progress import format_duration

    found = []
    for option, settings in _options(model, plan):
        other = type(model)(**(model.get_params(deep=False) | settings)).plan(X, Y)
        faster = other.seconds * MIN_SAVING < plan.seconds
        smaller = other.bytes * MIN_SAVING < plan.bytes and bool(_lack_of_memory(plan))
        if faster or smaller:
            cost = f"about {format_duration(other.seconds)} and {format_bytes(other.bytes)}"
            found.append((other.seconds, f"{option} ({cost})"))
    return [text for _, text in sorted(found)]


def _options(model: "MultiOutputGP", plan: "Plan") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the options that may make a fit faster, each with the parameters that it sets."""
    params = model.get_params(deep=False)
    if params["latent_learner"] != "auto":
        yield "--learner auto", {"latent_learner": "auto"}
    if "n_members" in params:
        yield f"--members {FEW_MEMBERS}", {"n_members": FEW_MEMBERS}
    if "n_latents" in params and plan.n_outputs > FEW_LATENTS:
        yield f"--latents {FEW_LATENTS}", {"n_latents": FEW_LATENTS}
    if params["conditioning"] != "auto":
        yield f"--conditioning {FEW_NEIGHBOURS}", {"conditioning": FEW_NEIGHBOURS}
