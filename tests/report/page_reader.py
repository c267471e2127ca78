"""A report as its readers get it: text, tables with their numbers, and the data of the script."""

import base64
import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import numpy as np


class Reader(HTMLParser):
    """Splits a page into tags, text, scripts and tables."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.scripts, self.tables = [], [], [], {}
        self.table, self.row, self.inside = None, None, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.inside.append(tag)
        if tag == "table":
            self.table = Table()
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th") and self.row is not None:
            self.row.append(Cell(style=attributes.get("class", "")))
        elif tag == "data" and self.row:
            self.row[-1].value = float(attributes["value"])
        elif tag == "script":
            self.scripts.append([attributes, ""])

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass
        if tag == "tr":
            self.table.rows.append(self.row)
            self.row = None
        elif tag == "table":
            self.tables[self.table.caption] = self.table

    def handle_data(self, data):
        last = self.inside[-1] if self.inside else ""
        if last == "script":
            self.scripts[-1][1] += data
        elif last == "style":
            return
        elif "caption" in self.inside:
            self.table.caption += data
        elif self.row:
            self.row[-1].text += data
        self.text.append(data)


@dataclass
class Cell:
    text: str = ""
    value: float | None = None
    style: str = ""


@dataclass
class Table:
    caption: str = ""
    rows: list = field(default_factory=list)

    def column(self, head: str) -> dict:
        """Cells of a column, by the name of their row."""
        i = [cell.text for cell in self.rows[0]].index(head)
        return {row[0].text: row[i] for row in self.rows[1:]}

    def numbers(self, head: str) -> np.ndarray:
        """The numbers of a column, NaN where there is none."""
        cells = self.column(head).values()
        return np.array([np.nan if cell.value is None else cell.value for cell in cells])

    def facts(self) -> dict:
        """Values by name, of a table with two columns."""
        return {row[0].text: row[1] for row in self.rows}


@dataclass(frozen=True)
class Page:
    path: Path
    source: str
    tags: list
    text: str
    scripts: list
    tables: dict

    @classmethod
    def read(cls, path: Path) -> "Page":
        source = path.read_text(encoding="utf-8")
        reader = Reader()
        reader.feed(source)
        text = " ".join("".join(reader.text).split())
        return cls(path, source, reader.tags, text, reader.scripts, reader.tables)

    @property
    def data(self) -> dict:
        """The data of the script."""
        (found,) = [text for attributes, text in self.scripts if attributes.get("id") == "data"]
        return json.loads(found)

    def images(self) -> list[bytes]:
        sources = [attributes["src"] for tag, attributes in self.tags if tag == "img"]
        return [base64.b64decode(source.partition(",")[2]) for source in sources]


def unpack(text: str, dtype: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype).astype(float)
