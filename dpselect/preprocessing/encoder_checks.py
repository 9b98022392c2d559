"""Check the parameters of a TableEncoder, before any record is read."""

from collections.abc import Mapping

import numpy as np

from ..utils.validation import check_choice, check_flag, check_number
from .schema import NumberColumn


def check_parameters(encoder, schema):
    """Refuse parameters that are wrong, by themselves or beside the schema.

    Parameters
    ----------
    encoder : TableEncoder
    schema : PublicSchema
        Of all columns by name.

    Raises
    ------
    TypeError, ValueError
    """
    expansion = encoder.expansion
    if isinstance(expansion, str):
        check_choice("expansion", expansion, ("auto", "linear"), why="it says how numbers are expanded")
    else:
        check_number(
            "expansion",
            expansion,
            integer=True,
            why="it counts the cosines of each number",
            instead='write an integer of 1 or more, "linear" or "auto"',
        )
    if encoder.n_epsilon is not None:
        check_number(
            "n_epsilon",
            encoder.n_epsilon,
            high_included=True,
            why="noise is short or long beside the number of records times epsilon",
            instead="write n_samples * epsilon, such as 1000.0, or None",
        )
    if encoder.n_mu is not None:
        check_number(
            "n_mu",
            encoder.n_mu,
            why="Gaussian noise is short or long beside the number of records times mu",
            instead="write n_samples * mu, such as 200.0, or None",
        )
    if encoder.class_share is not None:
        check_number(
            "class_share",
            encoder.class_share,
            high=1.0,
            why="it is the share of the records that a class has",
            instead="write a guess, such as 0.1, or None",
        )
    check_choice(
        "categories", encoder.categories, ("auto", "simplex", "onehot"), why="these are known here"
    )
    check_number(
        "n_fourier",
        encoder.n_fourier,
        integer=True,
        low_included=True,
        why="it counts random features",
        instead="write 0 for none, or an integer",
    )
    check_number(
        "gamma",
        encoder.gamma,
        why="random features are drawn with variance 2 gamma",
        instead="write a number greater than 0, such as 1.0",
    )
    check_number(
        "random_state",
        encoder.random_state,
        integer=True,
        low_included=True,
        why="random features are public, and come from a public seed",
        instead="write an integer of 0 or more, such as 0",
    )
    if encoder.ranges is not None:
        check_choice(
            "ranges", encoder.ranges, ("auto",), why="bounds are learned, or those of the schema (None)"
        )
    check_flag("sparse_output", encoder.sparse_output, why="it says what kind of matrix is returned")
    check_choice(
        "handle_unknown",
        encoder.handle_unknown,
        ("ignore", "error"),
        why="it says what becomes of categories that are not listed",
    )
    _check_columns(encoder, schema)


def _check_columns(encoder, schema):
    """Refuse what needs other columns than the schema has, and cuts outside of the bounds."""
    numeric = {name: c for name, c in schema.columns.items() if isinstance(c, NumberColumn)}
    left_out = _left_out(encoder.columns, list(schema.columns))
    if encoder.n_fourier and not numeric.keys() - left_out:
        raise ValueError(
            f"n_fourier={encoder.n_fourier} needs columns of numbers, and the schema has none that is "
            "read; write 0."
        )
    if not isinstance(encoder.cut_points, Mapping | None):
        raise TypeError(
            f"cut_points of type {type(encoder.cut_points).__name__} names no columns; write a dict "
            'such as {"age": [18, 65]}.'
        )
    for name, cuts in (encoder.cut_points or {}).items():
        try:
            ends = [numeric[name].low, *map(float, cuts), numeric[name].high]
            cut = len(ends) > 2 and bool((np.diff(ends) > 0).all())
        except (KeyError, TypeError, ValueError, OverflowError):
            cut = False
        if not cut:
            raise ValueError(
                f"cut_points of {name!r} are not ascending numbers between the bounds of such a "
                "column of numbers in the schema, so they make no categories; write for instance "
                '{"age": [18, 65]}.'
            )
    _check_pairs(encoder.pairs, list(schema.columns))
    pairs = () if isinstance(encoder.pairs, str) else encoder.pairs
    needed = [*(encoder.cut_points or ()), *(name for pair in pairs for name in pair)]
    lacking = [name for name in dict.fromkeys(needed) if name in left_out]
    if lacking:
        raise ValueError(
            f"columns leaves out {lacking}, which cut_points or pairs need; list them too, or take them "
            "out of cut_points and pairs."
        )


def _left_out(columns, names):
    """Return the columns of the schema that a list leaves out, or refuse a list of others."""
    if columns is None or (isinstance(columns, str) and columns == "first"):
        return ()
    listed = list(columns) if isinstance(columns, (list, tuple)) else []
    wrong = [name for i, name in enumerate(listed) if name not in names or name in listed[:i]]
    if wrong or not listed:
        raise ValueError(
            f"columns={columns!r} names {', '.join(map(repr, wrong)) or 'no columns'}, and it lists "
            'columns of the schema, each once; write some of their names, "first", or None for all.'
        )
    return [name for name in names if name not in listed]


def _check_pairs(pairs, names):
    if isinstance(pairs, str) and pairs == "auto":
        return
    wrong, seen = [], []
    for pair in pairs if isinstance(pairs, (list, tuple)) else [pairs]:
        found = [name for name in names if isinstance(pair, (list, tuple)) and name in pair]
        if len(found) != 2 or len(pair) != 2 or found in seen:
            wrong.append(pair)
        seen.append(found)
    if wrong:
        raise ValueError(
            f"pairs has {', '.join(map(repr, wrong))}, and products are made of two different columns "
            'of the schema, once of each pair; write for instance [("age", "hours")], or "auto".'
        )
