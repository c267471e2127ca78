"""Write the frozen files with the version of emgpr that is imported; see README.md.

python -m tests.frozen.freeze           writes all files
python -m tests.frozen.freeze changed   writes data/refitted: what this version fits differently
"""

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from .answers import Answers, answers
from .cases import CASES, Case, build
from .commands import COMMANDS, outcome, prefixed, prepare
from .storage import AFRESH, DATA, REFITTED, Frozen, differences, read, write
from .studies import STUDIES, study
from .tables import table

# Where the optimum is reached by another way, these may differ and predictions do not: signs and
# rotations of weights and latents, hyper-parameters along flat directions, draws, iterations.
NOT_COMPARED = (
    "sample", "latents/", "fitted/weights_", "fitted/thetas", "fitted/bounds", "fitted/history",
    "fitted/n_iter_", "fitted/converged_",
)  # fmt: skip


def compared(name: str) -> bool:
    return not name.startswith(NOT_COMPARED)


def fit(case: Case) -> Any:
    """The model of a case; what its fit warns of is not frozen."""
    data = table(case.table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(case).fit(data.X, data.Y)


def freeze_case(name: str) -> None:
    case = CASES[name]
    model = fit(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(DATA / f"{name}.npz", answers(case, model, table(case.table)))
        model.save(DATA / f"{name}.emgpr")


def freeze_study(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(DATA / f"study-{name}.npz", study(name))


def freeze_commands() -> None:
    """Outcomes of all commands, which use models that were frozen before."""
    found: Answers = {}
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            found |= dict(prefixed(name, outcome(command, Path(folder))))
    write(DATA / "commands.npz", found)


def freeze_changed() -> None:
    """Write the answers of cases, studies and commands that this version fits differently."""
    AFRESH.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name, case in CASES.items():
        found = answers(case, fit(case), table(case.table))
        _write_if_changed(name, found, read(DATA / f"{name}.npz"))
    for name in STUDIES:
        _write_if_changed(f"study-{name}", study(name), read(DATA / f"study-{name}.npz"))
    recorded, changed = read(DATA / "commands.npz"), {}
    for name, command in COMMANDS.items():
        if not command.fits:
            continue
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            found = dict(prefixed(name, outcome(command, Path(folder))))
        own = {what: one for what, one in recorded.items() if what.startswith(f"{name}: ")}
        if differences(found, own, REFITTED):  # printed numbers included
            changed |= found
    write(AFRESH / "commands.npz", changed)


def _write_if_changed(name: str, found: Answers, recorded: Frozen) -> None:
    later = AFRESH / f"{name}.npz"
    later.unlink(missing_ok=True)
    if differences(found, recorded, REFITTED, compared):
        write(later, {what: one for what, one in found.items() if compared(what)})


def main() -> None:
    if sys.argv[1:] == ["changed"]:
        freeze_changed()
        return
    DATA.mkdir(exist_ok=True)
    for name in CASES:
        freeze_case(name)
    for name in STUDIES:
        freeze_study(name)
    freeze_commands()


if __name__ == "__main__":
    main()
