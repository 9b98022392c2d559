"""The documentation lists every public name. Its code blocks run as doctests of their own."""

import ast
import doctest
import math
import re
import sys
import warnings
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

import dpselect

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
import learned_ranges  # noqa: E402
import weak_model  # noqa: E402

DOC = ROOT / "doc"
PACKAGE = Path(dpselect.__file__).parent
CLAIMS, SOURCES = (DOC / "develop" / f"{name}.rst" for name in ("claims", "sources"))
MODULES = (
    "",
    "accounting",
    "audit",
    "base",
    "export",
    "mechanisms",
    "metrics",
    "noise",
    "preprocessing",
    "records",
    "testing",
)


def public_names(name):
    """Those in `__all__`, or else the classes of a module for authors, or else its functions."""
    module = import_module(f"dpselect.{name}".rstrip("."))
    own = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    classes = [key for key, value in own.items() if isinstance(value, type)]
    return getattr(module, "__all__", None) or classes or list(own)


@pytest.mark.parametrize("module", MODULES)
def test_the_api_page_lists_every_public_name(module):
    names = public_names(module)
    page = (DOC / "api.rst").read_text()
    listed = {*re.findall(r"^   ([\w.]+)$", page, re.MULTILINE), *re.findall(r"``([\w.]+)``", page)}
    prefix = f"{module}." if module else ""
    assert not {f"{prefix}{name}" for name in names if name not in MODULES} - listed


# what a build writes or fills in, and the examples, which are programs
NOT_PAGES = {"_build", "_templates", "api", "auto_gallery", "gallery", "sg_execution_times.rst"}


def pages():
    return [page for page in DOC.rglob("*.rst") if page.relative_to(DOC).parts[0] not in NOT_PAGES]


def guide():
    """The pages of the guide, in the order of its sidebar."""
    listed = re.findall(r"^   ([\w/]+)$", (DOC / "guide.rst").read_text(), re.MULTILINE)
    return [DOC / f"{name}.rst" for name in listed]


def prose(text):
    """The words of a page but for code, tables and formulas.

    These stand deeper than the line that opens them, which is a directive (``.. list-table::``) or
    a line that ends with two colons. Tables that are drawn go from a line of equal signs with gaps to
    the last such line.
    """
    text = re.sub(r"^(=+ [= ]+\n)(.*\n)*?\1(?=\n|\Z)", "", text, flags=re.MULTILINE)
    words, opened = [], math.inf
    for line in filter(str.strip, text.splitlines()):
        indent = len(line) - len(line.lstrip())
        if indent > opened:
            continue
        directive = line.lstrip().startswith(".. ")
        opened = indent if directive or line.endswith("::") else math.inf
        words += [] if directive else line.split()
    return words


def test_a_page_of_the_guide_answers_in_1500_words():
    assert len(guide()) > 30
    long = {page.name: len(prose(page.read_text())) for page in guide()}
    assert not {name: n for name, n in long.items() if n > 1500}
    assert (
        prose("One two::\n\n    code\n\nthree\n\n.. note::\n\n   no\n\nfour")
        == "One two:: three four".split()
    )
    assert prose("a\n\n==  ==\nx   y\n==  ==\n1   2\n==  ==\n\nb") == ["a", "b"]


def test_every_page_is_in_the_guide():
    others = {"index.rst", "guide.rst", "api.rst", "changes.rst"}
    assert sorted(page.name for page in guide()) == sorted(
        page.name for page in DOC.glob("*.rst") if page.name not in others
    )
    text = (DOC / "guide.rst").read_text()
    assert re.findall(r"^- :doc:`[A-Z].*\? <(\w+)>`$", text, re.MULTILINE) == [
        page.stem for page in guide()
    ]


