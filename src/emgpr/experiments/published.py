"""The paper's numbers, as data."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """`published.toml`: a value, its sd, a time and where it stands, by table and method.

    >>> published()["jura"]["GP"]["mae"], published()["jura"]["GP"]["where"]
    (0.5739, 'Table 1, right half, row 1')
    """
    return tomllib.loads((files(__package__) / "published.toml").read_text(encoding="utf-8"))
