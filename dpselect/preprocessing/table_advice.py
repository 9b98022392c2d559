"""Advice about the columns of a table, by its schema and public numbers."""

from sklearn.base import clone

from .table_terms import TableTerms, TypicalNoise
from .terms import CategoryTerm

# signals, n epsilon over the length of the noise, below which pairs that were named, and long lists of
# categories, cost more than they tell on most tables; found by experiment
ENOUGH_FOR_PAIRS, ENOUGH_FOR_LISTS = 60.0, 100.0
LONG_LIST = 9
# multiples of epsilon for which the first columns are counted
MULTIPLES = {"epsilon / 3": 1 / 3, "3 epsilon": 3, "10 epsilon": 10}


def table_advice(pipeline, encoder, n_samples, epsilon):
    """Return what a plan says about the columns of a TabularPipeline.

    Parameters
    ----------
    pipeline : TabularPipeline
    encoder : TableEncoder
        That of the pipeline, fitted on a dummy row for these numbers.
    n_samples : int
        Records, or persons.
    epsilon : float
        With which the model will be trained.

    Returns
    -------
    list of str
    """
    signal = TypicalNoise.of(encoder).signal(encoder.terms_)
    return [
        *_first_columns(pipeline, encoder, n_samples, epsilon),
        *_long_lists(encoder.terms_, signal),
        *_named_pairs(encoder, signal),
    ]


def _first_columns(pipeline, encoder, n_samples, epsilon):
    if not (isinstance(encoder.columns, str) and encoder.columns == "first"):
        return []
    schema, counts = encoder.public_schema(), []
    for name, times in MULTIPLES.items():
        told = clone(pipeline).bound(n_samples, times * epsilon).steps[-2][1]
        read = TableTerms.of(told, schema).schema.columns
        counts.append(f"{len(read)} at {name}")
    names, n_all = encoder.columns_, len(schema.columns)
    return [
        (
            f"columns='first' reads {len(names)} of {n_all} columns, to {names[-1]!r}; it would read "
            f"{', '.join(counts)}."
        )
    ]


def _long_lists(terms, signal):
    long = [
        f"{term.columns[0]!r} has {len(term.names)}"
        for term in terms
        if isinstance(term, CategoryTerm) and len(term.levels) >= LONG_LIST
    ]
    if not long or signal >= ENOUGH_FOR_LISTS:
        return []
    return [
        (
            f"Of {terms[-1].outputs.stop} features {', '.join(long)}; n epsilon over the length of the "
            f"noise is {signal:.2g}, and below {ENOUGH_FOR_LISTS:.0f} a model is mostly better without "
            "long lists of categories; group categories, or leave columns out (columns=)."
        )
    ]


def _named_pairs(encoder, signal):
    if isinstance(encoder.pairs, str) or not encoder.pairs_ or signal >= ENOUGH_FOR_PAIRS:
        return []
    return [
        (
            f"With pairs n epsilon over the length of the noise is {signal:.2g}, and below "
            f"{ENOUGH_FOR_PAIRS:.0f} pairs may cost more than they tell; compare a grid with "
            "encoder__pairs, or leave them out."
        )
    ]
