"""`emgpr demo`: prints the table and draws the maps; its numbers are checked in tests/frozen."""

from matplotlib.figure import Figure

from emgpr.experiments import demo, jura

from .commands import succeed


def test_the_table_is_printed_and_the_figure_written(tmp_path, monkeypatch):
    jobs = jura.cadmium_jobs({name: {} for name in ("GP", "EMGPR")}, restarts=1)
    results = {"mae": 0.5, "errors": [0.5] * 100, "seconds": 1.0, "notes": []}
    monkeypatch.setattr(demo, "compare", lambda verbose: [job | results for job in jobs])
    monkeypatch.setattr(demo, "draw_maps", lambda verbose: Figure())
    result = succeed("demo", "--out", tmp_path / "new")
    assert "| GP       | 0.5" in result.stdout
    figure = tmp_path / "new" / "jura.png"
    assert result.stdout.endswith(f"with their standard deviations: {figure}\n")
    assert figure.stat().st_size > 500
    assert result.stderr == ""  # no progress, since stderr is not a terminal
