"""Names of rows in messages about a file: lines of a text file, or rows of a sheet."""

from collections.abc import Sequence

from emgpr.io.files import PathLike, existing_file, file_ending
from emgpr.io.registry import TABLE_FORMATS


def rows_in_file(path: PathLike, rows: Sequence[int], **layout: str | None) -> str:
    """Name rows of a table as a person finds them in its file.

    `rows` are positions in the table that `read_table` returns, counted from 0. `layout` are the
    separator, decimal mark and encoding of a text file (see `read_table`).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sites.csv"
    ...     _ = file.write_text("# Jura\\nx,Cd\\n1,0.5\\n\\n2,0.7\\n")
    ...     rows_in_file(file, [0, 1])
    'lines 3, 5'
    """
    file = existing_file(path)
    file_format = TABLE_FORMATS[file_ending(path, TABLE_FORMATS)]
    numbers = file_format.row_numbers(file, rows, **(layout if file_format.is_text else {}))
    words = file_format.row_words.format(", ".join(map(str, numbers)))
    noun, _, rest = words.partition(" ")
    return f"{noun}{'s' * (len(numbers) > 1)} {rest}"
