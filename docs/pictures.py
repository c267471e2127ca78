"""Draw the images on the page pictures.md by running its code; `make pictures` runs this script."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

HERE = Path(__file__).parent
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*!\[[^\]]*\]\(([^)]+)\))?", re.DOTALL)
N_COLOURS = 96  # in an image; the file is a third as large as with all colours


def main() -> None:
    """Run each code block in turn, and save its figure as the image that follows the block."""
    names: dict[str, object] = {}
    for code, image in BLOCK.findall((HERE / "pictures.md").read_text("utf-8")):
        exec(compile(code, "pictures.md", "exec"), names)
        if image:
            path = HERE / image
            path.parent.mkdir(parents=True, exist_ok=True)
            plt.gcf().savefig(path, dpi=65)
            Image.open(path).convert("RGB").quantize(N_COLOURS).save(path, optimize=True)
            print(path)
        plt.close("all")


if __name__ == "__main__":
    main()
