"""Tables as Parquet files."""

from pathlib import Path

import pandas as pd

from emgpr.io.base import TableFormat


def _write(table: pd.DataFrame, path: Path) -> None:
    table.to_parquet(path, index=False)


FORMAT = TableFormat(
    name="Parquet",
    endings=(".parquet", ".pq"),
    packages=("pyarrow",),
    extra="parquet",
    read=pd.read_parquet,
    write=_write,
)
