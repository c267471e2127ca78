"""Draws the images of pictures.md, by running the code on that page: `make pictures`."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

HERE = Path(__file__).parent
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*!\[[^\]]*\]\(([^)]+)\))?", re.DOTALL)


def main() -> None:
    """Each block in turn; the figure it leaves is the image that follows it."""
    names: dict[str, object] = {}
    for code, image in BLOCK.findall((HERE / "pictures.md").read_text("utf-8")):
        exec(compile(code, "pictures.md", "exec"), names)
        if image:
            path = HERE / image
            path.parent.mkdir(parents=True, exist_ok=True)
            plt.gcf().savefig(path, dpi=65)
            Image.open(path).convert("RGB").quantize(96).save(path, optimize=True)  # a third
            print(path)
        plt.close("all")


if __name__ == "__main__":
    main()
