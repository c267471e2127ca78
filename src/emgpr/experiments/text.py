"""Tables as text: Markdown whose columns also line up on a terminal."""

from collections.abc import Mapping, Sequence

NOTHING = "–"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column to the left, the others to the right.

    >>> print(aligned(["Metal", "MAE"], [["Cd", "0.4"], ["Nickel", "12.25"]]))
    | Metal  |   MAE |
    |:-------|------:|
    | Cd     |   0.4 |
    | Nickel | 12.25 |
    """
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return "| " + " | ".join(padded) + " |"

    rule = "|:" + "-" * (widths[0] + 1) + "|"
    rule += "".join("-" * (width + 1) + ":|" for width in widths[1:])
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def figure(value: float | None, form: str) -> str:
    """The number in that format, or a dash where there is none.

    >>> figure(0.25, ".3f"), figure(None, ".3f")
    ('0.250', '–')
    """
    return NOTHING if value is None else format(value, form)


def warned(name: str, notes: Mapping[str, int], n: int, repetitions: str) -> list[str]:
    """A line for each thing that fits of this name warned of.

    >>> warned("EMGPR", {"it did not converge.": 2}, 10, "restarts")
    ['EMGPR, 2 of 10 restarts: it did not converge.']
    """
    return [f"{name}, {count} of {n} {repetitions}: {note}" for note, count in notes.items()]
