"""Settings of Sphinx for `make docs`, which copies the pages and this folder into one and builds it."""

import os

import manyfit

project = "manyfit"
author = copyright = "the manyfit developers"
version = release = manyfit.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.mermaid",
]
# Labels of scikit-learn's user guide, in docstrings that classes inherit. A build without a network has none.
if os.environ.get("MANYFIT_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {"sklearn": ("https://scikit-learn.org/stable", None)}
suppress_warnings = ["ref.ref", "ref.doc", "ref.term", "ref.footnote", "ref.citation"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
autosummary_generate = True
templates_path = ["templates"]
exclude_patterns = ["templates"]
autodoc_typehints = "none"  # the docstrings have them
numpydoc_show_class_members = False

# The examples run while the site is built; an example that fails ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "../../examples/gallery",  # from build/pages
    "gallery_dirs": "gallery",
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_",),
    "copyfile_regex": "",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "manyfit"
html_static_path = ["_static"]
html_css_files = ["manyfit.css"]
html_show_sourcelink = False
html_sidebars = {"*": [], "reference/*": ["sidebar-nav-bs"]}
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "pygments_light_style": "tango",  # lines of a diff are red and green
    "pygments_dark_style": "monokai",
}


def read_as_one_folder(app, name, text):
    """Rewrite links between the README and the pages, which lie in one folder here."""
    text[0] = text[0].replace("](docs/", "](").replace("](../", "](")


def setup(app):
    """Connect to Sphinx's events."""
    app.connect("source-read", read_as_one_folder)
