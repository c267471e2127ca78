"""Write the frozen files with the version of emgpr that is imported; see README.md.

python -m tests.frozen.freeze
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

from .answers import Answers, answers
from .cases import CASES, Case, build
from .commands import COMMANDS, outcome, prefixed, prepare
from .storage import DATA, write
from .studies import STUDIES, study
from .tables import table


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


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for name in CASES:
        freeze_case(name)
    for name in STUDIES:
        freeze_study(name)
    freeze_commands()


if __name__ == "__main__":
    main()
