"""The features of a table in memory, a slice of its records at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .schema import CategoryColumn, NumberColumn
from .table_form import distinct_cells, plain_values


@dataclass(frozen=True)
class ReadColumn:
    """A column of which slices are cheap: of what was read, or of cells that `column` reads then.

    Texts are read once, and each different one once where the container knows where it is.
    """

    cells: Any
    column: NumberColumn | None = None

    @classmethod
    def of(cls, known, column):
        """Return a column of a table, of which the schema says what is `known`."""
        found = distinct_cells(column)
        if found is None and isinstance(known, NumberColumn) and _is_of_numbers(column):
            return cls(_cheap(column), known)
        distinct, places = (plain_values(column), slice(None)) if found is None else found
        read = known.read(distinct)
        if isinstance(known, CategoryColumn):
            read = read.astype(np.min_scalar_type(-1 - len(known.levels)))
        return cls(read[places])

    def __getitem__(self, rows):
        cells = self.cells[rows]
        return cells if self.column is None else self.column.read(plain_values(cells))


@dataclass(frozen=True)
class TableEncoding:
    """What terms make of columns, by name."""

    terms: tuple
    columns: dict[Any, ReadColumn]

    def __call__(self, rows):
        """Return the features of a slice of the records, shape (b, n_features)."""
        read = {name: column[rows] for name, column in self.columns.items()}
        features = np.empty((len(next(iter(read.values()))), self.terms[-1].outputs.stop))
        for term in self.terms:
            features[:, term.outputs] = term.encode(*(read[name] for name in term.columns))
        return features

    def sparse(self, rows):
        """Return the features as a CSR array."""
        read, blocks = {name: column[rows] for name, column in self.columns.items()}, []
        for term in self.terms:
            columns = [read[name] for name in term.columns]
            one_hot = getattr(term, "code", None) == "onehot"
            blocks.append(term.one_hot(*columns) if one_hot else sparse.csr_array(term.encode(*columns)))
        return sparse.hstack(blocks, format="csr")


def _cheap(column):
    if not hasattr(column, "iloc"):
        return column
    # slices of a series may go by its labels
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else type(column)(column.array)


def _is_of_numbers(column):
    numeric = getattr(column.dtype, "is_numeric", None)
    return numeric() if numeric is not None else column.dtype.kind in "biuf"
