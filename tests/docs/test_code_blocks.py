"""Every code block of every page runs as it is printed, and prints what the page shows."""

import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.docs.code_blocks import PAGES, agree, blocks, run_page

pytestmark = pytest.mark.slow

REASONS = {"needs a GPU", "needs an ATMS granule", "takes minutes", "gpytorch is not here"}
MAX_NOT_RUN = 6  # blocks of all pages together
OTHER_NAMES = {"py", "python3", "pycon", "bash", "shell", "console", "R"}  # of languages we run
SLOW = {"README.md", "command-line.md", "dask.md", "pictures.md"}


@pytest.fixture(scope="module")
def processes():
    """Return a source of processes without the checks of array shapes, which take most of the time.

    Each is forked from a server that has imported the package, so that it starts at once.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["emgpr.cli", "emgpr.estimators", "emgpr.plots"])
    return context


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in SLOW else [])
        for page in PAGES
        if any(block.is_run for block in blocks(page))
    ],
)
def test_the_page_runs_from_top_to_bottom(page, processes, tmp_path):
    """Each page has a process of its own: no page relies on what another has done."""
    with ProcessPoolExecutor(1, mp_context=processes) as process:
        differences = process.submit(run_page, page, tmp_path).result()
    assert not differences, "\n".join(differences)


def test_few_blocks_are_not_run_and_each_gives_the_reason():
    not_run = [block for page in PAGES for block in blocks(page) if block.not_run]
    assert {block.not_run for block in not_run} <= REASONS
    assert len(not_run) <= MAX_NOT_RUN, "\n".join(map(str, not_run))


def test_no_block_is_overlooked():
    other = [b for page in PAGES for b in blocks(page) if b.language in OTHER_NAMES]
    assert not other, "name the language python, sh or r:\n" + "\n".join(map(str, other))
    fences = sum(page.read_text("utf-8").count("```python\n") for page in PAGES)
    assert fences == sum(b.language == "python" for page in PAGES for b in blocks(page))


def test_r_blocks_print_what_the_pages_show(tmp_path, monkeypatch):
    if shutil.which("Rscript") is None:
        pytest.skip("no R here (Debian: r-cran-gstat)")
    if subprocess.run(["Rscript", "-e", "library(gstat)"], capture_output=True).returncode:
        pytest.skip("R is here, gstat is not (Debian: r-cran-gstat)")
    monkeypatch.chdir(tmp_path)
    for block in (b for page in PAGES for b in blocks(page) if b.language == "r"):
        done = subprocess.run(["Rscript", "-e", block.code], capture_output=True, text=True)
        assert done.returncode == 0, f"{block}: {done.stderr}"
        assert agree(done.stdout, block.output), f"{block} prints {done.stdout}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```python\nx = 1\n```\n", [("python", "x = 1\n", None, None)]),
        ("```sh\nemgpr demo\n```\n\n```text\n4\n```\n", [("sh", "emgpr demo\n", "4\n", None)]),
        ("<!-- not run: no GPU -->\n```python\n1\n```\n", [("python", "1\n", None, "no GPU")]),
        ("<!-- run with numpy -->\n```python\n1\n```\n", [("python", "1\n", None, None)]),
        ("<!-- run with q0 -->\n```sh\n1\n```\n", [("sh", "1\n", None, "q0 is not here")]),
        ("```{toctree}\nindex\n```\n", []),
    ],
)
def test_blocks_are_found(text, found, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert [(b.language, b.code, b.output, b.not_run) for b in blocks(page)] == found


def test_a_wrong_number_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\n```\n\n```python\nprint(x)\n```\n\n```text\n3\n```\n")
    [difference] = run_page(page, tmp_path)
    assert difference.endswith("line 6 prints\n2\nnot\n3\n")


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nimport warnings\nwarnings.warn('outdated')\n```\n", "UserWarning: outdated"),
        ("```sh\nemgpr fit missing.csv -x a -y b -o m.emgpr\n```\n", r"missing\.csv"),
    ],
)
def test_errors_warnings_and_failing_commands_are_noticed(block, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises(AssertionError, match=rf"page\.md, line 2:[\s\S]*{reason}"):
        run_page(page, tmp_path)
