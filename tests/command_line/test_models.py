"""Files of models from a stranger: nothing of them is run, or made, that no saved model has."""

import ctypes
import io
import json
import pickle
import zipfile
from functools import cache
from importlib import import_module
from inspect import isclass, isfunction, ismodule
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

import dpselect
from dpselect import DPLogisticRegression, StabilityGridSearchCV, calibrated, evaluate
from dpselect._command_line import models
from dpselect._command_line.messages import CommandError
from dpselect.export import TRUSTED_TYPES
from dpselect.preprocessing import tabular_pipeline

from .conftest import SCHEMA, records

sio = pytest.importorskip("skops.io")
COMMANDS = (
    ["predict", "model.skops", "data.csv"],
    ["report", "model.skops"],
    ["export", "model.skops", "--output", "plain.skops"],
    ["evaluate", "model.skops", "data.csv", "--target", "out come", "--epsilon", "1"],
)


def part(loader, name, number=0, **more):
    """A part of a file, as skops writes it."""
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, "__id__": number, **more}


def text(content, number=0):
    return part("JsonNode", "builtins.str", number, content=json.dumps(content))


def listed(*parts, loader="ListNode", name="builtins.list", number=0):
    return part(loader, name, number, content=list(parts))


def named(number=0, **content):
    kinds = listed(*[part("TypeNode", "builtins.str", number - 1)] * len(content), number=number - 2)
    return part("DictNode", "builtins.dict", number, content=content, key_types=kinds)


def packed(root, protocol=2, files=()):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("schema.json", json.dumps({**root, "protocol": protocol}))
        for name, content in dict(files).items():
            file.writestr(name, content)
    return stream.getvalue()


def runs_a_command(mark):
    """A file that calls ``os.system``, which a module of the library has under its own name."""
    module = part("FunctionNode", "dpselect._command_line.files.os", 1)
    method = part(
        "MethodNode", "dpselect._command_line.files.os", 2, content={"func": "system", "obj": module}
    )
    return packed(
        part(
            "DictNode",
            "builtins.dict",
            3,
            key_types=listed(method, number=4),
            content={f"echo > {mark}": text(1, 5)},
        )
    )


def prefix_rule(content):
    """The broken rule: every name of the library is trusted."""
    types = sio.get_untrusted_types(data=content)
    return next((name for name in types if not name.startswith("dpselect.")), None)


@pytest.fixture
def prefixes(monkeypatch):
    """The loader with the broken rule."""

    def install(content):
        monkeypatch.setattr(models, "foreign_part", prefix_rule)
        monkeypatch.setattr(models, "TRUSTED_TYPES", sio.get_untrusted_types(data=content))

    return install


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_a_file_of_a_stranger_runs_no_command(run, folder, prefixes, argv):
    mark = folder / "ran"
    content = runs_a_command(mark)
    (folder / "model.skops").write_bytes(content)
    code, out, err = run(*argv)
    assert (code, out) == (2, "") and "not written by dpselect fit --save" in err and not mark.exists()
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException):
        sio.loads(content, trusted=TRUSTED_TYPES)
    prefixes(content)
    assert run(*argv)[0] == 2 and mark.exists()


@cache
def attributes():
    """Names of what modules of the library import: of each a module, a function and a class."""
    names = {"dpselect.ledger.ledger.PrivacyLedger"}
    for found in walk_packages(dpselect.__path__, "dpselect."):
        if found.name == "dpselect.__main__":
            continue
        values = vars(import_module(found.name)).items()
        for kind in (ismodule, isfunction, isclass):
            names |= {
                *[
                    f"{found.name}.{name}"
                    for name, value in values
                    if kind(value) and getattr(value, "__module__", "") != found.name
                ][:1]
            }
    return sorted(names - {*TRUSTED_TYPES})


def kinds_of_parts():
    return sorted({loader for loader, _ in sio._audit.NODE_TYPE_MAPPING})


def files_with(loader):
    """Files with an attribute of a module of the library in the place of a type of a model."""
    content = {
        "DictNode": {},
        "DefaultDictNode": {"main": text(1, 1), "default_factory": text(1, 2)},
        "MethodNode": {"func": "x"},
        "MaskedArrayNode": {"data": text(1, 1), "mask": text(1, 2)},
        "PartialNode": dict.fromkeys(("func", "args", "kwds", "namespace"), text(1, 1)),
        "SliceNode": dict.fromkeys(("start", "stop", "step")),
        "JsonNode": "1",
        "ConstructorFromReduceNode": listed(number=1, loader="TupleNode", name="builtins.tuple"),
        "ObjectNode": named(9),
    }.get(loader, [])
    for name in attributes():
        found = part(
            loader,
            name,
            20,
            content=content,
            attrs=text([], 5),
            type="json",
            file="none",
            key_types=listed(number=6),
            shape=text([0], 7),
        )
        if loader == "MethodNode":
            found["content"] = {"func": "x", "obj": part("FunctionNode", name, 8)}
        yield name, packed(found)


