"""Sphinx configuration: ``python -m sphinx -W --keep-going -b html doc doc/_build``."""

import re
import sys
import warnings
from pathlib import Path

import dpselect

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_style

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
    "sphinx_copybutton",
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
html_js_files = ["dpselect.js"]
html_search_scorer = str(Path(__file__).parent / "search_scorer.js")
html_show_sourcelink = False
html_sidebars = {"changes": []}
# formulas of the size of the text: long ones shall fit into a line
mathjax3_config = {"chtml": {"matchFontHeight": False}}
# of an example the input is copied, without prompts; of other blocks all lines
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

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


def short_signature(app, what, name, obj, options, signature, returns):
    """Keep a signature to about two lines: all parameters are explained below it, with defaults."""
    most = 110
    if signature and len(signature) > most:
        kept = signature[:most].rpartition(", ")[0]
        signature = f"{kept}, ...)"
    return signature, returns


def breakable_title(app, pagename, templatename, context, doctree):
    """Let the title of an API page break between its words, on a phone."""
    if pagename.startswith("api/") and "body" in context:
        title = re.search(r"<h1>(.*?)<a ", context["body"])
        if title:
            words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=_)", "<wbr>", title[1])
            context["body"] = context["body"].replace(title[0], f"<h1>{words}<a ", 1)


def setup(app):
    app.connect("autodoc-process-signature", short_signature)
    app.connect("html-page-context", breakable_title)


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
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    # each name's page ends with the examples that use it, and code in examples links to these pages
    "doc_module": ("dpselect",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"dpselect": None},
    # pictures that can be read on a light and on a dark page
    "reset_modules": ("matplotlib", "gallery_style.reset"),
}
# what an example shows is in its text; a warning is a defect of the example
warnings.simplefilter("error", category=UserWarning)
# but for examples that show how much is too much noise
warnings.filterwarnings("ignore", "n epsilon over the length of the noise")
