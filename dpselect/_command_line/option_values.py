"""The values of options, checked one by one."""

import codecs
import math

from ..preprocessing.dates import is_number_format
from .messages import CommandError, name_of

# far outside what makes sense, and far inside what float64 computes without overflow
SMALLEST, LARGEST = 1e-6, 1e6


def _number(option, text, low=SMALLEST, high=LARGEST, integer=False):
    try:
        value = int(text) if integer else float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        kind = "a whole number" if integer else "a number"
        raise CommandError(f"{option} must be {kind} from {low:g} to {high:g}, not {name_of(text)}.")
    return value


def _alphas(option, texts):
    alphas = [_number(option, text) for text in texts]
    if len(set(alphas)) < len(alphas):
        raise CommandError(
            f"{option} names a value twice, which adds noise to the selection for nothing; write "
            "each value "
            "once."
        )
    return alphas


def _separator(option, text):
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n' or not text.isascii():
        raise CommandError(f"{option} must be one character, such as ';' (or tab), not {name_of(text)}.")
    return text


def _class_weight(option, texts):
    parts = [text.rpartition("=") for text in texts]
    if not all(label for label, _, _ in parts) or len({label for label, _, _ in parts}) < len(parts):
        raise CommandError(f"{option} must be a weight for each of some labels, such as ill=5 well=1.")
    return {label: _number(option, weight) for label, _, weight in parts}


def _pairs(option, given):
    if given == [["auto"]]:
        return "auto"
    if any(len(pair) != 2 for pair in given):
        raise CommandError(
            f"{option} must be two columns, such as {option} hour weekday, once for each pair, or auto."
        )
    return [tuple(pair) for pair in given]


def _mark(option, text):
    if len(text) != 1 or text.isalnum() or text in "+-":
        raise CommandError(f"{option} must be one mark, such as ',', not {name_of(text)}.")
    return text


def _encoding(option, text):
    try:
        "".encode(text)  # refuses codecs that are not of texts, too
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        raise CommandError(
            f"{option} must be an encoding that Python knows, such as cp1252, not {name_of(text)}."
        ) from None


def _expansion(option, text):
    return text if text in ("auto", "linear") else _number(option, text, 1, 1e3, integer=True)


def _date_format(option, text):
    if "%" not in text or is_number_format(text):
        raise CommandError(
            f"{option} must be a format with marks between its parts, such as %d.%m.%Y, not "
            f"{name_of(text)}."
        )
    return text


CHECKS = {
    "date_format": _date_format,
    "expansion": _expansion,
    "epsilon": _number,
    "delta": lambda option, text: _number(option, text, 0, 0.5),
    "records": lambda option, text: _number(option, text, 1, 1e12, integer=True),
    "rows_per_person": lambda option, text: _number(option, text, 1, 1e6, integer=True),
    "evaluation": lambda option, text: _number(option, text, 0.001, 0.999),
    "bins": lambda option, texts: [_number(option, text, 2, 1e6, integer=True) for text in texts],
    "excess_risk": _number,
    "threshold": lambda option, text: _number(option, text, SMALLEST, 1 - SMALLEST),
    "alpha": _alphas,
    "base_rate": _number,
    "max_weight": _number,
    "class_weight": _class_weight,
    "pairs": _pairs,
    "separator": _separator,
    "encoding": _encoding,
    "decimal": _mark,
    "thousands": _mark,
}
