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
    # MathJax from a package, not from a CDN: formulas need no network, and readers stay unseen
    "sphinx-mathjax-offline",
    "sphinx_design",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = f"dpselect {release}"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}
html_static_path = ["_static"]
html_css_files = ["dpselect.css"]
html_show_sourcelink = False
html_sidebars = {"changes": []}
# formulas of the size of the text: long ones shall fit into a line
mathjax3_config = {"chtml": {"matchFontHeight": False}}

autosummary_generate = True
# what scikit-learn gives to every estimator is documented there
SCIKIT_LEARN = (
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "DensityMixin",
    "TransformerMixin",
    "OneToOneFeatureMixin",
    "SelectorMixin",
    "MetaEstimatorMixin",
    "_MetadataRequester",
    "_SetOutputMixin",
    "Pipeline",
)
# and what Python gives to texts and errors, there
PYTHON = ("StrEnum", "str", "RuntimeError", "ValueError", "UserWarning")
METHODS = ("decision_function", "fit", "predict", "predict_proba", "score", "transform")
autodoc_default_options = {
    "members": True,
    "inherited-members": ", ".join((*SCIKIT_LEARN, *PYTHON)),
    "exclude-members": ", ".join(f"set_{method}_request" for method in METHODS),
}
# docstrings say what types are, in words
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# a page for each name, beside the links of the guide
toc_object_entries = False

# the names of scikit-learn that these pages use, in a file: a build needs no network
intersphinx_mapping = {"sklearn": ("https://scikit-learn.org/stable", "scikit_learn.inv")}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "show_memory": False,
    "write_computation_times": False,  # a page with scripts from a CDN
    "abort_on_example_error": True,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    # each name's page ends with the examples that use it, and code in examples links to these pages
    "doc_module": ("dpselect",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"dpselect": None},
}
# what an example shows is in its text; a warning is a defect of the example
warnings.simplefilter("error", category=UserWarning)
