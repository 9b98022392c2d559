"""The public form of a table whose cells a TableEncoder reads: by a schema, however they are stored."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from ..rows import is_lazy, on_first_row
from .foreign_columns import refuse_foreign_columns
from .schema import NumberColumn
from .table_form import (
    GAPS,
    NUMBERS,
    TEXT,
    TableForm,
    column_labels,
    container_of,
    is_documents,
    kind_of,
    neither,
    plain_values,
    read_column,
    read_form,
    table_columns,
)


@dataclass(frozen=True)
class DeclaredForm(TableForm):
    """Form of a table with a schema: numbers may be stored as texts, and a column may be empty.

    Attributes
    ----------
    declared : tuple of NumberColumn or CategoryColumn
        Of each column.
    """

    declared: tuple = ()

    def dummy_cells(self, number):
        return [
            number if isinstance(known, NumberColumn) else _first(known, kind)
            for known, kind in zip(self.declared, self.kinds)
        ]

    def cells(self, j, column, name):
        known = self.declared[j]
        kind, values = read_column(column)
        if isinstance(known, NumberColumn):
            return values if kind in (NUMBERS, GAPS) else known.parsed(plain_values(column))
        if self.kinds[j] == TEXT and kind in (NUMBERS, GAPS, None, "mixed"):
            return values.astype(object)
        return super().cells(j, column, name)


def read_declared_form(X, known):
    """Return the public form of a table that a schema describes.

    Parameters
    ----------
    X : table of shape (n, p), or rows that are read lazily
    known : list of NumberColumn or CategoryColumn
        Of each column of X.

    Returns
    -------
    TableForm

    Raises
    ------
    ValueError
        If a column of numbers holds something else, one of texts holds numbers alone, or a column
        holds neither.
    """
    if is_lazy(X):
        return on_first_row(partial(read_declared_form, known=known), X)
    if sparse.issparse(X) or is_documents(X):
        return read_form(X, gaps=True)
    columns, labels = table_columns(X), column_labels(X)
    if columns is None:
        columns = list(np.asarray(X).T)
    kinds = [_kind(column, declared) for column, declared in zip(columns, known, strict=True)]
    refuse_foreign_columns(columns, known)
    return DeclaredForm(
        container_of(X) or "array", tuple(kinds), labels, gaps=True, declared=tuple(known)
    )


def _kind(column, known):
    kind = kind_of(column)  # without its values, where its type says it
    if isinstance(known, NumberColumn):
        if kind not in (NUMBERS, GAPS):
            known.parsed(plain_values(column))  # refuse a wrong cell before anything is spent
        return NUMBERS
    if kind not in (NUMBERS, GAPS, TEXT, None, "mixed"):
        raise neither(known.name)
    if kind in (NUMBERS, GAPS):
        known.check_numbers(read_column(column)[1])
        return NUMBERS if known.has_numbers else TEXT
    return TEXT


def _first(known, kind):
    if kind == TEXT:
        return str(known.categories[0])
    return next(number for number, place in known.spellings()[1].items() if place >= 0)
