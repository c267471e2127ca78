"""Reading of the tables in the folder data, and of their descriptions in SOURCES.md."""

from importlib.resources import as_file, files

import pandas as pd

_DATA = files(__package__) / "data"


def read_embedded(name: str) -> pd.DataFrame:
    """Read a CSV file, which may be gzipped, from the `data` folder."""
    with as_file(_DATA / name) as path:
        return pd.read_csv(path)


def read_description(title: str) -> str:
    """Return the section of SOURCES.md under `## title`, without the heading."""
    sources = (_DATA / "SOURCES.md").read_text(encoding="utf-8")
    section = sources.partition(f"\n## {title}\n")[2]
    return section.partition("\n## ")[0].strip()
