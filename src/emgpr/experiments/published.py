"""The numbers published in the paper."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """Return the errors, standard deviations and times in `published.toml`, with their sources.

    >>> published()["jura"]["GP"]["mae"], published()["jura"]["GP"]["where"]
    (0.5739, 'Table 1, right half, row 1')
    """
    return tomllib.loads((files(__package__) / "published.toml").read_text(encoding="utf-8"))
