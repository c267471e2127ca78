"""Every piece of code on every page runs as it is printed, and prints what the page says."""

import shutil
import subprocess

import pytest
from code_blocks import PAGES, agree, blocks, run

ALLOWED = {"needs a GPU", "needs an ATMS granule", "takes minutes", "gpytorch is not here"}
MOST = 6  # blocks that may go unrun on all pages together
OVERLOOKED = {"py", "python3", "pycon", "bash", "shell", "console", "R"}  # other names of ours


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # GPyTorch uses what is
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run is None and (block.language == "python" or block.is_command):
            said = run(block, names)
            if block.output is not None:
                assert agree(said, block.output), f"{block} prints\n{said}not\n{block.output}"


def test_what_is_not_run_says_why_and_is_little():
    unrun = [block for page in PAGES for block in blocks(page) if block.not_run]
    assert {block.not_run for block in unrun} <= ALLOWED
    assert len(unrun) <= MOST, "\n".join(map(str, unrun))


def test_no_code_is_overlooked():
    strange = [b for page in PAGES for b in blocks(page) if b.language in OVERLOOKED]
    assert not strange, "call it python, sh or r:\n" + "\n".join(map(str, strange))
    fences = sum(page.read_text("utf-8").count("```python\n") for page in PAGES)
    assert fences == sum(b.language == "python" for page in PAGES for b in blocks(page))


def test_r_on_the_pages_says_what_they_say(tmp_path, monkeypatch):
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


def test_a_wrong_number_on_a_page_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\n```\n\n```python\nprint(x)\n```\n\n```text\n3\n```\n")
    names = {}
    said = [run(block, names) for block in blocks(page)]
    assert said == ["", "2\n"]
    assert not agree(said[1], blocks(page)[1].output)