# what readers look for, and the page that answers; an entry of the index comes first in a search
LOOKED_FOR = {
    "survey weights": "survey_weights",
    "feature importance": "intervals",
    "confidence interval": "intervals",
    "fbeta": "evaluation",
    "icd codes": "weak_model",
    "few records": "weak_model",
    "yearly report": "yearly_report",
    "randomizedsearchcv": "sampled_candidates",
    "optuna": "sampled_candidates",
    "cross_val_score": "sampled_candidates",
    "several rows per person": "persons",
    "threshold": "thresholds",
    "histogram": "density",
    "missing values": "dates_and_gaps",
    "budget": "ledger",
    "parquet": "big_tables",
    "which epsilon": "epsilon",
}


def test_what_readers_look_for_is_an_entry_of_the_page_that_answers():
    for words, name in LOOKED_FOR.items():
        entries = re.findall(r"^\.\. index:: (.*)$", (DOC / f"{name}.rst").read_text(), re.MULTILINE)
        assert f"!{words}" in [each.strip().lower() for line in entries for each in line.split(",")], (
            words
        )


def untested(config):
    """The pages of which the code is not run by the tests of this configuration."""
    parser = ConfigParser()
    parser.read_string(config)
    tested = {
        page
        for pattern in parser["tool:pytest"]["testpaths"].split()
        for page in DOC.parent.glob(pattern)
    }
    return {page.name for page in pages() if page not in tested}


def test_the_code_of_every_page_runs():
    config = (DOC.parent / "setup.cfg").read_text()
    assert not untested(config)
    assert "rows.rst" in untested(config.replace("doc/develop/*.rst", ""))


def test_no_page_shows_code_that_does_not_run():
    assert len(pages()) > 20
    for page in pages():
        assert not re.search(r"code(-block)?:: *python", page.read_text()), page.name


def test_links_to_scikit_learn_go_to_names_that_it_has():
    lines = (DOC / "scikit_learn.inv").read_text().splitlines()[3:]
    assert lines
    for name, kind, page in (line.split() for line in lines):
        module, _, own = name.rpartition(".")
        assert isinstance(getattr(import_module(module), own), type) == (kind == "class"), name
        assert page == f"modules/generated/{name}.html"


# what fits on folds that are stratified for a classifier, unless it is told otherwise
ON_FOLDS = {
    "GridSearchCV",
    "RandomizedSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "RFECV",
    "SequentialFeatureSelector",
    "StackingClassifier",
    "CalibratedClassifierCV",
    "TunedThresholdClassifierCV",
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "learning_curve",
    "validation_curve",
    "permutation_test_score",
}


def stratified_by_default(source):
    """The calls in a program that leave scikit-learn its stratified folds."""
    for node in ast.walk(ast.parse(source)):
        name = isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ON_FOLDS:
            folds = next((ast.unparse(word.value) for word in node.keywords if word.arg == "cv"), None)
            if folds is None or not folds.startswith("KFold("):
                yield ast.unparse(node)


def programs():
    """All code that documentation shows: pages, docstrings, the gallery."""
    parser = doctest.DocTestParser()
    for page in [*DOC.parent.glob("*.rst"), *pages()]:
        yield page, "".join(example.source for example in parser.get_examples(page.read_text()))
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.Module)):
                examples = parser.get_examples(ast.get_docstring(node) or "")
                yield path, "".join(example.source for example in examples)
    yield from ((path, path.read_text()) for path in DOC.glob("gallery/*/*.py"))


def test_no_example_stratifies():
    """But for a model that is not private, and is shown to be replaced."""
    shown = {(path.name, call) for path, source in programs() for call in stratified_by_default(source)}
    assert {name for name, _ in shown} <= {"migrating.rst"}
    assert all("GridSearchCV(model, {'logisticregression__C'" in call for _, call in shown)


@pytest.mark.slow
def test_an_example_that_stratifies_is_found():
    assert [*stratified_by_default("cross_validate(model, X, y, cv=5)\nms.GridSearchCV(m, g)")]
    assert not [*stratified_by_default("cross_validate(model, X, y, cv=KFold(5))")]
    assert sum("KFold" in source for _, source in programs()) >= 4


