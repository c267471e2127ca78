"""Reading of columns that are copied to another table without being interpreted."""

import warnings

import pandas as pd

from emgpr.io.cells import NUMBER_WITH_COMMA
from emgpr.io.files import PathLike, existing_file, file_ending, read_errors
from emgpr.io.registry import TABLE_FORMATS


def is_text_format(path: PathLike) -> bool:
    """Tell whether tables with the ending of this name are text files, such as CSV.

    >>> is_text_format("sites.csv"), is_text_format("sites.parquet")
    (True, False)
    """
    return TABLE_FORMATS[file_ending(path, TABLE_FORMATS)].read_verbatim is not None


def read_columns_to_copy(path: PathLike, *, as_text: bool, **layout: str | None) -> pd.DataFrame:
    """Read all columns of a table.

    With `as_text`, the cells of a text file are text, exactly as in the file, so that a sample
    number such as 007 is not changed. Numbers with decimal commas are converted, because a table
    must have a single decimal mark. `layout` are the separator, decimal mark and encoding of a text
    file (see `read_table`). Warnings about the file, which it has caused before, are not repeated.
    """
    file_format = TABLE_FORMATS[file_ending(path, TABLE_FORMATS)]
    file = existing_file(path)
    with read_errors(file, file_format.name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = file_format.read(file, **layout) if file_format.is_text else file_format.read(file)
        if file_format.read_verbatim is None or not as_text:
            return table
        verbatim = file_format.read_verbatim(file, **layout)
    for i in range(table.shape[1]):
        column, text = table.iloc[:, i], verbatim.iloc[:, i]
        if pd.api.types.is_numeric_dtype(column) and text.str.contains(",", na=False).any():
            verbatim.isetitem(i, column.to_numpy())
        elif table.attrs.get("decimal_comma"):  # a column with numbers and codes such as "n.d."
            number = text.str.fullmatch(NUMBER_WITH_COMMA.pattern).fillna(False).astype(bool)
            verbatim.isetitem(i, text.where(~number, text.str.replace(",", ".")).to_numpy())
    return verbatim
