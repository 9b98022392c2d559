"""Every public name says what it takes, what it returns and what can go wrong, with an example."""

import inspect
from enum import Enum
from importlib import import_module

import pytest

from dpselect.audit import EpsilonBound, ScoreChange
from dpselect.model_selection import AccuracyPlan, Choice, Problem, SelectionPlan

validate = pytest.importorskip("numpydoc.validate").validate

MODULES = (
    "",
    "accounting",
    "audit",
    "evaluation",
    "mechanisms",
    "metrics",
    "model_selection",
    "noise",
    "preprocessing",
)
# parameters or returned values without a description or a type; no docstring; no example
REQUIRED = {"PR01", "PR02", "PR04", "PR10", "RT01", "GL08", "SS01"}


def public_objects():
    """Yield (name, object, whether it is a class or a function of its own)."""
    for name in MODULES:
        module = import_module(f"dpselect.{name}".rstrip("."))
        listed = getattr(module, "__all__", None) or [
            key
            for key, value in vars(module).items()
            if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        for key in listed:
            value = getattr(module, key)
            full = f"{module.__name__}.{key}"
            if inspect.isclass(value) or inspect.isfunction(value):
                yield full, value, True
            if inspect.isclass(value):
                for part, member in vars(value).items():
                    if not part.startswith("_") and (
                        callable(member) or isinstance(member, (property, classmethod, staticmethod))
                    ):
                        yield f"{full}.{part}", getattr(value, part), False


OBJECTS = {name: (value, own) for name, value, own in public_objects()}


def needs_no_example(value):
    """Errors, abstract bases, and what only functions of this library make."""
    made = (ScoreChange, EpsilonBound, AccuracyPlan, Choice, Problem, SelectionPlan)
    return (
        inspect.isabstract(value)
        or value in made
        or (inspect.isclass(value) and issubclass(value, (Exception, Warning)))
    )


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring(name):
    value, own = OBJECTS[name]
    expected = REQUIRED | ({"EX01"} if own and not needs_no_example(value) else set())
    errors = {code: text for code, text in validate(name)["errors"] if code in expected}
    # how an Enum is called, and what a data class passes on to itself
    if inspect.isclass(value) and issubclass(value, Enum) or "{'_" in errors.get("PR01", ""):
        errors.pop("PR01", None)
    # what overrides a documented method means the same
    if inspect.getdoc(value):
        errors.pop("GL08", None)
    owner = name.rpartition(".")[0]
    if owner in OBJECTS and "GL08" in errors:
        part = name.rpartition(".")[2]
        bases = OBJECTS[owner][0].__mro__[1:]
        if any(getattr(vars(base).get(part), "__doc__", None) for base in bases):
            errors.pop("GL08")
    assert not errors


@pytest.mark.parametrize("name", OBJECTS)
def test_a_signature_fits_a_screen(name):
    """help() writes it on one line: types are named, and not written out."""
    value, _ = OBJECTS[name]
    without = (Enum, Exception)
    if isinstance(value, property) or (inspect.isclass(value) and issubclass(value, without)):
        return
    assert len(str(inspect.signature(value))) <= 80 * 12
