"""Writing of figures to files."""

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from emgpr.io.files import replace_when_complete


def save_figure(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure to a file, in the format given by its ending.

    The figure is drawn in memory, because Matplotlib hides some errors that occur in writing.
    """
    content = BytesIO()
    figure.savefig(content, dpi=dpi, format=path.suffix[1:].lower())
    with replace_when_complete(path) as draft:
        draft.write_bytes(content.getbuffer())
