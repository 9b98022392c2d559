"""Sphinx configuration: ``python -m sphinx -W --keep-going -b html doc doc/_build``."""

import warnings

import dpselect

project = "dpselect"
author = copyright = "The dpselect developers"
version = release = dpselect.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst"]
html_theme = "pydata_sphinx_theme"
html_title = "dpselect"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# only what is at hand: a build needs no network
intersphinx_mapping = {}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "show_memory": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
}
# what an example shows is in its text; a warning is a defect of the example
warnings.simplefilter("error", category=UserWarning)