def test_the_estimator_for_authors_is_scikit_learns(monkeypatch):
    examples = doctest.DocTestParser().get_examples((DOC / "develop" / "estimator.rst").read_text())
    module = ModuleType("own_estimator")
    # pickles look for the class in its module
    monkeypatch.setitem(sys.modules, "own_estimator", module)
    for example in examples:
        exec(example.source, vars(module))  # noqa: S102
        if "class SignedMean(" in example.source:
            break
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of labels that are learned
        results = check_estimator(module.SignedMean())
    assert len(results) > 40 and {result["status"] for result in results} <= {"passed", "skipped"}


def test_what_learned_ranges_gain_is_what_was_measured():
    results = pd.read_csv(learned_ranges.RESULTS)
    assert (DOC / "learned_ranges.inc").read_text() == learned_ranges.report(results)


def test_what_helps_a_weak_model_is_what_was_measured():
    results = pd.read_csv(weak_model.RESULTS)
    assert (DOC / "weak_model.inc").read_text() == weak_model.report(results)
    assert set(results["table"]) == set(weak_model.ORDERS)


def test_from_a_file_to_a_model_in_eight_lines(tmp_path, monkeypatch):
    """The first block of "Getting started" needs no number but what the schema says of the columns."""
    page = (DOC / "getting_started.rst").read_text()
    (block,) = [part for part in page.split(".. code-block:: pycon") if "pd.read_csv(file)" in part]
    block = block.split(">>> others")[0]  # what follows predicts
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(block))
    assert len(source.splitlines()) <= 8
    numbers = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    ]
    assert sorted(numbers) == [0, 0.5, 18, 90, 1e6]  # bounds, and epsilon

    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(
        "age,ill,income,work\n"
        + "".join(
            f"{18 + i % 73},{'no' if i % 73 < 40 else 'yes'},{i if i % 9 else ''},public\n"
            "20,no,NA,none\n"
            for i in range(2000)
        )
    )
    names = {"pd": pd, "file": "people.csv"}
    exec(source, names)
    table, model = names["table"], names["model"]
    assert model[-1].privacy_.epsilon == 0.5 and table["income"].isna().any()
    assert (model.predict(table[list(names["schema"])]) == table["ill"]).mean() > 0.8


def test_the_number_of_records_that_the_readme_asks_for():
    """600 of two like classes, or ten times as many of which one has 2 %, keep much of the AUC."""
    text = " ".join((DOC.parent / "README.rst").read_text().split())
    assert "at epsilon 1 and 20 columns, 600. If only 2 % of the records are of one class," in text

    def kept(base_rate, n_samples):
        model = dpselect.DPLogisticRegression(1.0, classes=[0, 1], base_rate=base_rate)
        plan = dpselect.StabilityGridSearchCV(model, {}, epsilon=1.0).plan(n_samples, 20)
        return int(re.search(r"keep (\d+)% of the AUC", plan.advice[0])[1])

    assert 70 < kept(0.02, 6000) <= kept(None, 600) < 90
    assert kept(0.02, 600) < 40 and kept(None, 60) < 50 and kept(None, 6000) > 95
    assert "to predict a number, about three times as many" in text
    of_numbers = dpselect.DPHuberRegressor(1.0, target_range=(0, 1))
    (found,) = dpselect.StabilityGridSearchCV(of_numbers, {}).plan(1800, 20).expected_quality
    assert 0.7 < found.median < 0.9


def test_what_stands_behind_each_claim_and_each_item_of_the_sources_exists():
    claims = CLAIMS.read_text() + SOURCES.read_text()
    evidence = re.findall(r"``((?:tests|benchmarks)/[^`.]+\.py)(?:::(\w+))?``", claims)
    assert len(evidence) > 50 and claims.count("``tests/") + claims.count("``benchmarks/") == len(
        evidence
    )
    for file, name in evidence:
        assert f"\ndef {name}" in (DOC.parent / file).read_text(), (file, name)