def accepted(rule, loader):
    """Names that a rule lets through."""
    found = []
    for name, content in files_with(loader):
        try:
            if rule(content) is None:
                found.append(name)
        except Exception:  # it is no file at all
            continue
    return found


LOADERS = kinds_of_parts()


@pytest.mark.parametrize("loader", LOADERS)
def test_no_other_name_of_a_module_of_the_library_is_loaded(loader):
    assert accepted(models.foreign_part, loader) == []


def test_a_twin_that_trusts_all_names_of_the_library_is_caught():
    found = accepted(prefix_rule, "FunctionNode")
    assert "dpselect.ledger.ledger.PrivacyLedger" in found
    assert any(name.endswith(".os") for name in found)


def test_every_kind_of_part_is_tried():
    assert {
        "ObjectNode",
        "MethodNode",
        "FunctionNode",
        "TypeNode",
        "OperatorFuncNode",
        "PartialNode",
        "CachedNode",
        "ConstructorFromReduceNode",
    } <= {*LOADERS}
    assert len(attributes()) > 300


# --- what skops itself would load


def in_an_array(**attributes):
    """A file with an object as an item of an array, which numpy looks into."""
    item = part(
        "ObjectNode", "dpselect.preprocessing.schema.PublicSchema", 1, content=named(4, **attributes)
    )
    shape = listed(text(1, 10), text(3, 11), loader="TupleNode", name="builtins.tuple", number=12)
    return packed(part("NdArrayNode", "numpy.ndarray", 13, type="json", content=[item], shape=shape))


def test_no_object_is_taken_for_an_address_in_memory():
    memory = (ctypes.c_double * 3)(2.0, 3.0, 5.0)
    address = named(
        30,
        **{
            "shape": listed(text(3, 31), loader="TupleNode", name="builtins.tuple", number=32),
            "typestr": text("<f8", 33),
            "version": text(3, 34),
            "data": listed(
                text(ctypes.addressof(memory), 35),
                text(False, 36),
                loader="TupleNode",
                name="builtins.tuple",
                number=37,
            ),
        },
    )
    content = in_an_array(__array_interface__=address)
    with pytest.raises(ValueError, match="attributes that no model has"):
        models.foreign_part(content)
    # names alone are all right, and what comes out was read from memory
    assert np.array_equal(sio.loads(content, trusted=TRUSTED_TYPES), [[2.0, 3.0, 5.0]])


@pytest.mark.parametrize(
    "attributes",
    [
        # a list of pairs becomes attributes, too
        listed(listed(text("__array_interface__", 40), text(1, 41), number=42), number=43),
        text({"__array_interface__": 1}, 44),
        named(50, **{"a b": text(1, 51)}),
    ],
)
def test_attributes_that_no_model_has(attributes):
    loss = part("ObjectNode", "dpselect.accounting.privacy_loss.PrivacyLoss", 60, content=attributes)
    with pytest.raises(ValueError, match="attributes that no model has"):
        models.foreign_part(packed(loss))
    assert models.foreign_part(packed({**loss, "content": named(70, a=text(1, 71))})) is None
    assert models.foreign_part(packed({**loss, "content": text(None, 71)})) is None


def test_a_part_that_another_one_with_its_number_replaces():
    harmless, bad = named(50, a=text(1, 51)), named(50, __class__=text(1, 51))
    loss = part("ObjectNode", "dpselect.accounting.privacy_loss.PrivacyLoss", 60, content=harmless)
    with pytest.raises(ValueError, match="parts that differ"):
        models.foreign_part(packed(listed(bad, loss, number=61)))
    assert models.foreign_part(packed(listed(harmless, loss, number=61))) is None


