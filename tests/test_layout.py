"""Arrows between the packages of the library point downwards: imports have no circle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpselect

PACKAGE = Path(dpselect.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.rst"


def imported(source, path):
    """The modules of the library that a module imports, as paths below the library's folder."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = path[: len(path) - node.level]
            if node.module:
                yield (*start, *node.module.split("."))
            else:
                yield from ((*start, name.name) for name in node.names)


def packages(sources):
    """Which packages each package imports; a module or folder at the top is one.

    `sources` maps paths, such as ("linear_model", "svc"), to source code.
    """
    graph = {}
    for path, source in sources.items():
        graph.setdefault(path[0], set()).update(target[0] for target in imported(source, path))
    return {package: targets - {package} for package, targets in graph.items()}


def order(graph):
    return list(TopologicalSorter(graph).static_order())


@pytest.fixture(scope="module")
def graph():
    return packages(
        {
            path.relative_to(PACKAGE).with_suffix("").parts: path.read_text()
            for path in PACKAGE.rglob("*.py")
        }
    )


def test_no_circles(graph):
    below = order(graph)
    assert below.index("noise") < below.index("mechanisms") < below.index("linear_model")
    assert below.index("model_selection") < below.index("__init__")


def against(plan, graph):
    """Imports of a package from one that stands before it in the plan."""
    return [(a, b) for i, b in enumerate(plan) for a in plan[i:] if b in graph[a]]


def test_the_documented_layout_is_true(graph):
    _, columns, table, *_ = re.split(r"^(=+) +=+$", CONTRIBUTING.read_text(), flags=re.MULTILINE)
    plan = re.findall(r"``(\w+)``", "".join(line[: len(columns)] for line in table.splitlines()))
    assert len(plan) > 15 and against(plan, graph) == []
    assert ("mechanisms", "noise") in against(plan[::-1], graph)


def test_a_circle_is_found():
    sources = {
        ("noise", "noise_samples"): "from ..mechanisms import selection",
        ("mechanisms", "selection"): "def late():\n    from .. import noise",
    }
    with pytest.raises(CycleError):
        order(packages(sources))


# of scikit-learn, for those who support its callbacks
HOOKS = {"_init_callback_context"}


def reached_into(source):
    """Private names of other modules that a module uses."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            own.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls", "super()"):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [name.name for name in node.names]
        for name in names:
            if re.match(r"_(?!_)", name) and name not in own | HOOKS:
                yield name


def test_no_module_reaches_into_another():
    found = {path: list(reached_into(path.read_text())) for path in PACKAGE.rglob("*.py")}
    assert not {path.name: names for path, names in found.items() if names}
    assert list(reached_into("from .a import _f\nmodel._noise()")) == ["_f", "_noise"]
    assert not list(reached_into("def _f():\n    self._noise = model._noise\n    super()._g()"))


def writes_of_epsilon(source):
    """Calls that write an epsilon into an estimator, and assignments that do so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("set_params"):
            if any(word.arg == "epsilon" for word in node.keywords):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if node.attr == "epsilon" and ast.unparse(node.value) not in ("self", "arguments"):
                yield ast.unparse(node)


def test_epsilon_is_passed_and_not_written():
    # into what is released with it, and into searches that only make plans
    allowed = {
        ("model_selection", "final_fit"),
        ("model_selection", "plan_grid"),
        ("base", "estimator"),
    }
    found = {
        path.relative_to(PACKAGE).with_suffix("").parts: list(writes_of_epsilon(path.read_text()))
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "testing"  # it changes what a user may
    }
    assert {path for path, calls in found.items() if calls} == allowed
    assert [len(found[path]) for path in sorted(allowed)] == [1, 1, 1]
    assert list(writes_of_epsilon("m.set_params(epsilon=1)\nm.epsilon = 1\nself.epsilon = 1"))[1:] == [
        "m.epsilon"
    ]
