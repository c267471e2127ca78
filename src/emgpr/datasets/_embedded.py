"""The files in data/: their tables, and what SOURCES.md says of them."""

from importlib.resources import as_file, files

import pandas as pd

_DATA = files(__package__) / "data"


def table(name: str) -> pd.DataFrame:
    """One embedded CSV file, gzipped or not, as it is."""
    with as_file(_DATA / name) as path:
        return pd.read_csv(path)


def description(title: str) -> str:
    """The section of SOURCES.md under `## title`, without the heading."""
    sources = (_DATA / "SOURCES.md").read_text(encoding="utf-8")
    after = sources.partition(f"\n## {title}\n")[2]
    return after.partition("\n## ")[0].strip()
