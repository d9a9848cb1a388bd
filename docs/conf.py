"""How the documentation becomes a site: `scripts/docs`. Pages are Markdown; the reference comes from docstrings."""

from __future__ import annotations

from seatrial._version import __version__

project = "seatrial"
author = "the seatrial authors"
copyright = "the seatrial authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "README.md"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
html_theme = "furo"
html_title = f"seatrial {__version__}"
