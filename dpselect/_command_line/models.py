"""Read models that the command has written, and nothing else."""

import io
import json
import pickle
from zipfile import ZipFile

import numpy as np
from sklearn.pipeline import Pipeline

from ..density import DPHistogramDensity
from ..evaluation import CalibratedModel
from ..export.trusted import OBJECTS, TRUSTED_TYPES, type_name
from ..model_selection import AccuracyFirstSearchCV, StabilityGridSearchCV
from ..model_selection.accuracy_first.search import own_score
from ..model_selection.plan import PublicResults
from ..preprocessing import TableEncoder
from .files import MODELS, ending_of, skops_io
from .messages import CommandError, name_of
from .printing import predictor

ROOTS = (StabilityGridSearchCV, AccuracyFirstSearchCV, CalibratedModel, Pipeline, DPHistogramDensity)
NUMBERS = {kind for kind in np.sctypeDict.values() if issubclass(kind, (np.bool_, np.number, np.str_))}
# allowed classes for each kind of part of a file. By default skops trusts all of scikit-learn, where a
# file can name other files to read, or pass unchecked numbers to compiled code
PARTS = {
    loader: set(map(type_name, kinds))
    for loader, kinds in {
        "ObjectNode": (*OBJECTS, Pipeline),
        "DictNode": (dict, PublicResults),
        "ListNode": (list,),
        "TupleNode": (tuple,),
        "JsonNode": (str,),
        "FunctionNode": (own_score,),
        "TypeNode": (str, bool, int, float, tuple, *NUMBERS),
        "NdArrayNode": (np.ndarray, *NUMBERS),
        "MaskedArrayNode": (np.ma.MaskedArray,),
    }.items()
}
# version of the file format; parts have other contents in older ones
PROTOCOL = 2


def load_model(path, trust_pickle=False):
    """Load a model that the command has saved, or one of the same classes saved from Python.

    Parameters
    ----------
    path : str
    trust_pickle : bool, default=False
        Whether a pickle is read.

    Returns
    -------
    estimator

    Raises
    ------
    CommandError
        If the file cannot be read, or holds something else; of a .skops file nothing is made before all
        of it is known to be part of a model.
    """
    shown, ending = f"The model {name_of(path)}", ending_of(path, "The model", MODELS)
    if ending == ".pkl" and not trust_pickle:
        raise CommandError(
            f"{shown} is a pickle, which can run any program of whoever wrote it; give --trust-pickle "
            "if that was you, or ask for a .skops file, which cannot."
        )
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except OSError as error:
        raise CommandError(f"{shown} cannot be read ({error.strerror}).") from None
    try:
        if ending == ".pkl":
            model = pickle.loads(content)
        else:
            loads = skops_io().loads
            if foreign := foreign_part(content):
                raise CommandError(
                    f"{shown} holds {name_of(foreign)}, which is no part of a saved model."
                )
            model = loads(content, trusted=TRUSTED_TYPES)
    except CommandError:
        raise
    except Exception:
        raise CommandError(f"{shown} is damaged, or was not written by dpselect fit --save.") from None
    found = predictor(model)
    table = isinstance(found, Pipeline) and isinstance(found.steps[0][1], TableEncoder)
    known = isinstance(model, ROOTS) and (table or isinstance(found, DPHistogramDensity))
    if not known or not hasattr(model, "privacy_"):
        raise CommandError(
            f"{shown} was not written by dpselect fit --save, and is no search of a tabular_pipeline "
            "from Python, nor what calibrated(...) made of one."
        )
    return model


def foreign_part(content):
    """Return the name of a part of a .skops file that no saved model has, or None.

    Nothing is made and imported. skops compares names of types alone, and a trusted name may stand for
    other kinds of parts, such as calls with arguments of the file, and for objects with attributes
    that numpy takes for addresses in memory.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    str or None

    Raises
    ------
    Exception
        If it is no such file.
    """
    with ZipFile(io.BytesIO(content)) as file:
        root = json.loads(file.read("schema.json"))
    if root["protocol"] < PROTOCOL:
        return f"a form of files before {PROTOCOL}"
    known, left = {}, [root]
    while left:
        part = left.pop()
        name = f"{part['__module__']}.{part['__class__']}"
        if name not in PARTS.get(part["__loader__"], ()):
            return name
        # skops checks only the first of several parts with the same id
        if not _same(part, known.setdefault(part["__id__"], part)):
            raise ValueError("parts that differ have one number")
        left += _parts_of(part)
    return None


def _same(part, other):
    """Return whether two parts are equal up to the numbers in them."""
    if isinstance(part, dict) and isinstance(other, dict):
        return (
            part is other
            or part.keys() == other.keys()
            and all(name == "__id__" or _same(value, other[name]) for name, value in part.items())
        )
    if isinstance(part, list) and isinstance(other, list):
        return len(part) == len(other) and all(map(_same, part, other))
    return type(part) is type(other) and part == other


def _parts_of(part):
    loader, content = part["__loader__"], part.get("content")
    if loader == "ObjectNode":
        _check_attributes(content)
        return [content]
    if loader == "DictNode":
        if {kind["__loader__"] for kind in part["key_types"]["content"]} - {"TypeNode"}:
            raise ValueError("keys are made by a call")
        return [part["key_types"], *content.values()]
    if loader == "MaskedArrayNode":
        return [content["data"], content["mask"]]
    if loader == "NdArrayNode":
        return [part["shape"], *content] if part["type"] == "json" else []
    return content if loader in ("ListNode", "TupleNode") else []


def _check_attributes(content):
    """Refuse attributes that would change how numpy or Python treat an object."""
    if content["__loader__"] == "JsonNode" and json.loads(content["content"]) is None:
        return
    names = content["content"] if content["__loader__"] == "DictNode" else [""]
    if any(not name.isidentifier() or name.startswith("__") for name in names):
        raise ValueError("attributes that no model has")