ONE = listed(text(1, 10), loader="TupleNode", name="builtins.tuple", number=12)
HOLDERS = {
    "attribute": lambda found: part(
        "ObjectNode", "dpselect.accounting.privacy_loss.PrivacyLoss", 57, content=named(61, a=found)
    ),
    "value of a dict": lambda found: named(61, a=found),
    "item of a list": lambda found: listed(found, number=62),
    "item of a tuple": lambda found: listed(found, loader="TupleNode", name="builtins.tuple", number=63),
    "item of an array": lambda found: part(
        "NdArrayNode", "numpy.ndarray", 64, type="json", content=[found], shape=ONE
    ),
    "shape of an array": lambda found: part(
        "NdArrayNode", "numpy.ndarray", 65, type="json", content=[text(1, 66)], shape=found
    ),
    "data of a masked array": lambda found: part(
        "MaskedArrayNode", "numpy.ma.MaskedArray", 67, content={"data": found, "mask": text(1, 68)}
    ),
    "mask of a masked array": lambda found: part(
        "MaskedArrayNode", "numpy.ma.MaskedArray", 69, content={"data": text(1, 70), "mask": found}
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_foreign_part_is_found_wherever_it_is(holder):
    for name in ("os.system", "builtins.eval"):
        found = HOLDERS[holder](part("FunctionNode", name, 99))
        assert models.foreign_part(packed(found)) == name
    assert models.foreign_part(packed(HOLDERS[holder](text(1, 98)))) is None


def test_a_call_that_has_the_name_of_a_type():
    """skops does not look at the names of these, or calls them with what the file says."""
    for name in ("numpy.clip", "dpselect.accounting.privacy_loss.PrivacyLoss"):
        made = part("ConstructorFromReduceNode", name, 1, content=listed(number=2))
        later = part(
            "PartialNode",
            name,
            3,
            content=dict.fromkeys(("func", "args", "kwds", "namespace"), text(None, 4)),
        )
        for found in (made, later):
            assert models.foreign_part(packed(found)) == name
            assert sio.get_untrusted_types(data=packed(found)) == [name]  # and the name is trusted
            assert name in TRUSTED_TYPES


def test_an_older_form_of_files():
    assert models.foreign_part(packed(listed(number=1), protocol=1)) == "a form of files before 2"


@pytest.mark.parametrize("kind", [CountVectorizer, MaxAbsScaler])
def test_only_what_a_saved_model_holds_of_scikit_learn(folder, kind):
    """skops trusts all of it, and some of it reads files that it is given for records."""
    model = kind()
    model.best_estimator_, model.privacy_ = Pipeline([("model", kind())]), None
    (folder / "model.skops").write_bytes(sio.dumps(model))
    assert sio.get_untrusted_types(file=folder / "model.skops") == []
    with pytest.raises(CommandError, match=f"{kind.__name__}', which is no part of a saved model"):
        models.load_model(str(folder / "model.skops"))


# --- pickles


class Runs:
    """Makes a file when its pickle is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_a_pickle_is_read_on_demand_alone(run, folder, argv):
    (folder / "model.pkl").write_bytes(pickle.dumps(Runs(folder / "ran")))
    argv = [word.replace("model.skops", "model.pkl") for word in argv]
    code, _, err = run(*argv)
    assert code == 2 and not (folder / "ran").exists()
    assert "can run any program" in err and "--trust-pickle" in err and ".skops" in err
    assert run(*argv, "--trust-pickle")[0] == 2 and (folder / "ran").exists()


# --- what Python has saved


def test_columns_that_a_model_ignores_need_not_be_in_a_file(run, folder):
    table = pd.DataFrame(records(), columns=["age", "out come", "smoker", "bmi"]).astype({"age": float})
    X, y = table[["bmi", "age", "smoker"]], table["out come"]
    schema = {name: SCHEMA[name] for name in X}
    model = DPLogisticRegression(classes=["ill", "well"])
    pipeline = tabular_pipeline(schema, model, columns=["smoker", "age"])
    fitted = StabilityGridSearchCV(pipeline, {}, epsilon=5.0).fit(X, y)
    (folder / "model.skops").write_bytes(sio.dumps(fitted))
    table.drop(columns="bmi").to_csv(folder / "data.csv", index=False)
    for argv in COMMANDS:
        assert run(*argv)[0] == 0
    code, found, _ = run("predict", "model.skops", "data.csv")
    assert found.split()[-len(y) :] == fitted.predict(X.assign(bmi="unknown")).tolist()


@pytest.mark.slow
def test_what_python_has_saved_is_read(run, folder):
    table = pd.DataFrame(records(), columns=["age", "out come", "smoker", "bmi"]).astype({"age": float})
    X, y = table[["age", "smoker", "bmi"]], table["out come"]
    schema = {name: SCHEMA[name] for name in X}
    search = StabilityGridSearchCV(
        tabular_pipeline(schema, DPLogisticRegression(classes=["ill", "well"])), {}, epsilon=5.0
    ).fit(X, y)
    model = calibrated(search, evaluate(search, X.copy(), y, epsilon=5.0), rate=0.5)
    (folder / "model.skops").write_bytes(sio.dumps(model))
    for argv in COMMANDS:
        assert run(*argv)[0] == 0
    loaded = models.load_model("model.skops")
    assert loaded.threshold == model.threshold and (loaded.predict(X) == model.predict(X)).all()
