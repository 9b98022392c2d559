"""Arrows between the rooms of the library point downwards: imports have no circle."""

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


def rooms(sources):
    """Which rooms each room imports; a room is a module or folder at the top of the library.

    `sources` maps paths, such as ("linear_model", "svc"), to source code.
    """
    graph = {}
    for path, source in sources.items():
        graph.setdefault(path[0], set()).update(target[0] for target in imported(source, path))
    return {room: targets - {room} for room, targets in graph.items()}


def order(graph):
    return list(TopologicalSorter(graph).static_order())


@pytest.fixture(scope="module")
def graph():
    return rooms({
        path.relative_to(PACKAGE).with_suffix("").parts: path.read_text()
        for path in PACKAGE.rglob("*.py")
    })


def test_no_circles(graph):
    below = order(graph)
    assert below.index("noise") < below.index("mechanisms") < below.index("linear_model")
    assert below.index("model_selection") < below.index("__init__")


def against(plan, graph):
    """Imports of a room from one that stands before it in the plan."""
    return [(a, b) for i, b in enumerate(plan) for a in plan[i:] if b in graph[a]]


def test_the_plan_of_the_house_is_true(graph):
    _, columns, table, *_ = re.split(r"^(=+) +=+$", CONTRIBUTING.read_text(), flags=re.MULTILINE)
    plan = re.findall(r"``(\w+)``", "".join(line[: len(columns)] for line in table.splitlines()))
    assert len(plan) > 15 and against(plan, graph) == []
    assert ("mechanisms", "noise") in against(plan[::-1], graph)


def test_a_circle_is_found():
    sources = {
        ("noise", "draws"): "from ..mechanisms import selection",
        ("mechanisms", "selection"): "def late():\n    from .. import noise",
    }
    with pytest.raises(CycleError):
        order(rooms(sources))
