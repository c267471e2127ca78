"""The site: built without a warning, with every public name and without a broken link."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from tests.docs.code_blocks import PAGES, ROOT

pytestmark = pytest.mark.slow

MODULES = ("emgpr", "datasets", "ensemble", "io", "metrics", "plots", "swath")
QUESTIONS = ("own kernel", "detection limit", "covariate", "negative values", "space-time")
NOT_DESCRIBED = {  # what packages export to each other, and what is described under another name
    "emgpr.__version__",
    "emgpr.ensemble.EnsembleWarning",
    "emgpr.ensemble.drop_failed_members",
    "emgpr.ensemble.keeps_members",
    "emgpr.ensemble.warn_failed_members",
}


def test_the_site_is_built_and_complete(tmp_path):
    """One test, so that parallel workers do not build the site several times."""
    for package in ("sphinx", "myst_parser", "furo", "sphinx_gallery"):
        pytest.importorskip(package)
    site = build(tmp_path)
    pages = {path: Page(path) for path in site.rglob("*.html")}
    check_links(pages)
    check_that_nothing_is_loaded_from_elsewhere(pages)
    check_that_public_names_are_described(pages)
    check_that_gallery_scripts_made_pictures(site)
    check_that_the_search_finds_answers(site)


def build(folder: Path) -> Path:
    """Build the site as `make docs` does, from nothing; this runs the scripts of the gallery."""
    generated = shutil.ignore_patterns("examples", "reference", "__pycache__")
    for part in ("docs", "benchmarks"):
        shutil.copytree(ROOT / part, folder / part, ignore=generated)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    done = subprocess.run(
        [*command, "-d", folder / "doctrees", folder / "docs", folder / "html"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder / "html"


class Page(HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[key] for key in ("id", "name") if given.get(key))
        self.links.update(given[key] for key in ("href", "src") if given.get(key))


def check_links(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.name}: {link}: no such file")
                continue
            anchor = unquote(parts.fragment)
            if target in pages and anchor and anchor not in pages[target].anchors:
                broken.append(f"{path.name}: {link}: no such anchor")
    assert not broken, "\n".join(sorted(broken))
    assert sum(len(page.links) for page in pages.values()) > 1000  # links were found


def check_that_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    """Pages can be read without a network."""
    loaded = re.compile(r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//|@import|<link[^>]*//')
    for path in pages:
        assert not loaded.search(path.read_text(encoding="utf-8")), path.name


def public_names() -> list[str]:
    names = []
    for module in MODULES:
        full = module if module == "emgpr" else f"emgpr.{module}"
        here = importlib.import_module(full)
        own = [
            name
            for name, value in vars(here).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == full
        ]
        assert own or hasattr(here, "__all__")
        names += [f"{full}.{name}" for name in getattr(here, "__all__", own)]
    return names


def check_that_public_names_are_described(pages: dict[Path, Page]) -> None:
    described = set().union(*(page.anchors for page in pages.values()))
    assert set(public_names()) - described == NOT_DESCRIBED
    # Estimators are described with the methods that they inherit.
    methods = ("fit", "predict", "predict_grid", "cross_validate", "save", "sample_y", "score")
    assert {f"emgpr.EMGPR.{method}" for method in methods} <= described


def check_that_gallery_scripts_made_pictures(site: Path) -> None:
    scripts = sorted((ROOT / "docs" / "gallery").glob("*.py"))
    assert len(scripts) >= 6
    for script in scripts:
        assert list((site / "_images").glob(f"sphx_glr_{script.stem}_0*.png")), script.name


def check_that_the_search_finds_answers(site: Path) -> None:
    """All words of a question lead to the page, and a heading contains the question."""
    from sphinx.search.en import SearchEnglish

    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    page, language = index["docnames"].index("questions"), SearchEnglish({})
    headings = [
        title.lower()
        for title, places in index["alltitles"].items()
        if any(number == page for number, _ in places)
    ]
    for question in QUESTIONS:
        assert any(question in heading for heading in headings), question
        # The search ignores frequent words such as "own".
        words = filter(language.word_filter, question.replace("-", " ").split())
        for word in map(language.stem, words):
            found = [index[kind].get(word, []) for kind in ("terms", "titleterms")]
            assert any(page in np.atleast_1d(pages) for pages in found), question


def test_every_question_has_a_heading_and_an_answer():
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    answers = {part.partition("\n")[0].lower(): part for part in parts}
    for question in QUESTIONS:
        (heading,) = [heading for heading in answers if question in heading]
        assert len(answers[heading].split()) > 60


def slug(heading: str) -> str:
    """Return the anchor of a heading, on the site and in a repository.

    >>> slug("Cross-validation, with gaps in `y`")
    'cross-validation-with-gaps-in-y'
    """
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_between_files_lead_to_files_and_headings(page):
    """In the Markdown files, as a repository shows them."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme or link == "examples/index":  # the gallery is made by Sphinx
            continue
        target = page.parent / parts.path if parts.path else page
        assert target.exists(), f"{page.name}: {link}"
        if parts.fragment:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert parts.fragment in map(slug, headings), f"{page.name}: {link}"
