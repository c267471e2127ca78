"""How Sphinx makes the site of these pages: `make docs`."""

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
# Of packages whose documentation is elsewhere: building needs no network.
nitpick_ignore_regex = [("py:class", r"(collections|numpy|pandas)\..*")]
default_role = "code"  # docstrings mark code as Markdown does, with one backtick

# Pages are Markdown that a repository shows as it is; anchors are those it gives to headings.
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # shapes are in the docstrings; signatures stay readable
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False  # types of parameters are sentences, not names of classes
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

matplotlib.use("Agg")
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",  # all of them run
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "thumbnail_size": (640, 448),
    "min_reported_time": 1e9,  # times of this machine are no news
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
