"""The figure of errors against training times on Jura, and of the growth of training times."""

from pathlib import Path
from typing import Any

from benchmarks.run import REFERENCE

Entry = dict[str, Any]


def draw(problems: dict[str, list[Entry]], folder: Path) -> Path:
    """Draw three panels from the entries of all problems, and return the path of the figure."""
    from matplotlib.figure import Figure

    shown = {n: found for n, found in problems.items() if n == "jura" or n.startswith("simulated-")}
    entries_shown = (entry for entries in shown.values() for entry in entries)
    methods = list(dict.fromkeys(entry["method"] for entry in entries_shown))
    style = {method: _style(method, i) for i, method in enumerate(methods)}
    canvas = Figure(figsize=(13, 5), layout="constrained")
    left, middle, right = canvas.subplots(1, 3)

    for entry in problems.get("jura", []):
        if entry["status"] == "ok":
            x, y = entry["ratio_fit_s"], entry["error"][0]
            left.plot(x, y, markersize=9, linestyle="", **style[entry["method"]])
    left.axvline(1.0, color="0.8", zorder=0)
    left.set(xscale="log", xlabel="training time ÷ independent GPs", ylabel="MAE of Cd (mg/kg)")
    left.set(title="Jura: left and low is better")

    by_size = {
        tuple(map(int, name.removeprefix("simulated-").split("x"))): entries
        for name, entries in problems.items()
        if name.startswith("simulated-")
    }
    by_N = {N: entries for (N, D), entries in by_size.items() if D == 3}
    by_D = {D: entries for (N, D), entries in by_size.items() if N == 200}
    for ax, sizes, letter, title in (
        (middle, by_N, "N", "Simulated, D = 3"),
        (right, by_D, "D", "Simulated, N = 200"),
    ):
        for method in methods:
            points = [
                (size, entry["fit_s"])
                for size, entries in sorted(sizes.items())
                for entry in entries
                if entry["method"] == method and entry["status"] == "ok"
            ]
            if points:
                ax.plot(*zip(*points, strict=True), linewidth=1.2, **style[method])
        ax.set(xscale="log", yscale="log", xlabel=letter, ylabel="training (s)", title=title)
        ax.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
        ax.minorticks_off()

    handles = [left.plot([], [], linestyle="", label=m, **style[m])[0] for m in methods]
    canvas.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    path = folder / "benchmarks.png"
    canvas.savefig(path, dpi=140)
    return path


def _style(method: str, i: int) -> dict[str, Any]:
    """Return the style of a method: discs for emgpr, squares for the reference, else triangles."""
    from matplotlib import colormaps

    ours = method.startswith("emgpr")
    return {
        "color": colormaps["tab20"](2 * i % 20 + i // 10),  # ten dark colours, then ten light
        "marker": "o" if ours else "s" if method == REFERENCE else "^",
    }
