"""Sphinx configuration for the documentation site, which `make docs` builds."""

from typing import Any

import matplotlib

from emgpr import __version__

project = "emgpr"
author = "The emgpr developers"
project_copyright = "the emgpr developers, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
nitpicky = True
# Do not require links to the classes of other packages, which would need a network.
nitpick_ignore_regex = [("py:class", r"(collections|numpy|pandas)\..*")]
default_role = "code"  # docstrings mark code as Markdown does, with one backtick

# Headings get the same anchors as in a repository host's view of the Markdown files.
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # shapes are in the docstrings; signatures stay readable
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False  # types of parameters are phrases, not names of classes
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

matplotlib.use("Agg")
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",  # run all examples
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "thumbnail_size": (640, 448),
    "min_reported_time": 1e9,  # do not report running times
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = "emgpr"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
exclude_patterns = ["gallery"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]


def setup(app: Any) -> None:
    """Register `keep_colons`, to be called before napoleon's handler (priority 500)."""
    app.connect("autodoc-process-docstring", keep_colons, priority=400)


def keep_colons(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading "Noise: its variances" as a type and a description.

    Napoleon looks for the type of a property in the first line only, so this function inserts a
    first line that contains only an escaped space.
    """
    if what in ("attribute", "property") and lines:
        lines.insert(0, "\\ ")
